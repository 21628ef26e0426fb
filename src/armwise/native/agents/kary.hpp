// K-armed agents: decisions and learning.
//
// Each agent has `decide(round, p)`, which returns the arm of a round and its probability (NaN if unknown) and writes the
// distribution into p (unless it is unknown), and `learn(arm, probability, reward)`.
#pragma once

#include "block.hpp"
#include "weights.hpp"
#include "winning.hpp"

namespace armwise {

inline void same_length(const View<const double, 1>& a, const View<const double, 1>& b) {
    require(a.size() == b.size() && a.size() > 0, "an agent's arrays must have one number per arm");
}

// mean_a + alpha sqrt(2 ln t / n_a), infinite for an arm without rewards; t - 1 rewards are learnt.
inline void ucb1_scores(const View<const double, 1>& totals, const View<const double, 1>& counts, double alpha,
                        double* scores) {
    double n = 0.0;
    for (double count : counts) n += count;
    const double log_t = std::log(1.0 + n);
    for (Index a = 0; a < counts.size(); ++a)
        scores[a] = counts[a] == 0.0 ? std::numeric_limits<double>::infinity()
                                     : totals[a] / counts[a] + alpha * std::sqrt(2.0 * log_t / counts[a]);
}

// epsilon / K each, the rest on the arms with the best mean (0 for an arm without rewards).
inline void greedy_mixed(const View<const double, 1>& totals, const View<const double, 1>& counts, double epsilon,
                         double* means, double* p) {
    const Index K = counts.size();
    for (Index a = 0; a < K; ++a) means[a] = counts[a] > 0.0 ? totals[a] / counts[a] : 0.0;
    tied_probabilities_into(means, K, p);
    floored(p, K, epsilon, p);
}

// epsilon_t = epsilon t^-decay, with t - 1 rewards learnt.
inline double decayed(double epsilon, double decay, Index n_learnt) {
    return epsilon * std::pow(double(n_learnt) + 1.0, -decay);
}

struct Exp3 {
    View<double, 1> log_weights;
    double gamma;
    Generator rng;

    Index arms() const { return log_weights.size(); }
    Decision decide(Index, double* p) {
        mixed(log_weights.data, arms(), gamma, p);
        const Index arm = draw(p, arms(), rng.random());
        return {arm, p[arm]};
    }
    void learn(Index arm, double probability, double reward) {
        log_weights[arm] += gamma * (reward / probability) / double(arms());
    }
};

struct UCB1 {
    View<double, 1> totals, counts;
    double alpha;
    Generator rng;
    std::vector<double> scores = std::vector<double>(std::size_t(counts.size()));

    Index arms() const { return counts.size(); }
    Decision decide(Index, double* p) {
        ucb1_scores(totals, counts, alpha, scores.data());
        const Best best = first_best(scores.data(), arms());
        tied_probabilities_into(scores.data(), arms(), p);
        return {pick(scores.data(), arms(), best, best.ties > 1 ? rng.random() : 0.0), 1.0 / double(best.ties)};
    }
    void learn(Index arm, double, double reward) {
        totals[arm] += reward;
        counts[arm] += 1.0;
    }
};

struct Greedy {
    View<double, 1> totals, counts;
    double epsilon, decay;
    Index n_learnt;
    Generator rng;
    std::vector<double> means = std::vector<double>(std::size_t(counts.size()));

    Index arms() const { return counts.size(); }
    Decision decide(Index t, double* p) {
        greedy_mixed(totals, counts, decayed(epsilon, decay, n_learnt + t), means.data(), p);
        const Index arm = draw(p, arms(), rng.random());
        return {arm, p[arm]};
    }
    void learn(Index arm, double, double reward) {
        totals[arm] += reward;
        counts[arm] += 1.0;
    }
};

// A posterior Beta(successes, failures) per arm: the winner of one draw, or an arm drawn with its exact probability to win.
struct BetaArms {
    View<double, 1> successes, failures;
    bool exact;
    Generator rng;
    std::vector<double> sampled = std::vector<double>(std::size_t(successes.size()));

    Index arms() const { return successes.size(); }
    double work() const { return exact ? 1e4 * double(arms()) : 10.0; }
    Index winner() {
        for (Index a = 0; a < arms(); ++a) sampled[a] = rng.beta(successes[a], failures[a]);
        const Best best = first_best(sampled.data(), arms());
        return pick(sampled.data(), arms(), best, best.ties > 1 ? rng.random() : 0.0);
    }
    Decision decide(Index, double* p) {
        if (!exact) return {winner(), std::numeric_limits<double>::quiet_NaN()};
        beta_wins(successes.data, failures.data, arms(), p);
        const Index arm = draw(p, arms(), rng.random());
        return {arm, p[arm]};
    }
    void learn(Index arm, double, double reward) {
        successes[arm] += reward;
        failures[arm] += 1.0 - reward;
    }
};

// A block of rounds without contexts; `work` is about the number of operations per round and arm.
template <class Agent> Played play_rounds(Agent&& agent, const View<const double, 2>& rewards, double work = 10.0) {
    const Index T = rewards.size(0), K = agent.arms();
    require(K > 0 && rewards.size(1) == K, "rewards must have one column per arm");
    Played played = new_played(T);
    auto& [arms, probabilities, got] = played;
    {
        Unlocked unlocked(work * double(T) * double(K));
        std::vector<double> p(K);
        for (Index t = 0; t < T; ++t) {
            const Decision decision = agent.decide(t, p.data());
            const Index arm = decision.arm;
            arms[t] = arm, probabilities[t] = decision.probability, got[t] = rewards(t, arm);
            agent.learn(arm, decision.probability, got[t]);
        }
    }
    return played;
}

// sum_i q_i table[i, arm]: the probability of an arm if policy i is followed with probability q_i.
inline double arm_probability(const double* q, const double* table, Index N, Index K, Index arm) {
    double total = 0.0;
    for (Index i = 0; i < N; ++i) total += q[i] * table[i * K + arm];
    return total;
}

// A block of rounds in which each arm of the agent is a policy: tables[t, i] is policy i's distribution in round t; `rng`
// draws from those with several arms. The agent learns about the policy that it drew, as in
// armwise.agents.wrappers.PolicyArms.
template <class Agent>
Played play_policies(Agent&& agent, const View<const double, 3>& tables, const View<const double, 2>& rewards,
                     const Generator& rng, double work = 10.0) {
    const Index T = rewards.size(0), K = rewards.size(1), N = agent.arms();
    require(K > 0 && tables.size(0) == T && tables.size(1) == N && tables.size(2) == K,
            "tables must have shape (T, N, K), for N policies and a column of rewards per arm");
    Played played = new_played(T);
    auto& [arms, probabilities, got] = played;
    {
        Unlocked unlocked(work * double(T) * double(N + K));
        std::vector<double> q(N);
        for (Index t = 0; t < T; ++t) {
            const double* table = tables.data + t * N * K;
            const Decision drawn = agent.decide(t, q.data());
            const double *advice = table + drawn.arm * K, *top = std::max_element(advice, advice + K);
            const Index arm = *top == 1.0 ? top - advice : draw(advice, K, rng.random());
            arms[t] = arm, got[t] = rewards(t, arm), probabilities[t] = drawn.probability;
            double learns = drawn.probability;
            if (drawn.probability == drawn.probability) {
                const double p = probabilities[t] = arm_probability(q.data(), table, N, K, arm);
                learns = p * (drawn.probability / p);
            }
            agent.learn(drawn.arm, learns, got[t]);
        }
    }
    return played;
}

}  // namespace armwise
