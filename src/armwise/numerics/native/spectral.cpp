// A ridge over the nodes of a graph: A = L + lam I + sum e_a e_a', so theta holds the mean of every node.
//
// With L = Q diag(l) Q' and the rows of Q as features, V = Q' A Q, hence x_a' V^-1 x_a = (A^-1)_aa and x_a.alpha_hat is
// theta_a: the kernels of ridge.hpp serve as they stand, in the basis of the nodes, without the eigenvectors.
#include "modules.hpp"
#include "random.hpp"
#include "ridge.hpp"

#include <nanobind/stl/tuple.h>

#include <vector>

using namespace nb::literals;

namespace armwise {
namespace {

void check(View<const double, 2> model, View<const double, 1> widths) {
    require(model.size(0) == model.size(1) + 1 && widths.size() > 0 && widths.size() <= model.size(1),
            "model must be (D + 1, D) with D at least the number of nodes");
}

// sqrt((A^-1)_aa) of every node, the norm of column a of W; A^-1 = W'W.
void node_widths(View<const double, 2> model, View<double, 1> widths) {
    const Index n = widths.size();
    std::fill(widths.begin(), widths.end(), 0.0);
    for (Index i = 0; i < n; ++i) {
        const View<const double, 1> row = model[i];
        for (Index a = 0; a <= i; ++a) widths[a] += row[a] * row[a];
    }
    for (double& width : widths) width = std::sqrt(width);
}

void learn(View<double, 2> model, View<double, 1> widths, Index arm, double reward, std::vector<double>& x) {
    x.assign(model.size(1), 0.0);
    x[arm] = 1.0;
    update(model.data, model.size(1), x.data(), widths.size(), reward);
    node_widths(model, widths);
}

void scores_into(View<const double, 2> model, View<const double, 1> widths, double c, double* scores) {
    const View<const double, 1> theta = model[model.size(1)];
    for (Index a = 0; a < widths.size(); ++a) scores[a] = theta[a] + c * widths[a];
}

}  // namespace
}  // namespace armwise

using namespace armwise;

void bind_spectral(nb::module_& m) {
    m.doc() = "A ridge over the nodes of a graph: A = L + lam I + sum e_a e_a', so theta holds the mean of every node.";

    m.def("node_widths", [](Const<double, 2> model, Array<double, 1> widths) {
        check(model, widths);
        Unlocked unlocked(double(model.size()) / 2);
        node_widths(model, widths);
    }, "model"_a, "widths"_a, R"(sqrt((A^-1)_aa) of every node, the norm of column a of W; A^-1 = W'W.

>>> model, widths = np.zeros((9, 8)), np.empty(2)
>>> model[:2, :2] = [[3.0, 0.0], [4.0, 2.0]]
>>> node_widths(model, widths)
>>> widths
array([5., 2.]))");

    m.def("learn", [](Array<double, 2> model, Array<double, 1> widths, Index arm, double reward) {
        check(model, widths);
        require_index(arm, widths.size(), "arm must be one of the nodes");
        std::vector<double> x;
        Unlocked unlocked(2.0 * double(model.size()));
        learn(model, widths, arm, reward, x);
    }, "model"_a, "widths"_a, "arm"_a, "reward"_a,
          R"(One node's reward; means and widths of all nodes follow, in O(n) for each of n directions.

>>> model, widths = np.zeros((9, 8)), np.ones(1)
>>> model[0, 0] = 1.0
>>> learn(model, widths, 0, 1.0)
>>> (widths ** 2).round(9)
array([0.5]))");

    m.def("scores", [](Const<double, 2> model, Const<double, 1> widths, double c) {
        check(model, widths);
        New<double, 1> scores(widths.size());
        scores_into(model, widths, c, scores.view.data);
        return scores;
    }, "model"_a, "widths"_a, "c"_a, R"(theta_a + c widths_a of every node.

>>> scores(np.ones((9, 8)), np.ones(2), 0.5)
array([1.5, 1.5]))");

    m.def("play", [](Array<double, 2> model, Array<double, 1> widths, double c, Const<double, 2> rewards,
                     Generator rng) {
        check(model, widths);
        const Index T = rewards.size(0), K = widths.size();
        require(rewards.size(1) == K, "rewards must have one column per node");
        New<int64_t, 1> arms(T);
        New<double, 1> probabilities(T), got(T);
        {
            Unlocked unlocked(2.0 * double(T) * double(model.size()));
            std::vector<double> scores(K), x;
            for (Index t = 0; t < T; ++t) {
                scores_into(model, widths, c, scores.data());
                const Best best = first_best(scores.data(), K);
                const Index arm = best.ties == 1 ? best.first : pick(scores.data(), K, best, rng.random());
                arms[t] = arm, probabilities[t] = 1.0 / double(best.ties), got[t] = rewards(t, arm);
                learn(model, widths, arm, got[t], x);
            }
        }
        return std::make_tuple(std::move(arms), std::move(probabilities), std::move(got));
    }, "model"_a, "widths"_a, "c"_a, "rewards"_a, "rng"_a,
          R"(SpectralUCB over a block of rounds: arms, probabilities, rewards.

>>> model = np.zeros((9, 8))
>>> model[0, 0] = 1.0
>>> play(model, np.ones(1), 1.0, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
