// The probability that each arm is the best under a posterior: the distribution of Thompson sampling.
//
// Independent arms need one integral each, P(a wins) = int f_a(y) prod_(b != a) F_b(y) dy, done by Gauss-Legendre
// quadrature over pieces that are narrow where an arm's distribution bends. Two Gaussian arms have a closed form,
// and so have arms whose covariance is a diagonal plus one common factor, given that factor.
#pragma once

#include "choice.hpp"

#include <algorithm>

namespace armwise {

constexpr double MIN_PROBABILITY = 1e-12;  // of an arm, so that every arm has an importance weight

// A distribution proportional to p, in which every arm has at least MIN_PROBABILITY.
inline void floored(double* p, Index K) {
    double sum = 0.0;
    for (Index a = 0; a < K; ++a) sum += p[a] = std::max(p[a], MIN_PROBABILITY);
    for (Index a = 0; a < K; ++a) p[a] /= sum;
}

// The shares of wins among M draws and one more draw that all arms share: never zero.
inline void smoothed_wins(double* wins, Index K) {
    double sum = 0.0;
    for (Index a = 0; a < K; ++a) sum += wins[a];
    for (Index a = 0; a < K; ++a) wins[a] = (wins[a] + 1.0 / double(K)) / (sum + 1.0);
}

// Independent Gaussian arms. A deviation near zero is replaced by a narrow width: its distribution function is a step.
void independent_wins(const double* means, const double* deviations, Index K, double* p);

// P(arm has the largest score) for jointly Gaussian scores; false where that needs more than two nested integrals.
bool gaussian_wins(const double* means, const double* covariance, Index K, double* p);

// P(arm has the largest rate) for independent Beta posteriors.
void beta_wins(const double* successes, const double* failures, Index K, double* p);

}  // namespace armwise
