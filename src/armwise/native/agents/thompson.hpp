// Posterior sampling over ridge models: draws and their winners.
#pragma once

#include "ridge.hpp"

namespace armwise {

// The arm with the largest score; u in [0, 1) breaks ties, and with u < 0 a tie returns -1.
inline Index winner(const double* scores, Index K, double u) {
    const Best best = first_best(scores, K);
    return best.ties > 1 && u < 0.0 ? -1 : pick(scores, K, best, u);
}

inline double posterior_scale(Index t, double v, double coefficient, double delta) {
    return coefficient == 0.0 ? v : v + coefficient * std::sqrt(std::log(double(t) / delta));
}

// The number of widths in a score's deviation: v or, with `extra`, the root of v^2 + extra ln+(w^2 / (beyond u^2)), at most
// `most`, where w is the arm's width and u that of the arm with the largest mean: arms known less get more.
struct Spread {
    double v, extra, beyond, most;

    bool compares() const { return extra > 0.0; }
    double of(double width, double leader) const {
        const double more = known_less(width * width, beyond * (leader * leader));
        return more > 0.0 ? std::sqrt(std::min(most * most, v * v + extra * more)) : v;
    }
};

// Numbers of working memory that `posterior_scores` needs.
inline Index posterior_memory(const Models& models, Index rows) {
    return models.disjoint() ? models.M : models.D + 2 * rows;
}
// Standard normals per draw.
inline Index posterior_normals(const Models& models) { return models.disjoint() ? models.M : models.d; }

// Scores under one draw from the posterior: X mu with mu = theta + v W'z ~ N(theta, v^2 A^-1). With one model per arm,
// x.mu_a ~ N(x.theta_a, v^2 x' A_a^-1 x) independently, so that one normal per arm is the draw; an untried arm wins. With
// `extra`, each arm's deviation from its mean is multiplied by its own number of widths.
inline void posterior_scores(const Models& models, const double* X, Index rows, const Spread& spread, const double* z,
                             double* scores, double* memory) {
    if (models.disjoint()) {
        estimate_all_into(models, X, scores, memory);
        const double leader = memory[std::max_element(scores, scores + models.M) - scores];
        for (Index m = 0; m < models.M; ++m) {
            scores[m] += (spread.compares() ? spread.of(memory[m], leader) : spread.v) * memory[m] * z[m];
            if (spread.compares() && models.untried(m)) scores[m] = std::numeric_limits<double>::infinity();
        }
        return;
    }
    const Index D = models.D, d = models.d;
    const double* W = models[0];
    double *mu = memory, *means = mu + D, *widths = means + rows;
    std::fill(mu, mu + D, 0.0);
    for (Index i = 0; i < d; ++i) {
        const Lanes vz = splat(spread.v * z[i]);
        for (Index j = 0; j < i + 1; j += LANES) store(mu + j, load(mu + j) + vz * load(W + i * D + j));
    }
    for (Index j = 0; j < D; j += LANES) store(mu + j, load(mu + j) + load(W + D * D + j));
    for (Index a = 0; a < rows; ++a) scores[a] = lane_dot(X + a * d, mu, d);
    if (!spread.compares() || spread.v == 0.0) return;
    estimate_into(W, D, X, rows, d, means, widths);
    const double leader = widths[std::max_element(means, means + rows) - means];
    for (Index a = 0; a < rows; ++a)
        scores[a] = means[a] + spread.of(widths[a], leader) / spread.v * (scores[a] - means[a]);
}

}  // namespace armwise
