// Gaussian process posteriors over distinct rows: n rewards of one row count as one, their mean, of variance noise / n.
//
// Triangles are packed: row i of a lower triangle begins at i (i + 1) / 2, so that a factor grows by appending.
#pragma once

#include "choice.hpp"
#include "kernels.hpp"
#include "simd.hpp"
#include "points.hpp"
#include "random.hpp"
#include "staged.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace armwise {

// Lower bound of the noise variance as a share of k(x, x): the factor stays invertible with equal points.
constexpr double JITTER = 1e-12;
// Rounding of a variance as a share of k(x, x): the kernel of a more negative variance is not positive definite.
constexpr double MAX_ROUNDING = 1e-4;
// Rows of a joint posterior: the covariance of more rows would have too many numbers.
constexpr Index MAX_JOINT_ROWS = 1024;

// The multiplier of the posterior's standard deviation; for STAGED, with one posterior for all stages, also the horizon.
enum Schedule : int64_t { FIXED, FINITE_ARMS, AGNOSTIC, STAGED };
using Width = std::tuple<int64_t, double, double>;

inline double multiplier(const Width& width, Index K, int64_t t, double gain) {
    constexpr double pi = 3.14159265358979323846;
    const auto [kind, a, b] = width;
    if (kind == FIXED || kind == STAGED) return a;
    const double rounds = double(t);
    if (kind == FINITE_ARMS) return std::sqrt(2.0 * std::log(double(K) * rounds * rounds * (pi * pi) / (6.0 * a)));
    const double ln = std::log(rounds / a);
    return std::sqrt(2.0 * b + 300.0 * gain * (ln * ln * ln));
}

inline Index packed(Index n) { return n * (n + 1) / 2; }

// L^-1 v in place for each of `rows` vectors v, `stride` apart.
void solve_lower(const double* L, Index n, double* V, Index rows, Index stride);

// A block of rounds: the contexts, the rewards of all arms, and arrays for the decisions.
struct Rounds {
    View<const double, 3> contexts;
    View<const double, 2> rewards;
    View<int64_t, 1> arms;
    View<double, 1> probabilities, got;

    void check(Index d) const {
        const Index T = rewards.size(0), K = rewards.size(1);
        require(contexts.size(0) == T && contexts.size(1) == K && K > 0 && contexts.size(2) == d,
                "contexts must be (T, K, d) and rewards (T, K)");
        require(arms.size() >= T && probabilities.size() >= T && got.size() >= T, "results need an entry per round");
    }
    Index size() const { return rewards.size(0); }
    Index n_arms() const { return rewards.size(1); }
};

// The arms of a block of rounds that begins at round t: those with the largest mean + multiplier x standard deviation, or
// those of staged elimination; ties are broken uniformly.
class Optimism {
  public:
    Optimism(const Width& width, int64_t t, const Rounds& rounds, const Generator& rng)
        : width_(width), t_(t), rounds_(rounds), rng_(rng), staged_(std::get<0>(width) == STAGED),
          staging_(stages(), rounds.n_arms(), staged_ ? std::get<2>(width) : 1.0, true) {
        require(!staged_ || std::get<2>(width) >= 1.0, "the horizon must be at least 1");
    }

    // Play round i; the means become scores.
    Index play(Index i, double gain, double* means, const double* variances) {
        const Index K = rounds_.n_arms();
        const double scale = multiplier(width_, K, t_ + i, gain);
        const auto width = [&](Index a) { return scale * std::sqrt(std::max(variances[a], 0.0)); };
        if (staged_) {
            const StagedDecision decision = staging_.decide(
                [&](Index, const Index*, Index, double* its_means, double* widths) {
                    std::copy(means, means + K, its_means);
                    for (Index a = 0; a < K; ++a) widths[a] = width(a);
                },
                rng_);
            return played(i, decision.arm, decision.probability);
        }
        for (Index a = 0; a < K; ++a) means[a] += width(a);
        const Best best = first_best(means, K);
        const Index arm = best.ties == 1 ? best.first : pick(means, K, best, rng_.random());
        return played(i, arm, 1.0 / double(best.ties));
    }

  private:
    Width width_;
    int64_t t_;
    const Rounds& rounds_;
    const Generator& rng_;
    bool staged_;
    Staging staging_;

    Index stages() const {
        return staged_ ? Index(std::ceil(std::log(std::max(std::get<2>(width_), 2.0)))) : 0;
    }
    Index played(Index i, Index arm, double probability) const {
        rounds_.arms[i] = arm, rounds_.probabilities[i] = probability, rounds_.got[i] = rounds_.rewards(i, arm);
        return arm;
    }
};

// Multiplications to compute a joint posterior of m rows, n of them learnt.
inline double joint_work(double n, double m) { return n * n * n / 6.0 + n * n * m / 2.0 + n * m * m / 2.0; }

// The posterior as a Cholesky factor LL' = K + D over the distinct rows learnt, D = noise / counts: O(n^2) per reward and
// per estimated row. It also remembers the rows offered, to tell when a `Joint` would be cheaper.
class Factor {
  public:
    Points learnt, offered;
    std::vector<double> L, c, sums, prior;
    std::vector<int64_t> counts;
    double noise, gain = 0.0, saved = 0.0;  // saved: the work that a joint posterior would have saved
    int64_t age = 0;                        // downdates since L was computed from the kernel

    explicit Factor(Index dim, double noise) : learnt(dim), offered(dim), noise(noise) {}
    Index size() const { return learnt.size(); }

    // Means v'c and variances k(x, x) - v'v, v = L^-1 k(x); the (rows, n) block V of k(x) becomes v.
    void estimate(double* V, Index rows, const double* prior_of_rows, double* means, double* variances) const;
    // Learn a reward, or the mean of some; `row` is k(x), which is overwritten. Return the variance at x before it; if it
    // shows that the kernel is not positive definite, nothing is changed.
    double learn(const double* x, double* row, double prior_of_x, double reward, int64_t count);
    // Count a round's arms, to tell whether they come back often enough for a joint posterior.
    void offer(View<const double, 2> X);
    bool due() const;
    bool stale() const { return age > 1000 + size(); }
    void refresh(const double* gram);
    Index play(Program& program, const Width& width, int64_t t, const Rounds& rounds, const Generator& rng);

  private:
    double variance_of(Index i) const { return std::max(noise / double(counts[i]), JITTER * prior[i]); }
    double learn_solved(const double* x, const double* v, double prior_of_x, double variance, double reward,
                        int64_t count);
    void remember(const double* x);
    void shrink(Index i, double by);
    void solve_means(Index from);
};

// The joint posterior of a set of distinct rows: O(n^2) per reward, O(1) per estimated row.
class Joint {
  public:
    Points points;
    std::vector<double> prior, mean, cov, sums, noises;
    std::vector<int64_t> counts;
    double noise, gain = 0.0;
    int64_t age = 0;

    Joint(View<const double, 2> rows, View<const double, 2> gram, double noise);
    Index size() const { return points.size(); }

    // Compute the posterior anew from counts and sums in O(n^3), so that rounding does not add up.
    void refresh();
    // Write the places of the rows of X into `at`; return false if one is not among the points.
    bool find(View<const double, 2> X, std::vector<Index>& at) const;
    double mean_of(Index i) const { return mean[i]; }
    double variance_of(Index i) const { return cov[i * size() + i]; }
    void learn(Index i, double reward);
    Index play(const Width& width, int64_t t, const Rounds& rounds, const Generator& rng);

  private:
    std::vector<double> column_;
};

}  // namespace armwise
