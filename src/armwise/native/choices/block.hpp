// A block of rounds over ridge models: decide, learn, and restore the models if a round is refused.
#pragma once

#include "random.hpp"
#include "ridge.hpp"

#include <tuple>
#include <utility>

namespace armwise {

// The result of an agent's `play`: arms, probabilities (or another number of each round), rewards.
using Played = std::tuple<New<int64_t, 1>, New<double, 1>, New<double, 1>>;

inline Played new_played(Index T) { return {New<int64_t, 1>(T), New<double, 1>(T), New<double, 1>(T)}; }

inline Models as_models(const View<double, 3>& models, Index d) {
    const Index D = models.size(2);
    const bool counted = models.size(1) == D + 3;
    require(models.size(0) > 0 && (counted || models.size(1) == D + 1) && D % LANES == 0,
            "models must have shape (M, D + 1, D) or (M, D + 3, D)");
    require(0 < d && d <= D, "a context's row must have as many numbers as the models' dimension");
    return {models.data, models.size(0), D, d, counted};
}

inline Models as_models(const View<double, 3>& models, const View<double, 3>& grams, const View<double, 2>& moments,
                        Index d, double lam, double discount) {
    Models result = as_models(models, d);
    result.lam = lam, result.discount = discount;
    if (discount != 1.0) {
        const Index size = result.M * d;
        require(grams.size() == size * d && moments.size() == 3 * size,
                "with a discount, A must be kept for every model, and b, the sum of rows and the prior mean");
        result.grams = grams.data, result.moments = moments.data;
        result.rows = moments.data + size, result.prior = moments.data + 2 * size;
    }
    return result;
}

// Save each model before its first change, and restore it unless the block is committed.
class Undo {
  public:
    explicit Undo(const Models& models) : models_(models), touched_(std::size_t(models.M), false) {}
    ~Undo() {
        if (committed_) return;
        for (const auto& [m, before] : saved_) {
            const double* from = before.data();
            std::copy(from, from + models_.stride(), models_[m]);
            if (models_.grams) {
                const Index d = models_.d;
                from += models_.stride();
                std::copy(from, from + d * d, models_.grams + m * d * d);
                std::copy(from + d * d, from + d * d + d, models_.moments + m * d);
                std::copy(from + d * d + d, from + d * d + 2 * d, models_.rows + m * d);
            }
        }
    }
    // Save model m, which is about to learn; with a discount every model, as all of them fade.
    void touch(Index m) {
        if (!models_.grams) return save(m);
        for (Index k = 0; k < models_.M; ++k) save(k);
    }
    void commit() { committed_ = true; }

  private:
    void save(Index m) {
        if (touched_[std::size_t(m)]) return;
        const Index d = models_.grams ? models_.d : 0;
        std::vector<double> before(models_[m], models_[m] + models_.stride());
        if (d) {
            before.insert(before.end(), models_.grams + m * d * d, models_.grams + (m + 1) * d * d);
            before.insert(before.end(), models_.moments + m * d, models_.moments + (m + 1) * d);
            before.insert(before.end(), models_.rows + m * d, models_.rows + (m + 1) * d);
        }
        saved_.emplace_back(m, std::move(before));
        touched_[std::size_t(m)] = true;
    }

    const Models& models_;
    std::vector<bool> touched_;
    std::vector<std::pair<Index, std::vector<double>>> saved_;
    bool committed_ = false;
};

struct Decision {
    Index arm;
    double probability;
};

// The result of an agent's `choose_many`: arms and probabilities.
using Chosen = std::tuple<New<int64_t, 1>, New<double, 1>>;

// `play_models` without learning.
template <class Decide>
Chosen choose_models(const Models& models, const View<const double, 3>& contexts, Decide decide) {
    const Index T = contexts.size(0), rows = contexts.size(1), K = models.arms(rows);
    require(contexts.size(2) == models.d && K > 0 && (!models.disjoint() || rows == 1),
            "contexts must have shape (T, K, d), or (T, 1, d) for one model per arm");
    Chosen chosen{New<int64_t, 1>(T), New<double, 1>(T)};
    auto& [arms, probabilities] = chosen;
    Unlocked unlocked(double(T) * double(K) * double(models.d) * double(models.d));
    for (Index t = 0; t < T; ++t) {
        const Decision decision = decide(contexts.data + t * rows * models.d, t);
        arms[t] = decision.arm, probabilities[t] = decision.probability;
    }
    return chosen;
}

// Learn the reward of every round's arm, in order; if one is refused, learn none.
inline void learn_models(const Models& models, const View<const double, 3>& contexts, const View<const int64_t, 1>& arms,
                         const View<const double, 1>& rewards) {
    const Index T = rewards.size(), rows = contexts.size(1), K = models.arms(rows);
    require(contexts.size(0) == T && arms.size() == T && contexts.size(2) == models.d,
            "contexts, arms and rewards must have one entry per round");
    require(K > 0 && (!models.disjoint() || rows == 1), "contexts must have one row per arm, or one for all models");
    for (int64_t arm : arms) require_index(arm, K, "arms must be the numbers of arms");
    Unlocked unlocked(double(T) * double(models.d) * double(models.d));
    Undo undo(models);
    for (Index t = 0; t < T; ++t) {
        const Index m = models.disjoint() ? arms[t] : 0, row = models.disjoint() ? 0 : arms[t];
        undo.touch(m);
        learn(models, m, contexts.data + (t * rows + row) * models.d, rewards[t]);
    }
    undo.commit();
}

// contexts: (T, K, d) for one model, (T, 1, d) for one model per arm. `decide(X, t)` gives the arm of round t.
template <class Decide>
Played play_models(const Models& models, const View<const double, 3>& contexts, const View<const double, 2>& rewards,
                   Decide decide) {
    const Index T = rewards.size(0), rows = contexts.size(1), K = models.arms(rows);
    require(contexts.size(0) == T && contexts.size(2) == models.d, "contexts must have one round per row of rewards");
    require(K > 0 && rewards.size(1) == K && (!models.disjoint() || rows == 1),
            "rewards must have one column per arm of contexts");
    Played played = new_played(T);
    auto& [arms, probabilities, got] = played;
    {
        Unlocked unlocked(double(T) * double(K) * double(models.d) * double(models.d));
        Undo undo(models);
        for (Index t = 0; t < T; ++t) {
            const double* X = contexts.data + t * rows * models.d;
            const Decision decision = decide(X, t);
            const Index arm = decision.arm;
            arms[t] = arm, probabilities[t] = decision.probability, got[t] = rewards(t, arm);
            const Index m = models.disjoint() ? arm : 0, row = models.disjoint() ? 0 : arm;
            undo.touch(m);
            learn(models, m, X + row * models.d, got[t]);
        }
        undo.commit();
    }
    return played;
}

}  // namespace armwise
