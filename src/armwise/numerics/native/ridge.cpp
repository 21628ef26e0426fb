// Bindings of ridge.hpp, and blocks of optimistic rounds.
#include "block.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

Models one_model(const View<double, 2>& model, Index d) {
    View<double, 3> models;
    models.data = model.data;
    models.shape[0] = 1, models.shape[1] = model.shape[0], models.shape[2] = model.shape[1];
    return as_models(models, d);
}

double work(const Models& models, Index rows) {
    return double(models.arms(rows)) * double(models.d) * double(models.d);
}

New<double, 1> optimistic_scores(Array<double, 3> array, Const<double, 2> X, double lam, double alpha, double noise,
                                 double delta) {
    Models models = as_models(array, X.size(1));
    models.lam = lam;
    require(X.size(0) > 0, "X must have a row");
    const Index K = models.arms(X.size(0));
    New<double, 1> scores(K);
    Unlocked unlocked(work(models, X.size(0)));
    Scratch widths(K);
    optimistic(models, X.data, X.size(0), Width{alpha, noise, delta}, scores.view.data, widths.data());
    return scores;
}

// Plays the largest optimistic score; ties are broken with the generator.
class Optimist {
  public:
    Optimist(const Models& models, Index rows, Width width, Generator rng)
        : models_(models), rows_(rows), width_(width), rng_(rng), scores_(std::size_t(models.arms(rows))),
          widths_(scores_.size()) {}

    Decision decide(const double* X) {
        const Index K = Index(scores_.size());
        optimistic(models_, X, rows_, width_, scores_.data(), widths_.data());
        const Best best = first_best(scores_.data(), K);
        const double u = best.ties > 1 ? rng_.random() : 0.0;
        return {pick(scores_.data(), K, best, u), 1.0 / double(best.ties)};
    }

  private:
    const Models& models_;
    Index rows_;
    Width width_;
    Generator rng_;
    std::vector<double> scores_, widths_;
};

}  // namespace

void bind_ridge(nb::module_& m) {
    m.doc() = "Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix.";

    m.def("update", [](Array<double, 2> model, Const<double, 1> x, double reward) {
        const Models models = one_model(model, x.size());
        update(models[0], models.D, x.data, models.d, reward);
    }, "model"_a, "x"_a, "reward"_a, R"(A += x x', b += r x: Carlson's step on W, and theta to match.

>>> model = np.zeros((9, 8)); model[0, 0] = 1.0
>>> update(model, np.ones(1), 1.0)
>>> model[8, :1], model[0, :1] ** 2
(array([0.5]), array([0.5])))");

    m.def("update_rows", [](Array<double, 2> model, Const<double, 2> X, Const<double, 1> rewards) {
        const Models models = one_model(model, X.size(1));
        require(X.size(0) == rewards.size(), "rewards must have one number per row of X");
        Unlocked unlocked(work(models, X.size(0)));
        Undo undo(models);
        undo.touch(0);
        for (Index t = 0; t < rewards.size(); ++t) update(models[0], models.D, X[t].data, models.d, rewards[t]);
        undo.commit();
    }, "model"_a, "X"_a, "rewards"_a, R"(``update`` with every row of X and its reward, in order.

>>> model = np.zeros((9, 8)); model[0, 0] = 1.0
>>> update_rows(model, np.ones((3, 1)), np.ones(3))
>>> model[8, :1]
array([0.75]))");

    m.def("log_det", [](Array<double, 2> model, Index d) {
        const Models models = one_model(model, d);
        return log_det(models[0], models.D, d);
    }, "model"_a, "d"_a, R"(ln det A, from the diagonal of W.

>>> model = np.zeros((9, 8)); model[0, 0] = np.exp(-1.5)
>>> log_det(model, 1)
3.0)");

    m.def("refit", [](Array<double, 2> model, Const<double, 2> A, Const<double, 1> b) {
        const Models models = one_model(model, b.size());
        require(A.size(0) == b.size() && A.size(1) == b.size(), "A must have shape (d, d)");
        refit(models[0], models.D, A.data, b.data, models.d);
    }, "model"_a, "A"_a, "b"_a, R"(W and theta computed afresh from A and b.

>>> model = np.zeros((9, 8))
>>> refit(model, np.array([[4.0]]), np.array([2.0]))
>>> model[0, :1], model[8, :1]
(array([0.5]), array([0.5])))");

    m.def("learn_row", [](Array<double, 3> array, Index m, Const<double, 2> X, Index row, double reward) {
        const Models models = as_models(array, X.size(1));
        require_index(m, models.M, "m must be the index of a model");
        require_index(row, X.size(0), "row must be the index of a row of X");
        require(all_within(X.data, X.size()), TOO_LARGE);
        update(models[m], models.D, X[row].data, models.d, reward);
    }, "models"_a, "m"_a, "X"_a, "row"_a, "reward"_a, R"(Learn row ``row`` of X, all of it checked, into model ``m``.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> learn_row(models, 0, np.ones((1, 1)), 0, 1.0)
>>> models[0, 8, :1]
array([0.5]))");

    m.def("revise", [](Array<double, 3> array, Index m, Const<double, 2> X, Index row, double change) {
        const Models models = as_models(array, X.size(1));
        require_index(m, models.M, "m must be the index of a model");
        require_index(row, X.size(0), "row must be the index of a row of X");
        revise(models[m], models.D, X[row].data, models.d, change);
    }, "models"_a, "m"_a, "X"_a, "row"_a, "change"_a,
          R"(Change by ``change`` the reward that row ``row`` of X was learnt with.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> learn_row(models, 0, np.ones((1, 1)), 0, 0.0)
>>> revise(models, 0, np.ones((1, 1)), 0, 1.0)
>>> models[0, 8, :1]
array([0.5]))");

    m.def("learn", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments, Index m,
                      Const<double, 2> X, Index row, double reward, double lam, double discount) {
        const Models models = as_models(array, grams, moments, X.size(1), lam, discount);
        require_index(m, models.M, "m must be the index of a model");
        require_index(row, X.size(0), "row must be the index of a row of X");
        learn(models, m, X[row].data, reward);
    }, "models"_a, "grams"_a, "moments"_a, "m"_a, "X"_a, "row"_a, "reward"_a, "lam"_a, "discount"_a,
          R"(``learn_row``, where what was learnt before may fade and the ridge stays: A = lam I + sum discount^age x x'.

>>> models, A = np.zeros((1, 9, 8)), np.ones((1, 1, 1))
>>> learn(models, A, np.zeros((1, 1)), 0, np.ones((1, 1)), 0, 1.0, 1.0, 0.5)
>>> A, models[0, 8, :1]
(array([[[2.]]]), array([0.5])))");

    m.def("estimate_into", [](Array<double, 2> model, Const<double, 2> X, Array<double, 1> means,
                              Array<double, 1> widths) {
        const Models models = one_model(model, X.size(1));
        require(means.size() == X.size(0) && widths.size() == X.size(0), "means and widths need one number per row");
        Unlocked unlocked(work(models, X.size(0)));
        estimate_into(models[0], models.D, X.data, X.size(0), models.d, means.data, widths.data);
    }, "model"_a, "X"_a, "means"_a, "widths"_a,
          R"(Means x.theta and widths sqrt(x' A^-1 x) of every row of X under one model.

>>> model = np.zeros((9, 8)); model[0, 0] = 0.5; model[8, 0] = 3.0
>>> means, widths = np.empty(1), np.empty(1)
>>> estimate_into(model, np.array([[2.0]]), means, widths)
>>> means, widths
(array([6.]), array([1.])))");

    m.def("estimate_all", [](Array<double, 3> array, Const<double, 1> x) {
        const Models models = as_models(array, x.size());
        New<double, 1> means(models.M), widths(models.M);
        {
            Unlocked unlocked(work(models, 1));
            estimate_all_into(models, x.data, means.view.data, widths.view.data);
        }
        return std::make_tuple(means, widths);
    }, "models"_a, "x"_a, R"(Mean and width of one row x under every model.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
>>> estimate_all(models, np.array([2.0]))
(array([6.]), array([1.])))");

    m.def("optimistic", optimistic_scores, "models"_a, "X"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a,
          R"(Mean plus multiplier times width: of each row under the one model, or of the one row under each model.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
>>> optimistic(models, np.array([[2.0]]), 4.0, 0.1, 0.0, 1.0)
array([6.1]))");

    m.def("choose_optimistic", [](Array<double, 3> array, Const<double, 2> X, double lam, double alpha, double noise,
                                  double delta) {
        Models models = as_models(array, X.size(1));
        models.lam = lam;
        require(X.size(0) > 0, "X must have a row");
        require(all_within(X.data, X.size()), TOO_LARGE);
        const Index K = models.arms(X.size(0));
        Best best;
        {
            Unlocked unlocked(work(models, X.size(0)));
            Scratch scratch(2 * K);
            double* scores = scratch.data();
            optimistic(models, X.data, X.size(0), Width{alpha, noise, delta}, scores, scores + K);
            best = first_best(scores, K);
        }
        return std::make_tuple(best.first, best.ties);
    }, "models"_a, "X"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a,
          R"(The first arm with the largest optimistic score, and how many arms tie with it.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5
>>> choose_optimistic(models, np.array([[1.0], [2.0], [2.0]]), 4.0, 0.1, 0.0, 1.0)
(1, 2))");

    m.def("play_optimistic", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                                Const<double, 3> contexts, Const<double, 2> rewards, double lam, double discount,
                                double alpha, double noise, double delta, Generator rng) {
        const Models models = as_models(array, grams, moments, contexts.size(2), lam, discount);
        const Index rows = contexts.size(1);
        Optimist optimist(models, rows, Width{alpha, noise, delta}, rng);
        return play_models(models, contexts, rewards, [&](const double* X, Index) { return optimist.decide(X); });
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "rewards"_a, "lam"_a, "discount"_a, "alpha"_a, "noise"_a,
          "delta"_a, "rng"_a,
          R"(Optimism over a block of rounds; ``contexts`` is (T, K, d) for one model, (T, 1, d) for one model per arm.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> none = np.zeros((1, 0, 0))
>>> play_optimistic(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1.0, 0.0, 1.0,
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("choose_many", [](Array<double, 3> array, Const<double, 3> contexts, double lam, double alpha, double noise,
                            double delta, Generator rng) {
        Models models = as_models(array, contexts.size(2));
        models.lam = lam;
        Optimist optimist(models, contexts.size(1), Width{alpha, noise, delta}, rng);
        return choose_models(models, contexts, [&](const double* X, Index) { return optimist.decide(X); });
    }, "models"_a, "contexts"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a, "rng"_a,
          R"(The arms of ``play_optimistic`` and their probabilities, without learning in between.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> choose_many(models, np.ones((2, 1, 1)), 1.0, 1.0, 0.0, 1.0, np.random.default_rng(1))
(array([0, 0]), array([1., 1.])))");

    m.def("learn_many", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                           Const<double, 3> contexts, Const<int64_t, 1> arms, Const<double, 1> rewards, double lam,
                           double discount) {
        learn_models(as_models(array, grams, moments, contexts.size(2), lam, discount), contexts, arms, rewards);
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "arms"_a, "rewards"_a, "lam"_a, "discount"_a,
          R"(``learn`` for the arm of every round, in order, or nothing at all.

>>> models, none = np.zeros((1, 9, 8)), np.zeros((1, 0, 0))
>>> models[0, 0, 0] = 1.0
>>> learn_many(models, none, none[0], np.ones((3, 1, 1)), np.zeros(3, np.int64), np.ones(3), 1.0, 1.0)
>>> models[0, 8, :1]
array([0.75]))");
}
