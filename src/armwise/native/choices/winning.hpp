// The probability that each arm is the best under a posterior: what Thompson sampling plays with.
//
// Independent arms need one integral each, P(a wins) = int f_a(y) prod_(b != a) F_b(y) dy, done by Gauss-Legendre
// quadrature over pieces that are narrow wherever some arm's distribution bends. Two Gaussian arms have a closed form,
// and so have arms whose covariance is a diagonal plus one common factor, given that factor.
#pragma once

#include "choice.hpp"

#include <algorithm>

namespace armwise {

constexpr double LEAST = 1e-12;  // no arm's probability is less, so that importance weights exist whatever is played

// A distribution in proportion to p, in which no arm has less than LEAST.
inline void floored(double* p, Index K) {
    double sum = 0.0;
    for (Index a = 0; a < K; ++a) sum += p[a] = std::max(p[a], LEAST);
    for (Index a = 0; a < K; ++a) p[a] /= sum;
}

// The wins of M draws and of one more that falls on every arm alike: never zero, whatever won.
inline void smoothed_wins(double* wins, Index K) {
    double sum = 0.0;
    for (Index a = 0; a < K; ++a) sum += wins[a];
    for (Index a = 0; a < K; ++a) wins[a] = (wins[a] + 1.0 / double(K)) / (sum + 1.0);
}

// Independent Gaussian arms. A deviation of (nearly) zero beside the others' is a jump: it gets a narrow width.
void independent_wins(const double* means, const double* deviations, Index K, double* p);

// P(arm has the largest score) for jointly Gaussian scores; false where that is more than an integral or two.
bool gaussian_wins(const double* means, const double* covariance, Index K, double* p);

// P(arm has the largest rate) for independent Beta posteriors.
void beta_wins(const double* successes, const double* failures, Index K, double* p);

}  // namespace armwise
