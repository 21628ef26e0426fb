// Bindings of truncated.hpp, and LinREL's and SupLinREL's blocks of rounds.
#include "truncated.hpp"
#include "block.hpp"
#include "modules.hpp"
#include "prior.hpp"
#include "staged.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>

using namespace nb::literals;
using namespace armwise;

namespace {

void check_pair(const View<double, 2>& gram, const View<double, 1>& b, Index d) {
    require(d > 0 && gram.size(0) == d && gram.size(1) == d && b.size() == d, "gram must be (d, d) and b (d,)");
}

// Restore every model unless the block is committed.
class RestoreTruncated {
  public:
    explicit RestoreTruncated(std::deque<Truncated>& models) : models_(models) {}
    ~RestoreTruncated() {
        for (Truncated& model : models_)
            if (!committed_) model.restore();
    }
    void commit() { committed_ = true; }

  private:
    std::deque<Truncated>& models_;
    bool committed_ = false;
};

void check_block(const View<const double, 3>& contexts, const View<const double, 2>& rewards) {
    require(contexts.size(0) == rewards.size(0) && contexts.size(1) == rewards.size(1) && rewards.size(1) > 0,
            "contexts must have one round per row of rewards, and one row per arm");
}

}  // namespace

void bind_truncated(nb::module_& m) {
    m.doc() = "Least squares on the leading eigenvectors of a Gram matrix: LinREL's model, step and block.";

    m.def("decompose", [](Array<double, 2> gram, Array<double, 1> b) {
        const Index d = b.size();
        check_pair(gram, b, d);
        require(all_finite(gram.data, gram.size()), "gram must be finite");
        New<double, 2> basis(d, d);
        New<double, 1> theta(d);
        Index k;
        {
            Unlocked unlocked(20.0 * double(d) * double(d) * double(d));
            Truncated model(gram.data, b.data, d);
            model.decompose();
            std::copy(model.basis().begin(), model.basis().end(), basis.view.begin());
            std::copy(model.theta().begin(), model.theta().end(), theta.view.begin());
            k = model.cut();
        }
        return std::make_tuple(basis, k, theta);
    }, "gram"_a, "b"_a,
          R"(The eigenvectors as columns (divided by sqrt(l) for an eigenvalue l of at least 1), the number of those cut, the estimate.

>>> basis, k, theta = decompose(np.diag([4.0, 0.25]), np.array([8.0, 1.0]))
>>> abs(basis), k, theta
(array([[0. , 0.5], [1. , 0. ]]), 1, array([2., 0.])))");

    m.def("estimate", [](Const<double, 2> basis, Index k, Const<double, 1> theta, Const<double, 1> prior_mean,
                         Const<double, 2> X, double scale) {
        const Index K = X.size(0), d = X.size(1);
        require(basis.size(0) == d && basis.size(1) == d && theta.size() == d, "basis must be (d, d) and theta (d,)");
        require(0 <= k && k <= d, "k must lie between 0 and d");
        const Prior prior(prior_mean, d);
        New<double, 1> means(K), widths(K);
        {
            Unlocked unlocked(double(K) * double(d) * double(d));
            truncated_estimate(basis.data, k, theta.data, X.data, K, d, scale, means.view.data, widths.view.data);
            prior.add(X.data, K, means.view.data);
        }
        return std::make_tuple(means, widths);
    }, "basis"_a, "k"_a, "theta"_a, "prior_mean"_a, "X"_a, "scale"_a,
          R"(Means x.theta (and the prior's x.prior_mean, unless that is empty) and widths scale ||w|| + ||v~|| of the rows of X.

Column i of ``basis`` is an eigenvector: for i < k one that is cut, from k on one that is kept, divided by sqrt(l_i).

>>> basis, theta = np.array([[0.0, 0.5], [1.0, 0.0]]), np.array([2.0, 0.0])
>>> estimate(basis, 1, theta, np.empty(0), np.array([[4.0, 3.0]]), 10.0)
(array([8.]), array([23.])))");

    m.def("learn", [](Array<double, 2> gram, Array<double, 1> b, Const<double, 1> prior_mean, Const<double, 1> x,
                      double reward) {
        check_pair(gram, b, x.size());
        truncated_learn(gram.data, b.data, x.size(), x.data, Prior(prior_mean, x.size()).beyond(x.data, reward));
    }, "gram"_a, "b"_a, "prior_mean"_a, "x"_a, "reward"_a, R"(D'D += x x', D'c += (r - x.prior_mean) x.

>>> gram, b = np.zeros((1, 1)), np.zeros(1)
>>> learn(gram, b, np.empty(0), np.full(1, 2.0), 3.0)
>>> gram, b
(array([[4.]]), array([6.])))");

    m.def("play", [](Array<double, 2> gram, Array<double, 1> b, Const<double, 1> prior_mean, double scale,
                     double multiplier, Const<double, 3> contexts, Const<double, 2> rewards, Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1), d = contexts.size(2);
        check_pair(gram, b, d);
        check_block(contexts, rewards);
        const Prior prior(prior_mean, d);
        Played played = new_played(T);
        auto& [arms, probabilities, got] = played;
        {
            Unlocked unlocked(double(T) * double(d) * double(d) * double(K + 20 * d));
            std::deque<Truncated> models;
            Truncated& model = models.emplace_back(gram.data, b.data, d);
            RestoreTruncated restore(models);
            std::vector<double> scores(K), widths(K);
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * K * d;
                model.estimate(X, K, scale, scores.data(), widths.data());
                prior.add(X, K, scores.data());
                for (Index a = 0; a < K; ++a) scores[a] += multiplier * widths[a];
                const Best best = first_best(scores.data(), K);
                const Index arm = pick(scores.data(), K, best, best.ties > 1 ? rng.random() : 0.0);
                arms[t] = arm, probabilities[t] = 1.0 / double(best.ties), got[t] = rewards(t, arm);
                model.learn(X + arm * d, prior.beyond(X + arm * d, got[t]));
            }
            restore.commit();
        }
        return played;
    }, "gram"_a, "b"_a, "prior_mean"_a, "scale"_a, "multiplier"_a, "contexts"_a, "rewards"_a, "rng"_a,
          R"(LinREL over a block of rounds: the largest mean + multiplier x width, with the ``scale`` of ``estimate``.

>>> sums = np.zeros((1, 1)), np.zeros(1), np.empty(0)
>>> play(*sums, 1.0, 0.1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("play_stages", [](const std::vector<Array<double, 2>>& grams, const std::vector<Array<double, 1>>& bs,
                            Const<double, 1> prior_mean, double scale, double multiplier, double horizon,
                            Const<double, 3> contexts, Const<double, 2> rewards, Generator rng, Index pooled) {
        const Index T = rewards.size(0), K = rewards.size(1), d = contexts.size(2), S = Index(grams.size());
        require(pooled == 0 || (pooled > 0 && S == 1), "pooled stages have one model");
        require(S > 0 && bs.size() == grams.size(), "every stage must have its gram and b");
        for (Index s = 0; s < S; ++s) check_pair(grams[s], bs[s], d);
        check_block(contexts, rewards);
        const Prior prior(prior_mean, d);
        Played played = new_played(T);
        auto& [arms, probabilities, got] = played;
        {
            Unlocked unlocked(double(T) * double(d) * double(d) * double(K + 20 * d));
            std::deque<Truncated> models;
            for (Index s = 0; s < S; ++s) models.emplace_back(grams[s].data, bs[s].data, d);
            RestoreTruncated restore(models);
            Staging staging(pooled ? pooled : S, K, horizon, pooled > 0);
            AliveRows rows(K, d);
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * K * d;
                const StagedDecision decision = staging.decide(
                    [&](Index s, const Index* alive, Index n, double* means, double* widths) {
                        const double* some = rows(X, alive, n);
                        models[s].estimate(some, n, scale, means, widths);
                        prior.add(some, n, means);
                        for (Index k = 0; k < n; ++k) widths[k] = multiplier * widths[k];
                    },
                    rng);
                arms[t] = decision.arm, probabilities[t] = decision.probability, got[t] = rewards(t, decision.arm);
                const double* x = X + decision.arm * d;
                if (decision.stage >= 0 || pooled)
                    models[pooled ? 0 : decision.stage].learn(x, prior.beyond(x, got[t]));
            }
            restore.commit();
        }
        return played;
    }, "grams"_a, "bs"_a, "prior_mean"_a, "scale"_a, "multiplier"_a, "horizon"_a, "contexts"_a, "rewards"_a, "rng"_a,
          "pooled"_a = 0,
          R"(SupLinREL over a block of rounds; every stage has its ``gram`` and its ``b``. ``pooled`` as in staged.play.

>>> stages = [np.zeros((1, 1))] * 2, [np.zeros(1)] * 2
>>> play_stages(*stages, np.empty(0), 1.0, 0.1, 7.0, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
