// Rounds of Thompson sampling with a diagonal Gaussian posterior: one draw, or an arm drawn with its probability to win.
#pragma once

#include "choice.hpp"
#include "random.hpp"
#include "winning.hpp"

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

namespace armwise {

using Buffer = std::vector<double>;

// Mean and covariance of the scores x.w of K rows, where w_i ~ N(m_i, scale^2 / q_i). `each(a, visit)` calls
// visit(i, place, x) for the entries of row a, at coordinate i; `loaded` is working memory, zero before and after.
template <class Each>
void score_posterior(const View<const double, 2>& posterior, double scale, Index K, Each each, double* loaded,
                     double* means, double* covariance) {
    const auto deviation = [&](Index i) { return scale / std::sqrt(posterior(i, 1)); };
    for (Index a = 0; a < K; ++a) {
        double mean = 0.0;
        each(a, [&](Index i, Index place, double x) {
            mean += x * posterior(i, 0);
            loaded[place] = x * deviation(i);
        });
        means[a] = mean;
        for (Index b = 0; b <= a; ++b) {
            double sum = 0.0;
            each(b, [&](Index i, Index place, double x) { sum += x * deviation(i) * loaded[place]; });
            covariance[a * K + b] = covariance[b * K + a] = sum;
        }
        each(a, [&](Index, Index place, double) { loaded[place] = 0.0; });
    }
}

class PosteriorRounds {
  public:
    std::vector<Index> found;  // the coordinates of the round, in increasing order
    Buffer w, scores;

    PosteriorRounds(View<double, 2> posterior, View<const double, 2> rewards, double scale, Index draws, Generator rng)
        : w(posterior.size(0)), scores(rewards.size(1)), posterior_(posterior), rewards_(rewards), scale_(scale),
          draws_(draws), rng_(rng), arms_(rewards.size(0)), probabilities_(rewards.size(0)), got_(rewards.size(0)) {
        require(draws > 0, "draws must be at least 1");
        if (draws == 1) return;
        const Index K = rewards.size(1);
        loaded_.resize(w.size()), means_.resize(K), covariance_.resize(K * K), p_.resize(K), u_.resize(draws);
    }
    // `score()` computes scores from w; `each` is as in `score_posterior`.
    template <class Score, class Each> Index play(Index t, Score score, Each each) {
        const Index arm = draws_ == 1 ? play_draw(t, score) : play_probability(t, score, each);
        arms_[t] = arm, got_[t] = rewards_(t, arm);
        return arm;
    }
    double got(Index t) const { return got_[t]; }
    auto answer() { return std::make_tuple(std::move(arms_), std::move(probabilities_), std::move(got_)); }

  private:
    View<double, 2> posterior_;
    View<const double, 2> rewards_;
    double scale_;
    Index draws_;
    Generator rng_;
    New<int64_t, 1> arms_;
    New<double, 1> probabilities_, got_;
    Buffer loaded_, means_, covariance_, p_, Z_, u_;

    double weight(Index i, double normal) const {
        return posterior_(i, 0) + 1.0 / std::sqrt(posterior_(i, 1)) * (scale_ * normal);
    }
    template <class Score> Index play_draw(Index t, Score score) {
        for (const Index i : found) w[i] = weight(i, rng_.standard_normal());
        score();
        probabilities_[t] = std::numeric_limits<double>::quiet_NaN();
        const Best best = first_best(scores.data(), Index(scores.size()));
        return best.ties == 1 ? best.first : pick(scores.data(), Index(scores.size()), best, rng_.random());
    }
    template <class Score, class Each> Index play_probability(Index t, Score score, Each each) {
        const Index K = Index(scores.size());
        score_posterior(posterior_, scale_, K, each, loaded_.data(), means_.data(), covariance_.data());
        require(all_finite(means_.data(), K) && all_finite(covariance_.data(), K * K),
                "context must be finite (and its square must not overflow)");
        if (!gaussian_wins(means_.data(), covariance_.data(), K, p_.data())) {
            Z_.resize(draws_ * found.size());
            for (double& z : Z_) z = rng_.standard_normal();
            if (!count(score, nullptr)) {  // ties are rare: draw the numbers that break them only then
                for (double& u : u_) u = rng_.random();
                count(score, u_.data());
            }
            smoothed_wins(p_.data(), K);
        }
        const Index arm = armwise::draw(p_.data(), K, rng_.random());
        probabilities_[t] = p_[arm];
        return arm;
    }
    // Count the wins of all draws; return false if one ties and there is no u to break it.
    template <class Score> bool count(Score score, const double* u) {
        const Index K = Index(scores.size());
        std::fill(p_.begin(), p_.end(), 0.0);
        const double* z = Z_.data();
        for (Index k = 0; k < draws_; ++k) {
            for (const Index i : found) w[i] = weight(i, *z++);
            score();
            const Best best = first_best(scores.data(), K);
            if (best.ties > 1 && !u) return false;
            p_[best.ties == 1 ? best.first : pick(scores.data(), K, best, u[k])] += 1.0;
        }
        return true;
    }
};

}  // namespace armwise
