// A prior mean for models without one: they learn rewards less x.theta_0, which is added back to their means.
#pragma once

#include "choice.hpp"
#include "simd.hpp"

namespace armwise {

class Prior {
  public:
    // `mean` is empty for no prior mean.
    Prior(const View<const double, 1>& mean, Index d) : mean_(mean.size() ? mean.data : nullptr), d_(d) {
        require(mean.size() == 0 || mean.size() == d, "prior must be empty or have one number per feature");
    }
    // Add the prior means of K rows to their estimated means.
    void add(const double* X, Index K, double* means) const {
        for (Index a = 0; mean_ && a < K; ++a) means[a] += lane_dot(X + a * d_, mean_, d_);
    }
    double beyond(const double* x, double reward) const {
        if (!mean_) return reward;
        const double rest = reward - lane_dot(x, mean_, d_);
        require(std::fabs(rest) <= MAX_MAGNITUDE, "context is too large for this prior_mean: reward - x.prior_mean overflows");
        return rest;
    }

  private:
    const double* mean_;
    Index d_;
};

}  // namespace armwise
