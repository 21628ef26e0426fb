// Staged elimination (see armwise.agents.linear.staged.staging.Staged): the arm of a round and the stage that learns its
// reward.
#pragma once

#include "choice.hpp"
#include "random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace armwise {

struct StagedDecision {
    Index arm;
    double probability;
    Index stage;  // 0, 1, ...; -1 if no stage learns
};

// The stage that plays where all share one model, and the arms that tie in it.
struct PooledStage {
    const double *scores, *by;
    double bar, best;
    Index stage;  // -1 if no stage learns

    bool plays(Index a) const { return (scores[a] >= bar) & (by[a] >= best - TIE); }
};

// Estimates are the same in every stage, and so is the largest score: the arms alive are those above a bar that only rises.
// So no arm is moved, and a stage is one pass without branches that depend on the order of the arms. Fills `scores`.
inline PooledStage pooled_stage(const double* means, const double* widths, Index K, double sure, Index stages,
                                double* scores) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    double top = none, bar = none;
    for (Index a = 0; a < K; ++a) scores[a] = means[a] + widths[a];
    require(all_finite(scores, K), "context must be finite (and its square must not overflow)");
    for (Index a = 0; a < K; ++a) top = scores[a] > top ? scores[a] : top;
    for (Index s = 0; s < stages; ++s) {
        const double limit = std::ldexp(1.0, -int(s + 1));
        double widest = none;
        for (Index a = 0; a < K; ++a) {
            const double width = scores[a] >= bar ? widths[a] : none;
            widest = width > widest ? width : widest;
        }
        if (widest <= sure) return {scores, scores, bar, top, -1};       // rule 1
        if (widest > limit) return {scores, widths, bar, widest, s};     // rule 3
        bar = top - 2.0 * limit;                                         // rule 2
    }
    throw std::logic_error("2^-S <= 1/sqrt(T), so stage S plays");
}

class Staging {
  public:
    // `pooled`: all stages share one model, which estimates all arms once per round.
    Staging(Index stages, Index K, double horizon, bool pooled)
        : stages_(stages), K_(K), pooled_(pooled), sure_(1.0 / std::sqrt(horizon)), alive_(std::size_t(K)), means_(std::size_t(K)),
          widths_(std::size_t(K)), scores_(std::size_t(K)) {}

    // `estimate(stage, alive, n, means, widths)` estimates the n arms alive under the model of a stage.
    template <class Estimate> StagedDecision decide(Estimate estimate, const Generator& rng) {
        Index n = K_;
        for (Index a = 0; a < K_; ++a) alive_[a] = a;
        if (pooled_) {
            estimate(0, alive_.data(), n, means_.data(), widths_.data());
            return decide_pooled(rng);
        }
        for (Index s = 0; s < stages_; ++s) {
            estimate(s, alive_.data(), n, means_.data(), widths_.data());
            for (Index k = 0; k < n; ++k) scores_[k] = means_[k] + widths_[k];
            require(all_finite(scores_.data(), n), "context must be finite (and its square must not overflow)");
            const double widest = *std::max_element(widths_.begin(), widths_.begin() + n);
            if (widest <= sure_) return play(scores_.data(), n, -1, rng);  // rule 1
            const double limit = std::ldexp(1.0, -int(s + 1));
            if (widest > limit) return play(widths_.data(), n, s, rng);  // rule 3
            const double bar = *std::max_element(scores_.begin(), scores_.begin() + n) - 2.0 * limit;
            Index left = 0;
            for (Index k = 0; k < n; ++k)  // rule 2
                if (scores_[k] >= bar) alive_[left++] = alive_[k];
            n = left;
        }
        throw std::logic_error("2^-S <= 1/sqrt(T), so stage S plays");
    }

  private:
    Index stages_, K_;
    bool pooled_;
    double sure_;
    std::vector<Index> alive_;
    std::vector<double> means_, widths_, scores_;

    StagedDecision decide_pooled(const Generator& rng) {
        const PooledStage found = pooled_stage(means_.data(), widths_.data(), K_, sure_, stages_, scores_.data());
        Index ties = 0;
        for (Index a = 0; a < K_; ++a) ties += found.plays(a);
        Index which = ties == 1 ? 0 : Index(rng.random() * double(ties)), arm = 0;
        while (!found.plays(arm) || which-- > 0) ++arm;
        return {arm, 1.0 / double(ties), found.stage};
    }
    StagedDecision play(const double* by, Index n, Index stage, const Generator& rng) const {
        const Best best = first_best(by, n);
        const Index k = best.ties == 1 ? best.first : pick(by, n, best, rng.random());
        return {alive_[k], 1.0 / double(best.ties), stage};
    }
};

// The rows of the arms alive, side by side.
class AliveRows {
  public:
    AliveRows(Index K, Index d) : K_(K), d_(d), rows_(std::size_t(K * d)) {}
    const double* operator()(const double* X, const Index* alive, Index n) {
        if (n == K_) return X;
        for (Index k = 0; k < n; ++k) std::copy_n(X + alive[k] * d_, d_, rows_.data() + k * d_);
        return rows_.data();
    }

  private:
    Index K_, d_;
    std::vector<double> rows_;
};

}  // namespace armwise
