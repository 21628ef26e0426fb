// Exponential weights in log space.
#pragma once

#include "choice.hpp"
#include "simd.hpp"

#include <algorithm>

namespace armwise {

// The largest of n > 0 numbers, none of them NaN: eight running maxima are faster than one, which waits for itself.
inline double largest(const double* x, Index n) {
    double top[LANES];
    std::fill(top, top + LANES, x[0]);
    Index i = 0;
    for (; i + LANES <= n; i += LANES)
        for (Index k = 0; k < LANES; ++k) top[k] = top[k] < x[i + k] ? x[i + k] : top[k];
    for (; i < n; ++i) top[0] = top[0] < x[i] ? x[i] : top[0];
    return *std::max_element(top, top + LANES);
}

// The weights' distribution; the largest exponent is subtracted first, so that nothing overflows.
inline void normalised(const double* log_weights, Index n, double* p) {
    require(n > 0, "weights must not be empty");
    const double top = largest(log_weights, n);
    double total = 0.0;
    for (Index i = 0; i < n; ++i) total += p[i] = std::exp(log_weights[i] - top);
    for (Index i = 0; i < n; ++i) p[i] /= total;
}

// A distribution with a share spread uniformly: no entry is below share / n. May work in place.
inline void floored(const double* p, Index n, double share, double* result) {
    for (Index i = 0; i < n; ++i) result[i] = (1.0 - share) * p[i] + share / double(n);
}

inline void mixed(const double* log_weights, Index n, double gamma, double* p) {
    normalised(log_weights, n, p);
    floored(p, n, gamma, p);
}

}  // namespace armwise
