// K-armed agents: one kernel for single steps and blocks.
#include "kary.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

BetaArms beta_arms(const View<double, 1>& successes, const View<double, 1>& failures, bool exact, Generator rng) {
    same_length(successes, failures);
    for (Index a = 0; a < successes.size(); ++a)
        require(successes[a] > 0.0 && failures[a] > 0.0, "successes and failures must be > 0");
    return {successes, failures, exact, rng};
}

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
        return play_rounds(Exp3{log_weights, gamma, rng}, rewards);
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
          R"(mean_a + alpha sqrt(2 ln t / n_a), infinite for an arm without rewards; t - 1 rewards are learnt.

>>> ucb1_scores(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 0.0)
array([ 1., inf]))");

    m.def("ucb1_play", [](Array<double, 1> totals, Array<double, 1> counts, double alpha, Const<double, 2> rewards,
                          Generator rng) {
        same_length(totals, counts);
        return play_rounds(UCB1{totals, counts, alpha, rng}, rewards);
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
          R"(epsilon / K each, the rest on the arms with the best mean (0 for an arm without rewards).

>>> greedy_mixed(np.array([1.0, 0.0]), np.array([2.0, 0.0]), 0.2)
array([0.9, 0.1]))");

    m.def("decayed", decayed, "epsilon"_a, "decay"_a, "n_learnt"_a,
          R"(epsilon_t = epsilon t^-decay, with t - 1 rewards learnt.

>>> decayed(0.5, 1.0, 4)
0.1)");

    m.def("greedy_play", [](Array<double, 1> totals, Array<double, 1> counts, double epsilon, double decay,
                            Index n_learnt, Const<double, 2> rewards, Generator rng) {
        same_length(totals, counts);
        return play_rounds(Greedy{totals, counts, epsilon, decay, n_learnt, rng}, rewards);
    }, "totals"_a, "counts"_a, "epsilon"_a, "decay"_a, "n_learnt"_a, "rewards"_a, "rng"_a,
          R"(Epsilon-greedy over a block of rounds: arms, probabilities, rewards.

>>> greedy_play(np.zeros(1), np.zeros(1), 0.1, 0.0, 0, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("beta_winner", [](Array<double, 1> successes, Array<double, 1> failures, Generator rng) {
        return beta_arms(successes, failures, false, rng).winner();
    }, "successes"_a, "failures"_a, "rng"_a, R"(The arm with the largest draw from its Beta(successes, failures).

>>> beta_winner(np.array([1.0, 1e6]), np.array([1e6, 1.0]), np.random.default_rng(1))
1)");

    m.def("beta_play", [](Array<double, 1> successes, Array<double, 1> failures, bool exact, Const<double, 2> rewards,
                          Generator rng) {
        BetaArms agent = beta_arms(successes, failures, exact, rng);
        return play_rounds(agent, rewards, agent.work());
    }, "successes"_a, "failures"_a, "exact"_a, "rewards"_a, "rng"_a,
          R"(Beta Thompson sampling over a block of rounds: arms, probabilities, rewards.

Arms are drawn with their exact probabilities to win, or as the winner of one posterior draw, with probability NaN.

>>> beta_play(np.ones(2), np.ones(2), True, np.ones((1, 2)), np.random.default_rng(1))[1].round(9)
array([0.5]))");

    m.def("arm_probability", [](Const<double, 1> q, Const<double, 2> table, Index arm) {
        require(table.size(0) == q.size(), "table must have one row per policy");
        require_index(arm, table.size(1), "arm must be a column of table");
        return arm_probability(q.data, table.data, table.size(0), table.size(1), arm);
    }, "q"_a, "table"_a, "arm"_a, R"(The probability of an arm if policy i is followed with probability q_i.

>>> arm_probability(np.array([0.5, 0.5]), np.array([[0.0, 1.0], [0.5, 0.5]]), 1)
0.75)");

    m.def("exp3_policies", [](Array<double, 1> log_weights, double gamma, Generator rng, Const<double, 3> tables,
                              Const<double, 2> rewards, Generator outer) {
        return play_policies(Exp3{log_weights, gamma, rng}, tables, rewards, outer);
    }, "log_weights"_a, "gamma"_a, "rng"_a, "tables"_a, "rewards"_a, "outer"_a,
          R"(Exp3 over policies: tables[t, i] is policy i's distribution in round t. Arms, probabilities, rewards.

>>> rng, other = np.random.default_rng(1), np.random.default_rng(2)
>>> exp3_policies(np.zeros(2), 0.5, rng, np.ones((3, 2, 1)), np.ones((3, 1)), other)
(array([0, 0, 0]), array([1., 1., 1.]), array([1., 1., 1.])))");

    m.def("ucb1_policies", [](Array<double, 1> totals, Array<double, 1> counts, double alpha, Generator rng,
                              Const<double, 3> tables, Const<double, 2> rewards, Generator outer) {
        same_length(totals, counts);
        return play_policies(UCB1{totals, counts, alpha, rng}, tables, rewards, outer);
    }, "totals"_a, "counts"_a, "alpha"_a, "rng"_a, "tables"_a, "rewards"_a, "outer"_a,
          R"(UCB1 over policies; see ``exp3_policies``.

>>> rng, other = np.random.default_rng(1), np.random.default_rng(2)
>>> ucb1_policies(np.zeros(2), np.zeros(2), 0.5, rng, np.ones((3, 2, 1)), np.ones((3, 1)), other)
(array([0, 0, 0]), array([1., 1., 1.]), array([1., 1., 1.])))");

    m.def("greedy_policies", [](Array<double, 1> totals, Array<double, 1> counts, double epsilon, double decay,
                                Index n_learnt, Generator rng, Const<double, 3> tables, Const<double, 2> rewards,
                                Generator outer) {
        same_length(totals, counts);
        return play_policies(Greedy{totals, counts, epsilon, decay, n_learnt, rng}, tables, rewards, outer);
    }, "totals"_a, "counts"_a, "epsilon"_a, "decay"_a, "n_learnt"_a, "rng"_a, "tables"_a, "rewards"_a, "outer"_a,
          R"(Epsilon-greedy over policies; see ``exp3_policies``.

>>> rng, other = np.random.default_rng(1), np.random.default_rng(2)
>>> greedy_policies(np.zeros(2), np.zeros(2), 0.5, 0.0, 0, rng, np.ones((3, 2, 1)), np.ones((3, 1)), other)
(array([0, 0, 0]), array([1., 1., 1.]), array([1., 1., 1.])))");

    m.def("beta_policies", [](Array<double, 1> successes, Array<double, 1> failures, bool exact, Generator rng,
                              Const<double, 3> tables, Const<double, 2> rewards, Generator outer) {
        BetaArms agent = beta_arms(successes, failures, exact, rng);
        return play_policies(agent, tables, rewards, outer, agent.work());
    }, "successes"_a, "failures"_a, "exact"_a, "rng"_a, "tables"_a, "rewards"_a, "outer"_a,
          R"(Beta Thompson sampling over policies; see ``exp3_policies`` and, for ``exact``, ``beta_play``.

>>> rng, other = np.random.default_rng(1), np.random.default_rng(2)
>>> beta_policies(np.ones(2), np.ones(2), False, rng, np.ones((3, 2, 1)), np.ones((3, 1)), other)
(array([0, 0, 0]), array([nan, nan, nan]), array([1., 1., 1.])))");
}
