// Posterior sampling over ridge models: draws and their winners.
#pragma once

#include "ridge.hpp"

namespace armwise {

// The arm with the largest score; u in [0, 1) picks among ties, and with u < 0 a tie answers -1.
inline Index winner(const double* scores, Index K, double u) {
    const Best best = first_best(scores, K);
    return best.ties > 1 && u < 0.0 ? -1 : pick(scores, K, best, u);
}

inline double posterior_scale(Index t, double v, double coefficient, double delta) {
    return coefficient == 0.0 ? v : v + coefficient * std::sqrt(std::log(double(t) / delta));
}

// Numbers of working memory that `posterior_scores` needs.
inline Index posterior_memory(const Models& models) { return models.disjoint() ? models.M : models.D; }
// Standard normals per draw.
inline Index posterior_normals(const Models& models) { return models.disjoint() ? models.M : models.d; }

// Scores under one draw from the posterior: X mu with mu = theta + v W'z ~ N(theta, v^2 A^-1). With one model per arm,
// x.mu_a ~ N(x.theta_a, v^2 x' A_a^-1 x) independently, so one normal per arm is the whole draw.
inline void posterior_scores(const Models& models, const double* X, Index rows, double v, const double* z,
                             double* scores, double* memory) {
    if (models.disjoint()) {
        estimate_all_into(models, X, scores, memory);
        for (Index m = 0; m < models.M; ++m) scores[m] += v * memory[m] * z[m];
        return;
    }
    const Index D = models.D, d = models.d;
    const double* W = models[0];
    double* mu = memory;
    std::fill(mu, mu + D, 0.0);
    for (Index i = 0; i < d; ++i) {
        const Lanes vz = splat(v * z[i]);
        for (Index j = 0; j < i + 1; j += LANES) store(mu + j, load(mu + j) + vz * load(W + i * D + j));
    }
    for (Index j = 0; j < D; j += LANES) store(mu + j, load(mu + j) + load(W + D * D + j));
    for (Index a = 0; a < rows; ++a) scores[a] = lane_dot(X + a * d, mu, d);
}

}  // namespace armwise
