// Checks and draws of every decision: finite input, ties, sampling from a distribution.
#pragma once

#include "array.hpp"

#include <cmath>
#include <limits>

namespace armwise {

constexpr double TIE = 1e-12;  // scores this close to the largest are ties

inline bool is_finite(double value) { return std::fabs(value) <= std::numeric_limits<double>::max(); }

inline bool all_finite(const double* values, Index n) {
    // Eight at a time without a branch: the difference x - x is 0, or NaN for NaN and infinity.
    double wrong[8] = {};
    Index i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) wrong[k] += values[i + k] - values[i + k];
    double sum = 0.0;
    for (; i < n; ++i) sum += values[i] - values[i];
    for (double w : wrong) sum += w;
    return sum == 0.0;
}

constexpr double MAX_MAGNITUDE = 1e150;  // of a number: squares of larger ones would overflow

// Whether every entry is a number of at most MAX_MAGNITUDE in size; false for NaN. Eight at a time without a branch.
inline bool all_within(const double* values, Index n) {
    double beyond[8] = {};  // counts of larger entries, lane by lane
    Index i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) beyond[k] += std::fabs(values[i + k]) <= MAX_MAGNITUDE ? 0.0 : 1.0;
    bool all = true;
    for (; i < n; ++i) all &= std::fabs(values[i]) <= MAX_MAGNITUDE;
    for (double count : beyond) all &= count == 0.0;
    return all;
}

struct Best {
    Index first, ties;
};

// The first arm within TIE of the largest score, and the number of such arms. NaN is refused.
inline Best first_best(const double* scores, Index n) {
    require(n > 0, "scores must not be empty");
    double top = scores[0];
    bool ordered = true;
    for (Index a = 0; a < n; ++a) {
        ordered &= scores[a] == scores[a];
        if (scores[a] > top) top = scores[a];
    }
    require(ordered, "scores must be numbers, got NaN (did a context or a reward overflow?)");
    const double bar = top - TIE;
    Best best{-1, 0};
    for (Index a = 0; a < n; ++a)
        if (scores[a] >= bar) {
            ++best.ties;
            if (best.first < 0) best.first = a;
        }
    return best;
}

// Arm number `which` (0, 1, ...) of the arms that tie for the best.
inline Index nth_best(const double* scores, Index n, Index first, Index which) {
    double top = scores[0];
    for (Index a = 0; a < n; ++a)
        if (scores[a] > top) top = scores[a];
    for (Index a = first; a < n; ++a)
        if (scores[a] >= top - TIE && which-- == 0) return a;
    return first;
}

// The arm with the largest score; u in [0, 1) picks among ties.
inline Index pick(const double* scores, Index n, const Best& best, double u) {
    return best.ties == 1 ? best.first : nth_best(scores, n, best.first, static_cast<Index>(u * double(best.ties)));
}

// The arm at which the running total of p passes u.
inline Index draw(const double* p, Index n, double u) {
    double total = 0.0;
    Index last = 0;
    for (Index a = 0; a < n; ++a)
        if (p[a] > 0.0) {
            total += p[a];
            last = a;
            if (u < total) return a;
        }
    return last;  // rounding left the total just below u
}

inline void tied_probabilities_into(const double* scores, Index n, double* p) {
    const Best best = first_best(scores, n);
    double top = scores[0];
    for (Index a = 0; a < n; ++a)
        if (scores[a] > top) top = scores[a];
    for (Index a = 0; a < n; ++a) p[a] = scores[a] >= top - TIE ? 1.0 / double(best.ties) : 0.0;
}

}  // namespace armwise
