// A ridge over smooth functions on a graph: node a's features are row a of the basis Q, the smoothest eigenvectors of
// the Laplacian. Means and variances of all n nodes are kept, so that a round costs O(n J) for J eigenvectors.
#include "modules.hpp"
#include "random.hpp"
#include "ridge.hpp"

#include <nanobind/stl/tuple.h>

#include <vector>

using namespace nb::literals;

namespace armwise {
namespace {

struct Nodes {
    View<const double, 2> Q;
    View<double, 2> model;
    View<double, 1> means, squares;  // x.alpha_hat and x' V^-1 x of every node

    void check() const {
        const Index n = Q.size(0), D = model.size(1);
        require(n > 0 && means.size() == n && squares.size() == n, "means and squares must have one entry per node");
        require(Q.size(1) > 0 && Q.size(1) <= D && D % LANES == 0 && model.size(0) == D + 1,
                "model must be (D + 1, D), with D the basis's columns rounded up to a multiple of eight");
    }
    Index size() const { return Q.size(0); }
    Index dim() const { return Q.size(1); }
    double work() const { return double(Q.size()) + 4.0 * double(model.size()); }

    void refresh() const {
        estimate_into(model.data, model.size(1), Q.data, size(), dim(), means.data, squares.data);
        for (double& square : squares) square *= square;
    }

    // x = row `arm` of Q: V^-1 loses g g' / (1 + x' V^-1 x), g = V^-1 x, and alpha_hat gains g times the scaled error.
    void learn(Index arm, double reward) const {
        const Index D = model.size(1), d = dim();
        const double* x = Q.data + arm * d;
        Scratch scratch(3 * D, 3 * D);
        double *v = scratch.data(), *p = v + D, *g = p + D;
        std::copy(x, x + d, v);
        const double width = project(model.data, D, v, p), error = reward - padded_dot(model.data + D * D, v, D);
        require(finite(width) && finite(error), OVERFLOWN);
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j <= i; ++j) g[j] += p[i] * model(i, j);
        const double step = 1.0 / (1.0 + width), move = error * step;
        for (Index a = 0; a < size(); ++a) {
            const double along = lane_dot(Q.data + a * d, g, d);
            means[a] += along * move;
            squares[a] = std::max(squares[a] - along * along * step, 0.0);
        }
        update(model.data, D, x, d, reward);
    }

    void scores_into(double c, double* scores) const {
        for (Index a = 0; a < size(); ++a) scores[a] = means[a] + c * std::sqrt(squares[a]);
    }
};

// Rounding adds up in the variances, which only shrink: compute them anew now and then.
int64_t grown_older(const Nodes& nodes, int64_t age) {
    if (++age < 200 + nodes.dim()) return age;
    nodes.refresh();
    return 0;
}

}  // namespace
}  // namespace armwise

using namespace armwise;

void bind_spectral(nb::module_& m) {
    m.doc() = "A ridge over smooth functions on a graph; means and variances of all nodes are kept up to date.";

    m.def("refresh", [](Const<double, 2> Q, Array<double, 2> model, Array<double, 1> means, Array<double, 1> squares) {
        const Nodes nodes{Q, model, means, squares};
        nodes.check();
        Unlocked unlocked(double(Q.size()) * double(Q.size(1)));
        nodes.refresh();
    }, "Q"_a, "model"_a, "means"_a, "squares"_a,
          R"(x.alpha_hat and x' V^-1 x of every node x, a row of Q, from the ridge model.

>>> model, means, squares = np.zeros((9, 8)), np.empty(2), np.empty(2)
>>> model[0, 0], model[8, 0] = 0.5, 3.0
>>> refresh(np.array([[1.0], [2.0]]), model, means, squares)
>>> means, squares
(array([3., 6.]), array([0.25, 1.  ])))");

    m.def("learn", [](Const<double, 2> Q, Array<double, 2> model, Array<double, 1> means, Array<double, 1> squares,
                      int64_t age, Index arm, double reward) {
        const Nodes nodes{Q, model, means, squares};
        nodes.check();
        require_index(arm, nodes.size(), "arm must be one of the nodes");
        Unlocked unlocked(nodes.work());
        nodes.learn(arm, reward);
        return grown_older(nodes, age);
    }, "Q"_a, "model"_a, "means"_a, "squares"_a, "age"_a, "arm"_a, "reward"_a,
          R"(Learn one node's reward, which changes the means and variances of all nodes; return the rewards since they were computed anew.

>>> model, means, squares = np.zeros((9, 8)), np.zeros(1), np.ones(1)
>>> model[0, 0] = 1.0
>>> learn(np.ones((1, 1)), model, means, squares, 0, 0, 1.0), means, squares
(1, array([0.5]), array([0.5])))");

    m.def("scores", [](Const<double, 1> means, Const<double, 1> squares, double c) {
        require(means.size() == squares.size(), "means and squares must have one entry per node");
        New<double, 1> scores(means.size());
        for (Index a = 0; a < means.size(); ++a) scores[a] = means[a] + c * std::sqrt(squares[a]);
        return scores;
    }, "means"_a, "squares"_a, "c"_a, R"(Mean plus c standard deviations of every node.

>>> scores(np.ones(2), np.array([1.0, 4.0]), 0.5)
array([1.5, 2. ]))");

    m.def("play", [](Const<double, 2> Q, Array<double, 2> model, Array<double, 1> means, Array<double, 1> squares,
                     int64_t age, double c, Const<double, 2> rewards, Generator rng) {
        const Nodes nodes{Q, model, means, squares};
        nodes.check();
        const Index T = rewards.size(0), K = nodes.size();
        require(rewards.size(1) == K, "rewards must have one column per node");
        New<int64_t, 1> arms(T);
        New<double, 1> probabilities(T), got(T);
        {
            Unlocked unlocked(double(T) * nodes.work());
            std::vector<double> scores(K);
            for (Index t = 0; t < T; ++t) {
                nodes.scores_into(c, scores.data());
                const Best best = first_best(scores.data(), K);
                const Index arm = best.ties == 1 ? best.first : pick(scores.data(), K, best, rng.random());
                arms[t] = arm, probabilities[t] = 1.0 / double(best.ties), got[t] = rewards(t, arm);
                nodes.learn(arm, got[t]);
                age = grown_older(nodes, age);
            }
        }
        return std::make_tuple(std::move(arms), std::move(probabilities), std::move(got), age);
    }, "Q"_a, "model"_a, "means"_a, "squares"_a, "age"_a, "c"_a, "rewards"_a, "rng"_a,
          R"(SpectralUCB over a block of rounds: arms, probabilities, rewards, and the age.

>>> model = np.zeros((9, 8))
>>> model[0, 0] = 1.0
>>> play(np.ones((1, 1)), model, np.zeros(1), np.ones(1), 0, 1.0, np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.]), 2))");
}
