// Bindings of ridge.hpp, and blocks of optimistic rounds.
#include "block.hpp"
#include "many.hpp"
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
                                 double delta, double extra, double beyond) {
    Models models = as_models(array, X.size(1));
    models.lam = lam;
    require(X.size(0) > 0, "X must have a row");
    const Index K = models.arms(X.size(0));
    New<double, 1> scores(K);
    Unlocked unlocked(work(models, X.size(0)));
    Scratch widths(K);
    optimistic(models, X.data, X.size(0), Width{alpha, noise, delta, extra, beyond}, scores.view.data, widths.data());
    return scores;
}

// A squared width rounded as in `optimistic`, which squares a root.
double root_square(double square) {
    const double root = std::sqrt(square);
    return root * root;
}

// `optimistic` for a choice alone: with a model per arm, an arm that can neither win nor tie is left at -infinity. As A is
// at least lam I, x' A^-1 x <= ||x||^2 / lam finds most such arms without their d^2 products.
void leading_scores(const Models& models, const double* X, Index rows, const Width& width, double* scores,
                    double* widths) {
    if (!models.disjoint() || width.noise > 0.0) return optimistic(models, X, rows, width, scores, widths);
    const Index D = models.D, M = models.M;
    Scratch scratch(2 * D, D);
    double *x = scratch.data(), *p = x + D;
    std::copy(X, X + models.d, x);
    double *means = widths, top = -std::numeric_limits<double>::infinity();
    Index first = 0;
    for (Index m = 0; m < M; ++m) {
        means[m] = padded_dot(models.theta(m), x, D);
        if (means[m] > means[first]) first = m;
    }
    const double leader = width.compares() ? root_square(project(models[first], D, x, p)) : 1.0;
    const auto margin = [&](double square) {
        return width.compares() ? width.margin(root_square(square), leader) : width.alpha * std::sqrt(square);
    };
    const double widest = margin(padded_dot(x, x, D) / models.lam) * (1.0 + 1e-9);
    for (Index m = 0; m < M; ++m) require(is_finite(means[m] + widest), OVERFLOWN);
    for (Index k = 0; k < M; ++k) {  // the largest mean first, as it leaves few others
        const Index m = k == 0 ? first : k <= first ? k - 1 : k;
        if (width.compares() && models.untried(m)) {
            scores[m] = top = std::numeric_limits<double>::infinity();
            continue;
        }
        const double slack = 1e-9 * (std::fabs(means[m]) + widest) + TIE;
        if (means[m] + widest + slack < top) {
            scores[m] = -std::numeric_limits<double>::infinity();
            continue;
        }
        scores[m] = means[m] + margin(project(models[m], D, x, p));
        require(is_finite(scores[m]), OVERFLOWN);
        top = std::max(top, scores[m]);
    }
}

// Play the largest optimistic score; the generator breaks ties.
class Rounds {
  public:
    Rounds(const Models& models, Index rows, Width width, Generator rng)
        : models_(models), rows_(rows), width_(width), rng_(rng), scores_(std::size_t(models.arms(rows))),
          widths_(scores_.size()) {}

    Decision decide(const double* X) {
        const Index K = Index(scores_.size());
        leading_scores(models_, X, rows_, width_, scores_.data(), widths_.data());
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

// An array without a copy: rows of d numbers (one row with a model per arm), or nothing.
struct Plain {
    const double* data = nullptr;
    Index rows = 0;

    Plain(nb::handle context, Index d, bool one_row) {
        auto* array = reinterpret_cast<PyArrayObject*>(context.ptr());
        if (!PyArray_CheckExact(context.ptr()) || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array) ||
            PyArray_NDIM(array) != (one_row ? 1 : 2) || PyArray_DIM(array, one_row ? 0 : 1) != d)
            return;
        rows = one_row ? 1 : PyArray_DIM(array, 0);
        if (rows > 0) data = static_cast<const double*>(PyArray_DATA(array));
    }
};

// A choice, (int, float or None, ...), and its reward, a number within MAX_MAGNITUDE; nothing for anything else.
struct Outcome {
    Index arm = -1;
    double reward = 0.0;
    bool usual = false;

    Outcome(nb::handle choice, nb::handle value) {
        if (!PyTuple_Check(choice.ptr()) || PyTuple_GET_SIZE(choice.ptr()) < 2) return;
        PyObject *which = PyTuple_GET_ITEM(choice.ptr(), 0), *p = PyTuple_GET_ITEM(choice.ptr(), 1);
        if (!PyLong_CheckExact(which) || (p != Py_None && !PyFloat_CheckExact(p))) return;
        if (p != Py_None && !(PyFloat_AS_DOUBLE(p) > 0.0 && PyFloat_AS_DOUBLE(p) <= 1.0)) return;
        if (!PyFloat_Check(value.ptr()) && !PyLong_CheckExact(value.ptr())) return;  // numpy.float64 is a float
        arm = PyLong_AsSsize_t(which), reward = PyFloat_AsDouble(value.ptr());
        usual = !PyErr_Occurred() && std::fabs(reward) <= MAX_MAGNITUDE;
        PyErr_Clear();  // integers too large for a double
    }
};

// Ridge models with an optimistic width: a decision is a call with the context alone.
class Optimist {
  public:
    Optimist(nb::object array, Index d, bool per_arm, bool learns, double centre, double lam, double alpha, double noise,
             double delta, double extra, double beyond)
        : array_(std::move(array)), d_(d), per_arm_(per_arm), learns_(learns), centre_(centre),
          width_{alpha, noise, delta, extra, beyond} {
        if (d == 0) return;  // unknown so far: no context is read
        models_ = as_models(nb::cast<Array<double, 3>>(array_), d);
        require(per_arm || models_.M == 1, "several models need per_arm");
        models_.lam = lam;
    }
    // The best arm, or -1 where arms tie or the context is no array of float64 of the right shape.
    Index choose(nb::handle context) {
        const Plain X(context, d_, per_arm_);
        if (!X.data || d_ == 0) return -1;
        Best best;
        {
            Unlocked unlocked(work(models_, X.rows));
            best = per_arm_ ? best_of_models(X.data) : best_of_rows(X.data, X.rows);
        }
        if (X.rows * d_ >= MIN_REMEMBERED) checked_ = reference(context);
        return best.ties == 1 ? best.first : -1;
    }
    // Learn the reward of a choice; return false, with nothing learnt, for input that Python must check.
    bool learn(nb::handle context, nb::handle choice, nb::handle value) {
        const Plain X(context, d_, per_arm_);
        const Outcome outcome(choice, value);
        const Index arm = outcome.arm, row = per_arm_ ? 0 : arm;
        if (!learns_ || !X.data || d_ == 0 || !outcome.usual || arm < 0 || arm >= models_.arms(X.rows)) return false;
        const bool seen = X.rows * d_ >= MIN_REMEMBERED && reference(context).is(checked_);  // then only the learnt row is checked
        require(seen ? all_within(X.data + row * d_, d_) : all_within(X.data, X.rows * d_), TOO_LARGE);
        const double centred = outcome.reward - centre_;
        update(models_[per_arm_ ? arm : 0], models_.D, X.data + row * d_, d_, centred, models_.counted);
        return true;
    }
    nb::tuple arguments() const {
        return nb::make_tuple(array_, d_, per_arm_, learns_, centre_, models_.lam, width_.alpha, width_.noise,
                              width_.delta, width_.extra, width_.beyond);
    }

  private:
    static constexpr Index MIN_REMEMBERED = 4096;  // numbers of a context: smaller ones are faster to check again

    nb::object array_, checked_;
    Index d_;
    bool per_arm_, learns_;
    double centre_;
    Models models_{};
    Width width_;

    // An object's weak reference: the same one while the object lives, and never another object's.
    static nb::object reference(nb::handle object) { return nb::steal(PyWeakref_NewRef(object.ptr(), nullptr)); }

    Best best_of_models(const double* x) const {
        require(all_within(x, d_), TOO_LARGE);
        return first_best_of(x, 1);
    }
    Best best_of_rows(const double* X, Index rows) const {
        if (width_.compares()) {
            require(all_within(X, rows * d_), TOO_LARGE);
            return first_best_of(X, rows);
        }
        const double scale = width_.multiplier(models_[0], models_.D, d_, models_.lam);
        const Leader leader = best_optimistic(models_[0], models_.D, X, rows, d_, scale);
        return leader.clear() ? leader.best() : first_best_of(X, rows);
    }
    Best first_best_of(const double* X, Index rows) const {
        const Index K = models_.arms(rows);
        Scratch scratch(2 * K);
        double* scores = scratch.data();
        leading_scores(models_, X, rows, width_, scores, scores + K);
        return first_best(scores, K);
    }
};

}  // namespace

void bind_ridge(nb::module_& m) {
    m.doc() = "Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix.";
    nb::exception<NotPositiveDefinite>(m, "NotPositiveDefinite", PyExc_ValueError);

    m.def("update", [](Array<double, 2> model, Const<double, 1> x, double reward) {
        const Models models = one_model(model, x.size());
        update(models[0], models.D, x.data, models.d, reward, models.counted);
    }, "model"_a, "x"_a, "reward"_a, R"(A += x x', b += r x: Carlson's step on W, and theta with it.

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
        for (Index t = 0; t < rewards.size(); ++t) update(models[0], models.D, X[t].data, models.d, rewards[t], models.counted);
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

    m.def("refit", [](Array<double, 2> model, Const<double, 2> A, Const<double, 1> b, Const<double, 1> rows) {
        const Models models = one_model(model, b.size());
        require(A.size(0) == b.size() && A.size(1) == b.size(), "A must have shape (d, d)");
        require(rows.size() == (models.counted ? b.size() : 0), "rows must be the sum of the rows where they are counted");
        refit(models[0], models.D, A.data, b.data, models.d, models.counted ? rows.data : nullptr);
    }, "model"_a, "A"_a, "b"_a, "rows"_a, R"(Compute W and theta anew from A and b, and h from the sum of the rows (empty: the model has none).

>>> model = np.zeros((9, 8))
>>> refit(model, np.array([[4.0]]), np.array([2.0]), np.zeros(0))
>>> model[0, :1], model[8, :1]
(array([0.5]), array([0.5])))");

    m.def("revise", [](Array<double, 3> array, Index m, Const<double, 2> X, Index row, double change) {
        const Models models = as_models(array, X.size(1));
        require_index(m, models.M, "m must be the index of a model");
        require_index(row, X.size(0), "row must be the index of a row of X");
        revise(models[m], models.D, X[row].data, models.d, change);
    }, "models"_a, "m"_a, "X"_a, "row"_a, "change"_a,
          R"(Add ``change`` to the learnt reward of row ``row`` of X.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> update(models[0], np.ones(1), 0.0)
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
          R"(Learn row ``row`` of X into model ``m``; earlier rows fade by the discount, the ridge does not: A = lam I + sum discount^age x x'.

>>> models, A = np.zeros((1, 9, 8)), np.ones((1, 1, 1))
>>> learn(models, A, np.zeros((3, 1)), 0, np.ones((1, 1)), 0, 1.0, 1.0, 0.5)
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
          "extra"_a = 0.0, "beyond"_a = 1.0,
          R"(Mean plus multiplier times width: of each row under the one model, or of the one row under each model.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
>>> optimistic(models, np.array([[2.0]]), 4.0, 0.1, 0.0, 1.0)
array([6.1]))");

    m.def("widen", [](Const<double, 1> means, Const<double, 1> widths, double alpha, double extra, double beyond) {
        const Index K = means.size();
        require(K > 0 && widths.size() == K, "means and widths must have the same length, at least 1");
        New<double, 1> scores(K);
        std::copy(means.begin(), means.end(), scores.view.begin());
        widen(scores.view.data, widths.data, K, Width{alpha, 0.0, 1.0, extra, beyond});
        return scores;
    }, "means"_a, "widths"_a, "alpha"_a, "extra"_a, "beyond"_a,
          R"(Means plus margins; an arm known much less than the leading one gets a larger margin (see ``Width``).

>>> widen(np.array([1.0, 0.0]), np.array([0.1, 0.2]), 1.0, 1.0, 10.0)
array([1.1, 0.2]))");

    nb::class_<Optimist>(m, "Optimist", R"(Ridge models with an optimistic width, for one decision at a time.

``d`` is the dimension (0: unknown so far). With ``per_arm`` each arm has a model over a shared context; with ``learns``
a reward, less ``centre``, is learnt by ``update`` alone.)")
        .def(nb::init<nb::object, Index, bool, bool, double, double, double, double, double, double, double>(), "models"_a, "d"_a,
             "per_arm"_a, "learns"_a, "centre"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a, "extra"_a = 0.0, "beyond"_a = 1.0)
        .def("choose", &Optimist::choose, "context"_a.none(),
             nb::sig("def choose(self, context: object) -> int"),
             R"(The arm with the largest optimistic score, in one pass over the context.

-1 where arms tie, or where the context is no C-contiguous array of float64 of the right shape.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5
>>> optimist = Optimist(models, 1, False, True, 0.0, 4.0, 0.1, 0.0, 1.0)
>>> optimist.choose(np.array([[1.0], [2.0]])), optimist.choose(np.array([[2.0], [2.0]])), optimist.choose([[1.0]])
(1, -1, -1))")
        .def("learn", &Optimist::learn, "context"_a.none(), "choice"_a, "reward"_a.none(),
             nb::sig("def learn(self, context: object, choice: tuple[object, ...], reward: object) -> bool"),
             R"(Learn the reward of a choice; return False, with nothing learnt, for input that Python must check.

Of a large context, if it is that of the last choice, only the learnt row is checked.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> optimist = Optimist(models, 1, False, True, 0.0, 1.0, 0.1, 0.0, 1.0)
>>> optimist.learn(np.ones((2, 1)), (1, 0.5), 1.0), optimist.learn(np.ones((2, 1)), (2, 0.5), 1.0)
(True, False)
>>> models[0, 8, :1]
array([0.5]))")
        .def("__reduce__", [](const Optimist& self) {
            return nb::make_tuple(nb::module_::import_("armwise.native").attr("make_optimist"), self.arguments());
        }, nb::sig("def __reduce__(self) -> tuple[object, ...]"));

    m.def("play_optimistic", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                                Const<double, 3> contexts, Const<double, 2> rewards, double lam, double discount,
                                double alpha, double noise, double delta, double extra, double beyond,
                                Generator rng) {
        const Models models = as_models(array, grams, moments, contexts.size(2), lam, discount);
        const Index rows = contexts.size(1);
        Rounds rounds(models, rows, Width{alpha, noise, delta, extra, beyond}, rng);
        return play_models(models, contexts, rewards, [&](const double* X, Index) { return rounds.decide(X); });
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "rewards"_a, "lam"_a, "discount"_a, "alpha"_a, "noise"_a,
          "delta"_a, "extra"_a, "beyond"_a, "rng"_a,
          R"(Optimism over a block of rounds; ``contexts`` is (T, K, d) for one model, (T, 1, d) for one model per arm.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> none = np.zeros((1, 0, 0))
>>> play_optimistic(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0,
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("choose_many", [](Array<double, 3> array, Const<double, 3> contexts, double lam, double alpha, double noise,
                            double delta, double extra, double beyond, Generator rng) {
        Models models = as_models(array, contexts.size(2));
        models.lam = lam;
        Rounds rounds(models, contexts.size(1), Width{alpha, noise, delta, extra, beyond}, rng);
        return choose_models(models, contexts, [&](const double* X, Index) { return rounds.decide(X); });
    }, "models"_a, "contexts"_a, "lam"_a, "alpha"_a, "noise"_a, "delta"_a, "extra"_a, "beyond"_a, "rng"_a,
          R"(The arms of ``play_optimistic`` and their probabilities, without learning in between.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> choose_many(models, np.ones((2, 1, 1)), 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, np.random.default_rng(1))
(array([0, 0]), array([1., 1.])))");

    m.def("learn_many", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                           Const<double, 3> contexts, Const<int64_t, 1> arms, Const<double, 1> rewards, double lam,
                           double discount) {
        learn_models(as_models(array, grams, moments, contexts.size(2), lam, discount), contexts, arms, rewards);
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "arms"_a, "rewards"_a, "lam"_a, "discount"_a,
          R"(``learn`` for the arm of every round, in order; if one is refused, learn none.

>>> models, none = np.zeros((1, 9, 8)), np.zeros((1, 0, 0))
>>> models[0, 0, 0] = 1.0
>>> learn_many(models, none, none[0], np.ones((3, 1, 1)), np.zeros(3, np.int64), np.ones(3), 1.0, 1.0)
>>> models[0, 8, :1]
array([0.75]))");
}
