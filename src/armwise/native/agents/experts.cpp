// Exponential weights over experts (survey 5): one kernel for single steps and blocks.
#include "modules.hpp"
#include "random.hpp"
#include "weights.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <vector>

using namespace nb::literals;

namespace armwise {
namespace {

using Buffer = std::vector<double>;

void add_floor(View<double, 1> p, double floor) {
    const double keep = 1.0 - double(p.size()) * floor;
    for (double& each : p) each = keep * each + floor;
}

void advised(View<const double, 1> log_weights, View<const double, 2> advice, double floor, View<double, 1> p,
             Buffer& q) {
    q.resize(log_weights.size());
    normalised(log_weights.data, log_weights.size(), q.data());
    std::fill(p.begin(), p.end(), 0.0);
    for (Index i = 0; i < advice.size(0); ++i)
        for (Index j = 0; j < p.size(); ++j) p[j] += q[i] * advice(i, j);
    add_floor(p, floor);
}

// Subtract the largest: only differences matter, and near 0 they keep all their digits.
void recentre(View<double, 1> log_weights) {
    const double top = largest(log_weights.data, log_weights.size());
    for (double& each : log_weights) each -= top;
}

void exp4_learn(View<double, 1> log_weights, View<const double, 2> advice, double gamma, Index arm, double probability,
                double reward) {
    const double step = gamma / double(advice.size(1)) * (reward / probability);
    for (Index i = 0; i < advice.size(0); ++i) log_weights[i] += step * advice(i, arm);
    recentre(log_weights);
}

void exp4p_learn(View<double, 1> log_weights, View<const double, 2> advice, double p_min, double bonus,
                 View<const double, 1> p, Index arm, double probability, double reward) {
    const double r_hat = reward / probability;
    for (Index i = 0; i < advice.size(0); ++i) {
        double v = 0.0;
        for (Index j = 0; j < p.size(); ++j)
            if (advice(i, j) > 0.0) v += advice(i, j) / p[j];
        log_weights[i] += 0.5 * p_min * (advice(i, arm) * r_hat + bonus * v);
    }
    recentre(log_weights);
}

void voted(View<const double, 1> log_weights, View<const int64_t, 1> votes, double p_min, View<double, 1> p,
           Buffer& q) {
    q.resize(log_weights.size());
    normalised(log_weights.data, log_weights.size(), q.data());
    std::fill(p.begin(), p.end(), 0.0);
    for (Index i = 0; i < votes.size(); ++i) require_index(votes[i], p.size(), "votes must be arms");
    if (p.size() == 2) {  // sums in registers: in memory each addition would wait for the write before it
        double first = 0.0, second = 0.0;
        for (Index i = 0; i < votes.size(); ++i) {
            const double one = double(votes[i]);
            first += (1.0 - one) * q[i], second += one * q[i];
        }
        p[0] = first, p[1] = second;
    } else {
        for (Index i = 0; i < votes.size(); ++i) p[votes[i]] += q[i];
    }
    add_floor(p, p_min);
}

void voted_learn(View<double, 1> log_weights, View<const int64_t, 1> votes, double p_min, double bonus,
                 View<const double, 1> p, Index arm, double probability, double reward, Buffer& step) {
    step.resize(p.size());
    for (Index j = 0; j < p.size(); ++j) step[j] = 0.5 * p_min * bonus / p[j];
    step[arm] += 0.5 * p_min * (reward / probability);
    for (Index i = 0; i < votes.size(); ++i) {
        require_index(votes[i], p.size(), "votes must be arms");
        log_weights[i] += step[votes[i]];
    }
    recentre(log_weights);
}

void check(Index weights, Index N, Index K, Index arm = 0) {
    require(weights == N && N > 0, "log_weights must have one entry per expert");
    require_index(arm, K, "arm must be one of the K");
}

struct Rounds {
    New<int64_t, 1> arms;
    New<double, 1> probabilities, got;

    explicit Rounds(Index T) : arms(T), probabilities(T), got(T) {}
    Index play(Index t, View<double, 1> p, View<const double, 2> rewards, const Generator& rng) const {
        const Index arm = draw(p.data, p.size(), rng.random());
        arms[t] = arm, probabilities[t] = p[arm], got[t] = rewards(t, arm);
        return arm;
    }
    auto answer() { return std::make_tuple(std::move(arms), std::move(probabilities), std::move(got)); }
};

View<double, 1> view(Buffer& values) {
    View<double, 1> all;
    all.data = values.data(), all.shape[0] = Index(values.size());
    return all;
}

}  // namespace
}  // namespace armwise

using namespace armwise;

void bind_experts(nb::module_& m) {
    m.doc() = "Exponential weights over experts (survey 5), step and block: one kernel for both lanes.";

    m.def("advised", [](Const<double, 1> log_weights, Const<double, 2> advice, double floor) {
        check(log_weights.size(), advice.size(0), advice.size(1));
        New<double, 1> p(advice.size(1));
        Buffer q;
        Unlocked unlocked(double(advice.size()));
        advised(log_weights, advice, floor, p.view, q);
        return p;
    }, "log_weights"_a, "advice"_a, "floor"_a,
          R"(p_j = (1 - K floor) sum_i q_i advice_ij + floor: the experts' vote, with at least the floor for every arm.

>>> advised(np.zeros(2), np.array([[1.0, 0.0], [1.0, 0.0]]), 0.1)
array([0.9, 0.1]))");

    m.def("recentre", [](Array<double, 1> log_weights) {
        require(log_weights.size() > 0, "log_weights must not be empty");
        recentre(log_weights);
    }, "log_weights"_a, R"(Subtract the largest: only differences matter, and near 0 they keep all their digits.

>>> log_weights = np.array([7.0, 9.0])
>>> recentre(log_weights)
>>> log_weights
array([-2.,  0.]))");

    m.def("exp4_learn", [](Array<double, 1> log_weights, Const<double, 2> advice, double gamma, Index arm,
                           double probability, double reward) {
        check(log_weights.size(), advice.size(0), advice.size(1), arm);
        exp4_learn(log_weights, advice, gamma, arm, probability, reward);
    }, "log_weights"_a, "advice"_a, "gamma"_a, "arm"_a, "probability"_a, "reward"_a,
          R"(w_i *= exp(gamma y_i / K), y_i the estimated reward of expert i's advice (Algorithm 12).

>>> log_weights = np.zeros(2)
>>> exp4_learn(log_weights, np.eye(2), 0.5, 1, 0.5, 1.0)
>>> log_weights
array([-0.5,  0. ]))");

    m.def("exp4p_learn", [](Array<double, 1> log_weights, Const<double, 2> advice, double p_min, double bonus,
                            Const<double, 1> p, Index arm, double probability, double reward) {
        check(log_weights.size(), advice.size(0), advice.size(1), arm);
        require(p.size() == advice.size(1), "p must have one entry per arm");
        Unlocked unlocked(double(advice.size()));
        exp4p_learn(log_weights, advice, p_min, bonus, p, arm, probability, reward);
    }, "log_weights"_a, "advice"_a, "p_min"_a, "bonus"_a, "p"_a, "arm"_a, "probability"_a, "reward"_a,
          R"(w_i *= exp(p_min / 2 (y_i + bonus v_i)), v_i = sum_j advice_ij / p_j (Algorithm 13).

>>> log_weights = np.zeros(2)
>>> exp4p_learn(log_weights, np.eye(2), 0.5, 0.0, np.array([0.5, 0.5]), 1, 0.5, 1.0)
>>> log_weights
array([-0.5,  0. ]))");

    m.def("exp4_play", [](Array<double, 1> log_weights, double gamma, Const<double, 3> advice, Const<double, 2> rewards,
                          Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1);
        check(log_weights.size(), advice.size(1), K);
        require(advice.size(0) == T && advice.size(2) == K, "advice must be (T, N, K) and rewards (T, K)");
        Rounds rounds(T);
        {
            Buffer q, scratch(K);
            const View<double, 1> p = view(scratch);
            Unlocked unlocked(double(advice.size()));
            for (Index t = 0; t < T; ++t) {
                advised(log_weights, advice[t], gamma / double(K), p, q);
                const Index arm = rounds.play(t, p, rewards, rng);
                exp4_learn(log_weights, advice[t], gamma, arm, p[arm], rewards(t, arm));
            }
        }
        return rounds.answer();
    }, "log_weights"_a, "gamma"_a, "advice"_a, "rewards"_a, "rng"_a,
          R"(Exp4 over a block of rounds: arms, probabilities, rewards.

>>> exp4_play(np.zeros(1), 0.5, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("exp4p_play", [](Array<double, 1> log_weights, double p_min, double bonus, Const<double, 3> advice,
                           Const<double, 2> rewards, Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1);
        check(log_weights.size(), advice.size(1), K);
        require(advice.size(0) == T && advice.size(2) == K, "advice must be (T, N, K) and rewards (T, K)");
        Rounds rounds(T);
        {
            Buffer q, scratch(K);
            const View<double, 1> p = view(scratch);
            Unlocked unlocked(double(advice.size()));
            for (Index t = 0; t < T; ++t) {
                advised(log_weights, advice[t], p_min, p, q);
                const Index arm = rounds.play(t, p, rewards, rng);
                exp4p_learn(log_weights, advice[t], p_min, bonus, p, arm, p[arm], rewards(t, arm));
            }
        }
        return rounds.answer();
    }, "log_weights"_a, "p_min"_a, "bonus"_a, "advice"_a, "rewards"_a, "rng"_a,
          R"(Exp4P over a block of rounds: arms, probabilities, rewards.

>>> exp4p_play(np.zeros(1), 0.5, 0.1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("voted", [](Const<double, 1> log_weights, Const<int64_t, 1> votes, double p_min, Index K) {
        check(log_weights.size(), votes.size(), K);
        New<double, 1> p(K);
        Buffer q;
        Unlocked unlocked(5.0 * double(votes.size()));
        voted(log_weights, votes, p_min, p.view, q);
        return p;
    }, "log_weights"_a, "votes"_a, "p_min"_a, "K"_a,
          R"(``advised`` for experts i that give arm votes[i] probability 1: O(N) instead of O(N K), for very many experts.

>>> voted(np.zeros(4), np.array([0, 1, 1, 1]), 0.1, 2)
array([0.3, 0.7]))");

    m.def("voted_learn", [](Array<double, 1> log_weights, Const<int64_t, 1> votes, double p_min, double bonus,
                            Const<double, 1> p, Index arm, double probability, double reward) {
        check(log_weights.size(), votes.size(), p.size(), arm);
        Buffer step;
        Unlocked unlocked(double(votes.size()));
        voted_learn(log_weights, votes, p_min, bonus, p, arm, probability, reward, step);
    }, "log_weights"_a, "votes"_a, "p_min"_a, "bonus"_a, "p"_a, "arm"_a, "probability"_a, "reward"_a,
          R"(``exp4p_learn`` for experts i that give arm votes[i] probability 1: y_i is r_hat on the played arm, v_i is 1 / p.

>>> log_weights = np.zeros(2)
>>> voted_learn(log_weights, np.array([0, 1]), 0.5, 0.0, np.array([0.5, 0.5]), 1, 0.5, 1.0)
>>> log_weights
array([-0.5,  0. ]))");

    m.def("voted_play", [](Array<double, 1> log_weights, double p_min, double bonus, Const<int64_t, 2> votes,
                           Const<double, 2> rewards, Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1);
        check(log_weights.size(), votes.size(1), K);
        require(votes.size(0) == T, "votes must be (T, N) and rewards (T, K)");
        Rounds rounds(T);
        {
            Buffer q, step, scratch(K);
            const View<double, 1> p = view(scratch);
            Unlocked unlocked(5.0 * double(votes.size()));
            for (Index t = 0; t < T; ++t) {
                voted(log_weights, votes[t], p_min, p, q);
                const Index arm = rounds.play(t, p, rewards, rng);
                voted_learn(log_weights, votes[t], p_min, bonus, p, arm, p[arm], rewards(t, arm), step);
            }
        }
        return rounds.answer();
    }, "log_weights"_a, "p_min"_a, "bonus"_a, "votes"_a, "rewards"_a, "rng"_a,
          R"(Exp4P on votes (T, N) over a block of rounds: arms, probabilities, rewards.

>>> voted_play(np.zeros(1), 0.5, 0.1, np.zeros((2, 1), np.int64), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
