// K-armed agents, step and block: one kernel for both lanes.
#include "block.hpp"
#include "modules.hpp"
#include "weights.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

// `decide(t)` gives the arm of round t and its probability; `learn(arm, probability, reward)` learns it.
template <class Decide, class Learn>
Played play_rounds(const View<const double, 2>& rewards, Index K, Decide decide, Learn learn) {
    const Index T = rewards.size(0);
    require(K > 0 && rewards.size(1) == K, "rewards must have one column per arm");
    Played played = new_played(T);
    auto& [arms, probabilities, got] = played;
    {
        Unlocked unlocked(10.0 * double(T) * double(K));
        for (Index t = 0; t < T; ++t) {
            const Decision decision = decide(t);
            const Index arm = decision.arm;
            arms[t] = arm, probabilities[t] = decision.probability, got[t] = rewards(t, arm);
            learn(arm, decision.probability, got[t]);
        }
    }
    return played;
}

void same_length(const View<double, 1>& a, const View<double, 1>& b) {
    require(a.size() == b.size() && a.size() > 0, "an agent's arrays must have one number per arm");
}

// mean_a + alpha sqrt(2 ln t / n_a), infinite for an arm never learnt; t - 1 rewards are learnt.
void ucb1_scores(const View<const double, 1>& totals, const View<const double, 1>& counts, double alpha, double* scores) {
    double n = 0.0;
    for (double count : counts) n += count;
    const double log_t = std::log(1.0 + n);
    for (Index a = 0; a < counts.size(); ++a)
        scores[a] = counts[a] == 0.0 ? std::numeric_limits<double>::infinity()
                                     : totals[a] / counts[a] + alpha * std::sqrt(2.0 * log_t / counts[a]);
}

// epsilon / K each, the rest on the arms with the best mean (0 for an arm never learnt).
void greedy_mixed(const View<const double, 1>& totals, const View<const double, 1>& counts, double epsilon, double* means,
                  double* p) {
    const Index K = counts.size();
    for (Index a = 0; a < K; ++a) means[a] = counts[a] > 0.0 ? totals[a] / counts[a] : 0.0;
    tied_probabilities_into(means, K, p);
    floored(p, K, epsilon, p);
}

// epsilon_t = epsilon t^-decay, with t - 1 rewards learnt.
double decayed(double epsilon, double decay, Index n_learnt) {
    return epsilon * std::pow(double(n_learnt) + 1.0, -decay);
}

// Posterior draws of Beta(successes, failures) per arm, and who wins them.
class BetaDraws {
  public:
    BetaDraws(const View<const double, 1>& successes, const View<const double, 1>& failures, Generator rng)
        : successes_(successes), failures_(failures), rng_(rng), scratch_(std::size_t(2 * successes.size())) {}

    Index winner() {
        const Index K = successes_.size();
        double* sampled = scratch_.data();
        for (Index a = 0; a < K; ++a) sampled[a] = rng_.beta(successes_[a], failures_[a]);
        const Best best = first_best(sampled, K);
        return pick(sampled, K, best, best.ties > 1 ? rng_.random() : 0.0);
    }
    // How often each arm wins, over `draws` posterior draws.
    void frequencies(Index draws, double* p) {
        const Index K = successes_.size();
        std::fill(p, p + K, 0.0);
        for (Index i = 0; i < draws; ++i) p[winner()] += 1.0;
        for (Index a = 0; a < K; ++a) p[a] /= double(draws);
    }
    // The winner of one draw and NaN, or an arm drawn from the frequencies of several and its frequency.
    Decision choose(Index draws) {
        if (draws == 1) return {winner(), std::numeric_limits<double>::quiet_NaN()};
        const Index K = successes_.size();
        double* p = scratch_.data() + K;
        frequencies(draws, p);
        const Index arm = draw(p, K, rng_.random());
        return {arm, p[arm]};
    }

  private:
    View<const double, 1> successes_, failures_;
    Generator rng_;
    std::vector<double> scratch_;
};

}  // namespace

void bind_kary(nb::module_& m) {
    m.doc() = "K-armed agents, step and block: one kernel for both lanes.";

    m.def("exp3_learn", [](Array<double, 1> log_weights, double gamma, Index arm, double probability, double reward) {
        require_index(arm, log_weights.size(), "arm must be the index of an arm");
        log_weights[arm] += gamma * (reward / probability) / double(log_weights.size());
    }, "log_weights"_a, "gamma"_a, "arm"_a, "probability"_a, "reward"_a,
          R"(w_a *= exp(gamma r_hat_a / K), in log space.

>>> log_weights = np.zeros(2)
>>> exp3_learn(log_weights, 0.5, 1, 0.5, 1.0)
>>> log_weights
array([0. , 0.5]))");

    m.def("exp3_play", [](Array<double, 1> log_weights, double gamma, Const<double, 2> rewards, Generator rng) {
        const Index K = log_weights.size();
        std::vector<double> p(K);
        return play_rounds(rewards, K, [&](Index) {
            mixed(log_weights.data, K, gamma, p.data());
            const Index arm = draw(p.data(), K, rng.random());
            return Decision{arm, p[arm]};
        }, [&](Index arm, double probability, double reward) {
            log_weights[arm] += gamma * (reward / probability) / double(K);
        });
    }, "log_weights"_a, "gamma"_a, "rewards"_a, "rng"_a,
          R"(Exp3 over a block of rounds: arms, probabilities, rewards.

>>> exp3_play(np.zeros(1), 0.5, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("ucb1_scores", [](Const<double, 1> totals, Const<double, 1> counts, double alpha) {
        require(totals.size() == counts.size(), "totals and counts must have the same length");
        New<double, 1> scores(counts.size());
        ucb1_scores(totals, counts, alpha, scores.view.data);
        return scores;
    }, "totals"_a, "counts"_a, "alpha"_a,
          R"(mean_a + alpha sqrt(2 ln t / n_a), infinite for an arm never learnt; t - 1 rewards are learnt.

>>> ucb1_scores(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 0.0)
array([ 1., inf]))");

    m.def("ucb1_play", [](Array<double, 1> totals, Array<double, 1> counts, double alpha, Const<double, 2> rewards,
                          Generator rng) {
        same_length(totals, counts);
        const Index K = counts.size();
        std::vector<double> scores(K);
        return play_rounds(rewards, K, [&](Index) {
            ucb1_scores(totals, counts, alpha, scores.data());
            const Best best = first_best(scores.data(), K);
            return Decision{pick(scores.data(), K, best, best.ties > 1 ? rng.random() : 0.0), 1.0 / double(best.ties)};
        }, [&](Index arm, double, double reward) {
            totals[arm] += reward;
            counts[arm] += 1.0;
        });
    }, "totals"_a, "counts"_a, "alpha"_a, "rewards"_a, "rng"_a,
          R"(UCB1 over a block of rounds: arms, probabilities, rewards.

>>> ucb1_play(np.zeros(1), np.zeros(1), 1.0, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("greedy_mixed", [](Const<double, 1> totals, Const<double, 1> counts, double epsilon) {
        require(totals.size() == counts.size(), "totals and counts must have the same length");
        New<double, 1> p(counts.size());
        Scratch means(counts.size());
        greedy_mixed(totals, counts, epsilon, means.data(), p.view.data);
        return p;
    }, "totals"_a, "counts"_a, "epsilon"_a,
          R"(epsilon / K each, the rest on the arms with the best mean (0 for an arm never learnt).

>>> greedy_mixed(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 0.2)
array([0.9, 0.1]))");

    m.def("decayed", decayed, "epsilon"_a, "decay"_a, "n_learnt"_a,
          R"(epsilon_t = epsilon t^-decay, with t - 1 rewards learnt.

>>> decayed(0.5, 1.0, 4)
0.1)");

    m.def("greedy_play", [](Array<double, 1> totals, Array<double, 1> counts, double epsilon, double decay,
                            Index n_learnt, Const<double, 2> rewards, Generator rng) {
        same_length(totals, counts);
        const Index K = counts.size();
        std::vector<double> means(K), p(K);
        return play_rounds(rewards, K, [&](Index t) {
            greedy_mixed(totals, counts, decayed(epsilon, decay, n_learnt + t), means.data(), p.data());
            const Index arm = draw(p.data(), K, rng.random());
            return Decision{arm, p[arm]};
        }, [&](Index arm, double, double reward) {
            totals[arm] += reward;
            counts[arm] += 1.0;
        });
    }, "totals"_a, "counts"_a, "epsilon"_a, "decay"_a, "n_learnt"_a, "rewards"_a, "rng"_a,
          R"(Epsilon-greedy over a block of rounds: arms, probabilities, rewards.

>>> greedy_play(np.zeros(1), np.zeros(1), 0.1, 0.0, 0, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("beta_winner", [](Array<double, 1> successes, Array<double, 1> failures, Generator rng) {
        same_length(successes, failures);
        return BetaDraws(successes, failures, rng).winner();
    }, "successes"_a, "failures"_a, "rng"_a, R"(The arm with the largest draw from its Beta(successes, failures).

>>> beta_winner(np.array([1.0, 1e6]), np.array([1e6, 1.0]), np.random.default_rng(1))
1)");

    m.def("beta_frequencies", [](Array<double, 1> successes, Array<double, 1> failures, Index draws, Generator rng) {
        same_length(successes, failures);
        require(draws > 0, "draws must be at least 1");
        New<double, 1> p(successes.size());
        Unlocked unlocked(100.0 * double(draws) * double(successes.size()));
        BetaDraws(successes, failures, rng).frequencies(draws, p.view.data);
        return p;
    }, "successes"_a, "failures"_a, "draws"_a, "rng"_a,
          R"(How often each arm wins, over ``draws`` posterior draws.

>>> beta_frequencies(np.array([1.0, 1e6]), np.array([1e6, 1.0]), 8, np.random.default_rng(1))
array([0., 1.]))");

    m.def("beta_choose", [](Array<double, 1> successes, Array<double, 1> failures, Index draws, Generator rng) {
        same_length(successes, failures);
        require(draws > 0, "draws must be at least 1");
        const Decision decision = BetaDraws(successes, failures, rng).choose(draws);
        return std::make_tuple(decision.arm, decision.probability);
    }, "successes"_a, "failures"_a, "draws"_a, "rng"_a,
          R"(The winner of one draw and NaN, or an arm drawn from the frequencies of several and its frequency.

>>> beta_choose(np.array([1.0, 1e6]), np.array([1e6, 1.0]), 8, np.random.default_rng(1))
(1, 1.0))");

    m.def("beta_play", [](Array<double, 1> successes, Array<double, 1> failures, Index draws, Const<double, 2> rewards,
                          Generator rng) {
        same_length(successes, failures);
        require(draws > 0, "draws must be at least 1");
        BetaDraws posterior(successes, failures, rng);
        return play_rounds(rewards, successes.size(), [&](Index) { return posterior.choose(draws); },
                           [&](Index arm, double, double reward) {
                               successes[arm] += reward;
                               failures[arm] += 1.0 - reward;
                           });
    }, "successes"_a, "failures"_a, "draws"_a, "rewards"_a, "rng"_a,
          R"(Beta Thompson sampling over a block of rounds: arms, probabilities (NaN if draws is 1), rewards.

>>> beta_play(np.ones(1), np.ones(1), 2, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
