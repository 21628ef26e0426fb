// SupLinUCB's blocks of rounds: staged elimination over ridge models.
#include "staged.hpp"
#include "block.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>

using namespace nb::literals;
using namespace armwise;

void bind_staged(nb::module_& m) {
    m.doc() = "Staged elimination: SupLinUCB's blocks of rounds, and a decision where one model answers for all stages.";

    m.def("pooled", [](Const<double, 1> means, Const<double, 1> widths, double horizon, Index stages) {
        const Index K = means.size();
        require(K > 0 && widths.size() == K, "means and widths must have a number per arm");
        std::vector<double> scores(K);
        const PooledStage found =
            pooled_stage(means.data, widths.data, K, 1.0 / std::sqrt(horizon), stages, scores.data());
        Index ties = 0;
        for (Index a = 0; a < K; ++a) ties += found.plays(a);
        New<int64_t, 1> arms(ties);
        for (Index a = 0, k = 0; a < K; ++a)
            if (found.plays(a)) arms[k++] = a;
        return std::make_tuple(std::move(arms), found.stage + 1);
    }, "means"_a, "widths"_a, "horizon"_a, "stages"_a,
          R"(The arms that tie, and the stage, 1 to ``stages``, whose widths select them; 0 if no stage does.

>>> pooled(np.array([0.5, 0.9]), np.array([0.3, 0.2]), 100.0, 5)
(array([0]), 2))");

    m.def("play", [](const std::vector<Array<double, 3>>& arrays, double multiplier, double horizon,
                     Const<double, 3> contexts, Const<double, 2> rewards, Generator rng, Index pooled) {
        const Index T = rewards.size(0), K = rewards.size(1), d = contexts.size(2), S = Index(arrays.size());
        require(S > 0 && K > 0 && contexts.size(0) == T && contexts.size(1) == K,
                "contexts must have one round per row of rewards, and one row per arm");
        require(pooled == 0 || (pooled > 0 && S == 1), "pooled stages have one model");
        std::vector<Models> models;
        for (const auto& array : arrays) {
            models.push_back(as_models(array, d));
            require(!models.back().disjoint(), "every stage must have one model");
        }
        Played played = new_played(T);
        auto& [arms, probabilities, got] = played;
        {
            Unlocked unlocked(double(T) * double(K) * double(d) * double(d));
            std::deque<Undo> undo;
            for (const Models& model : models) undo.emplace_back(model);
            Staging staging(pooled ? pooled : S, K, horizon, pooled > 0);
            AliveRows rows(K, d);
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * K * d;
                const StagedDecision decision = staging.decide(
                    [&](Index s, const Index* alive, Index n, double* means, double* widths) {
                        estimate_into(models[s][0], models[s].D, rows(X, alive, n), n, d, means, widths);
                        for (Index k = 0; k < n; ++k) widths[k] = multiplier * widths[k];
                    },
                    rng);
                arms[t] = decision.arm, probabilities[t] = decision.probability, got[t] = rewards(t, decision.arm);
                if (decision.stage < 0 && !pooled) continue;
                const Index learning = pooled ? 0 : decision.stage;
                undo[learning].touch(0);
                learn(models[learning], 0, X + decision.arm * d, got[t]);
            }
            for (Undo& stage : undo) stage.commit();
        }
        return played;
    }, "models"_a, "multiplier"_a, "horizon"_a, "contexts"_a, "rewards"_a, "rng"_a, "pooled"_a = 0,
          R"(SupLinUCB over a block of rounds; every stage has its own model of shape (1, D + 1, D).

With ``pooled=S`` there is one model for all S stages, which learns every reward.

>>> stages = [np.zeros((1, 9, 8)) for _ in range(2)]
>>> for model in stages: model[0, 0, 0] = 1.0
>>> play(stages, 0.1, 7.0, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
