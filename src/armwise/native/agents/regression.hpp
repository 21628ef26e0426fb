// Exploration over regression estimates: inverse-gap weighting and confidence sets.
#pragma once

#include "choice.hpp"
#include "ridge.hpp"
#include "simd.hpp"

#include <algorithm>

namespace armwise {

// p_a = 1 / (K + gamma (best - mean_a)) for all arms but the best, which has the rest (Foster and Rakhlin 2020).
// Where arms tie for the best, the distribution is averaged over the choice of the best.
inline void inverse_gap(const double* means, Index K, double gamma, double* p) {
    first_best(means, K);  // refuses NaN
    const double highest = *std::max_element(means, means + K);
    double others = 0.0;
    Index n_best = 0;
    for (Index a = 0; a < K; ++a)
        if (means[a] >= highest - TIE) {
            p[a] = -1.0;
            ++n_best;
        } else {
            p[a] = 1.0 / (double(K) + gamma * (highest - means[a]));
            others += p[a];
        }
    for (Index a = 0; a < K; ++a)
        if (p[a] < 0.0) p[a] = (1.0 - others) / double(n_best);
}

inline double gap_scale(Index t, double scale, double exponent) { return scale * std::pow(double(t), exponent); }

// sqrt(beta_t), beta_t = mellowness ln(K t) the excess loss that a regressor in the confidence set may have.
inline double confidence(Index t, Index K, double mellowness) {
    return std::sqrt(mellowness * std::log(double(K) * double(t)));
}

constexpr double MIN_RIDGE_SHARE = 1.0 - 1e-9;

// The range of the rewards, which bounds every mean.
struct Range {
    double least, most;

    double cut(double value) const { return std::min(most, std::max(least, value)); }
};

inline void squares_into(const double* X, Index rows, Index d, double* squares) {
    for (Index a = 0; a < rows; ++a) squares[a] = lane_dot(X + a * d, X + a * d, d);
}

// The bounds mean -+ margin, cut to the range of the rewards; all of the range for an arm in whose direction nothing is
// learnt, that is, whose width is that of the ridge alone, ||x|| / sqrt(lam). `squares` has ||x||^2 of each arm, or one for
// all.
inline void cut(const double* means, const double* widths, Index K, const Width& width, const double* squares, Index rows,
                double lam, const Range& range, double* low, double* high) {
    const double leader = widths[std::max_element(means, means + K) - means];
    for (Index a = 0; a < K; ++a) {
        const double square = squares[rows == 1 ? 0 : a];
        const bool untouched = square > 0.0 && lam * (widths[a] * widths[a]) >= MIN_RIDGE_SHARE * square;
        const double margin = width.compares() ? width.margin(widths[a] * widths[a], leader * leader)
                                               : width.alpha * widths[a];
        low[a] = untouched ? range.least : range.cut(means[a] - margin);
        high[a] = untouched ? range.most : range.cut(means[a] + margin);
    }
}

// Uniform over the arms with the largest upper bound (Foster et al. 2018, Algorithm 2); with `elimination` over the
// arms whose upper bound reaches the largest lower bound (Algorithm 1).
inline void confident(const double* low, const double* high, Index K, bool elimination, double* p) {
    if (!elimination) return tied_probabilities_into(high, K, p);
    const double floor = *std::max_element(low, low + K) - TIE;
    Index n = 0;
    for (Index a = 0; a < K; ++a) n += high[a] >= floor;
    for (Index a = 0; a < K; ++a) p[a] = high[a] >= floor ? 1.0 / double(n) : 0.0;
}

}  // namespace armwise
