// Products with a lower triangular factor W of an inverse Gram matrix, A^-1 = W'W, in rows padded to multiples of eight.
#pragma once

#include "simd.hpp"

namespace armwise {

// p = W x over the first `end` rows; returns ||p||^2, for all rows x' A^-1 x.
inline double project(const double* W, Index D, const double* x, double* p, Index end) {
    Lanes square = zero();
    for (Index i = 0; i < end; i += LANES) {
        const double* row = W + i * D;
        Lanes s[8] = {zero(), zero(), zero(), zero(), zero(), zero(), zero(), zero()};
        for (Index j = 0; j < i + LANES; j += LANES) {  // W is zero above its diagonal
            const Lanes v = load(x + j);
            for (int k = 0; k < 8; ++k) s[k] += load(row + k * D + j) * v;
        }
        const Lanes sums = totals(s);
        store(p + i, sums);
        square += sums * sums;
    }
    return total(square);
}

inline double project(const double* W, Index D, const double* x, double* p) { return project(W, D, x, p, D); }

// a . b over the first `end` numbers.
inline double padded_dot(const double* a, const double* b, Index end) {
    Lanes s = zero();
    for (Index j = 0; j < end; j += LANES) s += load(a + j) * load(b + j);
    return total(s);
}

}  // namespace armwise
