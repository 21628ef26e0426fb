// Bindings of nested.hpp, and blocks of rounds.
#include "nested.hpp"
#include "block.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

using Ends = Const<int64_t, 1>;

Nested as_nested(const View<double, 3>& factors, const View<double, 3>& thetas, const View<const int64_t, 1>& ends,
                 const View<const double, 1>& prior) {
    const Index M = factors.size(0), D = factors.size(2), B = ends.size();
    require(M > 0 && D > 0 && D % LANES == 0 && factors.size(1) == D, "factors must have shape (M, D, D)");
    require(B > 0 && thetas.size(0) == M && thetas.size(1) == B && thetas.size(2) == D, "thetas must be (M, B, D)");
    require(prior.size() == D, "prior must have D numbers");
    for (Index b = 0; b < B; ++b)
        require(ends[b] % LANES == 0 && ends[b] > (b ? ends[b - 1] : 0) && ends[b] <= D, "ends must increase to D");
    require(ends[B - 1] == D, "ends must increase to D");
    return {factors.data, thetas.data, M, B, D, ends.data, prior.data};
}

Evidence as_evidence(const View<double, 1>& state, const Nested& model) {
    require(state.size() == Evidence::size(model.B), "state must have 6 + 5 B numbers");
    return {state.data, model.B, model.M};
}

double work(const Nested& model, Index rows) { return double(std::max(model.M, rows)) * double(model.D * model.D); }

// Restore every model that a block changed, and the evidence, unless the block is committed.
class Restore {
  public:
    Restore(const Nested& model, const Evidence& evidence)
        : model_(model), evidence_(evidence), state_(evidence.state, evidence.state + Evidence::size(model.B)),
          saved_(std::size_t(model.M)) {}
    ~Restore() {
        if (committed_) return;
        std::copy(state_.begin(), state_.end(), evidence_.state);
        for (Index m = 0; m < model_.M; ++m) {
            const auto& before = saved_[std::size_t(m)];
            if (before.empty()) continue;
            auto from = before.begin();
            for (Index i = 0; i < model_.D; ++i) {
                std::copy(from, from + i + 1, model_.factor(m) + i * model_.D);
                from += i + 1;
            }
            std::copy(from, before.end(), model_.theta(m, 0));
        }
    }
    void touch(Index m) {
        auto& before = saved_[std::size_t(m)];
        if (!before.empty()) return;
        const Index D = model_.D, thetas = model_.B * D;
        before.reserve(std::size_t(D * (D + 1) / 2 + thetas));  // W is lower triangular: zeros above stay zeros
        const double* W = model_.factor(m);
        for (Index i = 0; i < D; ++i) before.insert(before.end(), W + i * D, W + i * D + i + 1);
        before.insert(before.end(), model_.theta(m, 0), model_.theta(m, 0) + thetas);
    }
    void commit() { committed_ = true; }

  private:
    const Nested& model_;
    const Evidence& evidence_;
    std::vector<double> state_;
    std::vector<std::vector<double>> saved_;
    bool committed_ = false;
};

void learn_row(const Nested& model, Evidence& evidence, Index m, const double* x, double reward) {
    Scratch scratch(2 * model.B);
    double *errors = scratch.data(), *growth = errors + model.B;
    predict(model, m, x, errors);
    for (Index b = 0; b < model.B; ++b) {
        errors[b] = reward - errors[b];
        require(is_finite(errors[b]), "reward must not overflow");
    }
    const Index level = evidence.level();
    learn_nested(model, m, x, errors, growth);
    evidence.learn(errors, growth, level);
    if (evidence.per_arm()) evidence.apart() = apart(model, evidence.variance(0));
}

}  // namespace

void bind_nested(nb::module_& m) {
    m.doc() = "Nested ridge models: one factor that answers for every prefix of the features.";

    m.def("estimates", [](Array<double, 3> factors, Array<double, 3> thetas, Ends ends, Const<double, 1> prior,
                          Const<double, 2> X, int64_t level) {
        const Nested model = as_nested(factors, thetas, ends, prior);
        require(X.size(0) > 0 && X.size(1) == model.D, "X must have D columns");
        require_index(level, model.B, "level must be one of the prefixes");
        const bool shared = model.M > 1;
        const Index K = shared ? model.M : X.size(0);
        New<double, 1> means(K), widths(K);
        Scratch scratch(model.D);
        for (Index a = 0; a < K; ++a) {
            const double* x = X.data + (shared ? 0 : a * model.D);
            const Index arm = shared ? a : 0, end = model.ends[level];
            means[a] = padded_dot(model.theta(arm, level), x, end);
            widths[a] = std::sqrt(project(model.factor(arm), model.D, x, scratch.data(), end));
        }
        return std::make_tuple(means, widths);
    }, "factors"_a, "thetas"_a, "ends"_a, "prior"_a, "X"_a, "level"_a,
          R"(Means and widths under prefix `level`: of each row of X under the one model, or of the one row under each model.

>>> factors, thetas = np.eye(8)[None].copy(), np.zeros((1, 1, 8))
>>> estimates(factors, thetas, np.array([8]), np.ones(8), np.full((1, 8), 0.5), 0)
(array([0.]), array([1.41421356])))");

    m.def("scores", [](Array<double, 3> factors, Array<double, 3> thetas, Ends ends, Const<double, 1> prior,
                       Array<double, 1> state, Const<double, 2> X) {
        const Nested model = as_nested(factors, thetas, ends, prior);
        const Evidence evidence = as_evidence(state, model);
        require(X.size(0) > 0 && X.size(1) == model.D && (model.M == 1 || X.size(0) == 1), "X must have D columns");
        const Index K = model.M > 1 ? model.M : X.size(0);
        New<double, 1> scores(K);
        Unlocked unlocked(work(model, X.size(0)));
        nested_scores(model, X.data, K, evidence, scores.view.data);
        return scores;
    }, "factors"_a, "thetas"_a, "ends"_a, "prior"_a, "state"_a, "X"_a,
          R"(Optimistic scores of the prefix that the evidence selects; see nested.hpp.

>>> factors, thetas = np.eye(8)[None].copy(), np.zeros((1, 1, 8))
>>> X = np.eye(8)[:1] * [[1.0], [2.0]]
>>> one, two = scores(factors, thetas, np.array([8]), np.ones(8), np.zeros(11), X)
>>> bool(one > 0.0), round(float(two / one), 9)
(True, 2.0))");

    m.def("level", [](Array<double, 1> state, int64_t prefixes, int64_t models) {
        require(prefixes > 0 && state.size() == Evidence::size(prefixes), "state must have 6 + 5 B numbers");
        const Evidence evidence{state.data, prefixes, models};
        const Index level = evidence.level();
        return std::make_tuple(int64_t(level), evidence.radius(level), evidence.noise(level));
    }, "state"_a, "prefixes"_a, "models"_a, R"(The selected prefix, its number of widths of optimism, and the noise, in units of the rewards' range.

>>> level(np.zeros(16), 2, 3)
(1, 0.15, 0.5))");

    m.def("learn_rows", [](Array<double, 3> factors, Array<double, 3> thetas, Ends ends, Const<double, 1> prior,
                           Array<double, 1> state, Const<double, 2> X, Const<int64_t, 1> models,
                           Const<double, 1> rewards) {
        const Nested model = as_nested(factors, thetas, ends, prior);
        Evidence evidence = as_evidence(state, model);
        const Index n = X.size(0);
        require(X.size(1) == model.D && models.size() == n && rewards.size() == n, "X must have one row per reward");
        for (Index i = 0; i < n; ++i) require_index(models[i], model.M, "models must be numbers of models");
        Unlocked unlocked(double(n) * double(model.D * model.D));
        Restore restore(model, evidence);
        for (Index i = 0; i < n; ++i) {
            restore.touch(models[i]);
            learn_row(model, evidence, models[i], X.data + i * model.D, rewards[i]);
        }
        restore.commit();
    }, "factors"_a, "thetas"_a, "ends"_a, "prior"_a, "state"_a, "X"_a, "models"_a, "rewards"_a,
          R"(Learn rows in order, each into its model, and each prefix's error before it into the evidence.

>>> factors, thetas, state = np.eye(8)[None].copy(), np.zeros((1, 1, 8)), np.zeros(11)
>>> learn_rows(factors, thetas, np.array([8]), np.ones(8), state, np.eye(8)[:1], np.array([0]), np.array([1.0]))
>>> thetas[0, 0, 0], state[0]
(np.float64(0.5), np.float64(1.0)))");

    m.def("learn", [](Array<double, 3> factors, Array<double, 3> thetas, Ends ends, Const<double, 1> prior,
                      Array<double, 1> state, Const<double, 1> x, int64_t which, double reward) {
        const Nested model = as_nested(factors, thetas, ends, prior);
        Evidence evidence = as_evidence(state, model);
        require(x.size() == model.D, "x must have D numbers");
        require_index(which, model.M, "models must be numbers of models");
        learn_row(model, evidence, which, x.data, reward);
    }, "factors"_a, "thetas"_a, "ends"_a, "prior"_a, "state"_a, "x"_a, "model"_a, "reward"_a,
          R"(Learn one row into one model: `learn_rows` of it without a copy of the model.

>>> factors, thetas, state = np.eye(8)[None].copy(), np.zeros((1, 1, 8)), np.zeros(11)
>>> learn(factors, thetas, np.array([8]), np.ones(8), state, np.eye(8)[0], 0, 1.0)
>>> thetas[0, 0, 0]
np.float64(0.5))");

    m.def("play", [](Array<double, 3> factors, Array<double, 3> thetas, Ends ends, Const<double, 1> prior,
                     Array<double, 1> state, Const<double, 3> contexts, Const<double, 2> rewards, double center,
                     double unit, double floor, Generator generator) {
        const Nested model = as_nested(factors, thetas, ends, prior);
        Evidence evidence = as_evidence(state, model);
        const Index T = rewards.size(0), rows = contexts.size(1), D = model.D, K = model.M > 1 ? model.M : rows;
        require(contexts.size(0) == T && contexts.size(2) == D && K > 0 && rewards.size(1) == K &&
                    (model.M == 1 || rows == 1),
                "contexts must have one round per row of rewards, and rewards one column per arm");
        Played played = new_played(T);
        auto& [arms, probabilities, got] = played;
        {
            Unlocked unlocked(double(T) * work(model, rows));
            Restore restore(model, evidence);
            Scratch scratch(2 * K);
            double *scores = scratch.data(), *p = scores + K;
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * rows * D;
                nested_scores(model, X, K, evidence, scores);
                Index arm;
                if (floor > 0.0) {
                    tied_probabilities_into(scores, K, p);
                    for (Index a = 0; a < K; ++a) p[a] = (1.0 - floor) * p[a] + floor / double(K);
                    arm = draw(p, K, generator.random());
                    probabilities[t] = p[arm];
                } else {
                    const Best best = first_best(scores, K);
                    arm = pick(scores, K, best, best.ties == 1 ? 0.0 : generator.random());
                    probabilities[t] = 1.0 / double(best.ties);
                }
                arms[t] = arm, got[t] = rewards(t, arm);
                const Index which = model.M > 1 ? arm : 0;
                restore.touch(which);
                learn_row(model, evidence, which, X + (model.M > 1 ? 0 : arm * D), (got[t] - center) / unit);
            }
            restore.commit();
        }
        return played;
    }, "factors"_a, "thetas"_a, "ends"_a, "prior"_a, "state"_a, "contexts"_a, "rewards"_a, "center"_a, "unit"_a,
          "floor"_a, "rng"_a, R"(A block of rounds: choose, and learn (reward - center) / unit.

>>> factors, thetas = np.tile(np.eye(8), (2, 1, 1)), np.zeros((2, 1, 8))
>>> rng = np.random.default_rng(0)
>>> x, r = np.tile(np.eye(8)[:1], (20, 1, 1)), np.tile([0.0, 1.0], (20, 1))
>>> int(play(factors, thetas, np.array([8]), np.ones(8), np.zeros(11), x, r, 0.3, 1.0, 0.0, rng)[0][-1])
1)");
}
