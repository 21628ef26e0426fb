// SquareCB and RegCB over ridge models: single steps and blocks.
#include "regression.hpp"
#include "kary.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

// `estimate`, with a check for overflow.
void checked_estimate(const Models& models, const double* X, Index rows, double* means, double* widths) {
    estimate(models, X, rows, means, widths);
    bool all = true;
    for (Index a = 0; a < models.arms(rows); ++a) all &= is_finite(means[a]) && is_finite(widths[a]);
    require(all, OVERFLOWN);
}

// Draw by inverse-gap weighting.
class InverseGap {
  public:
    InverseGap(const Models& models, Index rows, const Width& width, Generator rng)
        : models_(models), rows_(rows), width_(width), rng_(rng), means_(std::size_t(models.arms(rows))), widths_(means_.size()),
          p_(means_.size()) {}

    Decision decide(const double* X, double gamma) {
        const Index K = Index(p_.size());
        checked_estimate(models_, X, rows_, means_.data(), widths_.data());
        if (width_.compares()) widen(means_.data(), widths_.data(), K, width_);
        if (!untried_first(models_, p_.data())) inverse_gap(means_.data(), K, gamma, p_.data());
        const Index arm = draw(p_.data(), K, rng_.random());
        return {arm, p_[std::size_t(arm)]};
    }

  private:
    const Models& models_;
    Index rows_;
    Width width_;
    Generator rng_;
    std::vector<double> means_, widths_, p_;
};

// The parameters of RegCB's bounds.
struct Bounds {
    double lam, mellowness, extra, beyond;
    Range range;
    bool elimination;

    Width width(Index t, Index K) const { return {confidence(t, K, mellowness), 0.0, 1.0, extra, beyond}; }
};

// Draw among the arms that the confidence bounds leave.
class Confident {
  public:
    Confident(const Models& models, Index rows, const Bounds& bounds, Generator rng)
        : models_(models), rows_(rows), bounds_(bounds), rng_(rng),
          means_(std::size_t(models.arms(rows))), widths_(means_.size()), low_(means_.size()), high_(means_.size()),
          p_(means_.size()), squares_(std::size_t(rows)) {}

    Decision decide(const double* X, Index t) {
        const Index K = Index(p_.size());
        checked_estimate(models_, X, rows_, means_.data(), widths_.data());
        squares_into(X, rows_, models_.d, squares_.data());
        cut(means_.data(), widths_.data(), K, bounds_.width(t, K), squares_.data(), rows_, bounds_.lam, bounds_.range,
            low_.data(), high_.data());
        confident(low_.data(), high_.data(), K, bounds_.elimination, p_.data());
        const Index arm = draw(p_.data(), K, rng_.random());
        return {arm, p_[std::size_t(arm)]};
    }

  private:
    const Models& models_;
    Index rows_;
    Bounds bounds_;
    Generator rng_;
    std::vector<double> means_, widths_, low_, high_, p_, squares_;
};

}  // namespace

void bind_regression(nb::module_& m) {
    m.doc() = "Exploration over regression estimates: inverse-gap weighting and confidence sets, step and block.";

    m.def("inverse_gap", [](Const<double, 1> means, double gamma) {
        New<double, 1> p(means.size());
        inverse_gap(means.data, means.size(), gamma, p.view.data);
        return p;
    }, "means"_a, "gamma"_a,
          R"(p_a = 1 / (K + gamma (best - mean_a)) for all arms but the best, which has the rest (Foster and Rakhlin 2020).

Where arms tie for the best, the distribution is averaged over the choice of the best.

>>> inverse_gap(np.array([0.5, 1.0]), 4.0)
array([0.25, 0.75])
>>> inverse_gap(np.array([1.0, 1.0]), 4.0)
array([0.5, 0.5]))");

    m.def("untried", [](Array<double, 3> array, Index d) {
        const Models models = as_models(array, d);
        New<double, 1> p(models.M);
        const bool some = untried_first(models, p.view.data);
        return std::make_tuple(some, std::move(p));
    }, "models"_a, "d"_a, R"(Whether some arms with models of their own remember no reward, and the uniform distribution over these.

>>> models = np.zeros((2, 11, 8)); models[0, 10, 0] = 1.0
>>> untried(models, 1)
(True, array([0., 1.])))");

    m.def("estimates", [](Array<double, 3> array, Const<double, 2> X) {
        const Models models = as_models(array, X.size(1));
        require(X.size(0) > 0, "X must have a row");
        const Index K = models.arms(X.size(0));
        New<double, 1> means(K), widths(K);
        {
            Unlocked unlocked(double(K) * double(models.d) * double(models.d));
            checked_estimate(models, X.data, X.size(0), means.view.data, widths.view.data);
        }
        return std::make_tuple(means, widths);
    }, "models"_a, "X"_a, R"(Means and widths: of each row under the one model, or of the one row under each model.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 8, 0] = 3.0
>>> estimates(models, np.array([[2.0]]))
(array([6.]), array([1.])))");

    m.def("squares", [](Const<double, 2> X) {
        New<double, 1> squares(X.size(0));
        squares_into(X.data, X.size(0), X.size(1), squares.view.data);
        return squares;
    }, "X"_a, R"(||x||^2 of each row.

>>> squares(np.array([[3.0, 4.0]]))
array([25.]))");

    m.attr("MIN_RIDGE_SHARE") = MIN_RIDGE_SHARE;
    m.def("cut", [](Const<double, 1> means, Const<double, 1> widths, double radius, double extra, double beyond,
                    Const<double, 1> squares, double lam, double least, double most) {
        const Index K = means.size();
        require(widths.size() == K, "means and widths must have the same length");
        require(squares.size() == K || squares.size() == 1, "squares must have one number per arm, or one for all");
        New<double, 1> low(K), high(K);
        cut(means.data, widths.data, K, Width{radius, 0.0, 1.0, extra, beyond}, squares.data, squares.size(), lam,
            Range{least, most}, low.view.data, high.view.data);
        return std::make_tuple(low, high);
    }, "means"_a, "widths"_a, "radius"_a, "extra"_a, "beyond"_a, "squares"_a, "lam"_a, "least"_a, "most"_a,
          R"(The bounds mean -+ margin, cut to [least, most]; all of the range for an arm in whose direction nothing is learnt.

>>> cut(np.array([0.5, 0.9]), np.array([0.2, 0.2]), 1.0, 0.0, 1.0, np.ones(2), 1.0, 0.0, 1.0)
(array([0.3, 0.7]), array([0.7, 1. ]))
>>> cut(np.array([0.5]), np.array([1.0]), 0.1, 0.0, 1.0, np.ones(1), 1.0, 0.0, 1.0)
(array([0.]), array([1.])))");

    m.def("confident", [](Const<double, 1> low, Const<double, 1> high, bool elimination) {
        require(low.size() == high.size() && low.size() > 0, "low and high must have the same length, at least 1");
        New<double, 1> p(low.size());
        confident(low.data, high.data, low.size(), elimination, p.view.data);
        return p;
    }, "low"_a, "high"_a, "elimination"_a,
          R"(Uniform over the arms with the largest upper bound (Foster et al. 2018, Algorithm 2); with ``elimination`` over
the arms whose upper bound reaches the largest lower bound (Algorithm 1).

>>> low, high = np.array([0.4, 0.3, 0.0]), np.array([0.6, 0.5, 0.2])
>>> confident(low, high, False), confident(low, high, True)
(array([1., 0., 0.]), array([0.5, 0.5, 0. ])))");

    m.def("gap_scale", gap_scale, "t"_a, "scale"_a, "exponent"_a, R"(gamma_t = scale t^exponent.

>>> gap_scale(4, 10.0, 0.5)
20.0)");

    m.def("confidence", confidence, "t"_a, "K"_a, "mellowness"_a,
          R"(sqrt(beta_t), beta_t = mellowness ln(K t) the excess loss that a regressor in the confidence set may have.

>>> confidence(1, 1, 0.5)
0.0)");

    m.def("squarecb_play", [](Array<double, 3> array, double extra, double beyond, double scale, double exponent,
                              Index t, Const<double, 3> contexts, Const<double, 2> rewards, Generator rng) {
        const Models models = as_models(array, contexts.size(2));
        InverseGap agent(models, contexts.size(1), {0.0, 0.0, 1.0, extra, beyond}, rng);
        return play_models(models, contexts, rewards, [&](const double* X, Index i) {
            return agent.decide(X, gap_scale(t + i, scale, exponent));
        });
    }, "models"_a, "extra"_a, "beyond"_a, "scale"_a, "exponent"_a, "t"_a, "contexts"_a, "rewards"_a, "rng"_a,
          R"(SquareCB over a block of rounds that begins at round t; contexts (T, K, d), or (T, 1, d) for one model per arm.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> squarecb_play(models, 0.0, 1.0, 1.0, 0.5, 1, np.ones((2, 1, 1)), np.ones((2, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("regcb_play", [](Array<double, 3> array, double lam, double mellowness, double extra, double beyond,
                           double least, double most, bool elimination, Index t, Const<double, 3> contexts,
                           Const<double, 2> rewards, Generator rng) {
        const Models models = as_models(array, contexts.size(2));
        const Bounds bounds{lam, mellowness, extra, beyond, {least, most}, elimination};
        Confident agent(models, contexts.size(1), bounds, rng);
        return play_models(models, contexts, rewards, [&](const double* X, Index i) { return agent.decide(X, t + i); });
    }, "models"_a, "lam"_a, "mellowness"_a, "extra"_a, "beyond"_a, "least"_a, "most"_a, "elimination"_a, "t"_a,
          "contexts"_a, "rewards"_a, "rng"_a,
          R"(RegCB over a block of rounds that begins at round t; contexts (T, K, d), or (T, 1, d) for one model per arm.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> regcb_play(models, 1.0, 0.1, 0.0, 1.0, 0.0, 1.0, False, 1, np.ones((2, 1, 1)), np.ones((2, 1)),
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("greedy_play", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments, double lam,
                            double discount, double epsilon, double decay, Index n_learnt, Const<double, 3> contexts,
                            Const<double, 2> rewards, Generator rng) {
        const Models models = as_models(array, grams, moments, contexts.size(2), lam, discount);
        const Index rows = contexts.size(1), K = models.arms(rows);
        std::vector<double> means(K), p(K);
        return play_models(models, contexts, rewards, [&](const double* X, Index i) {
            means_into(models, X, rows, means.data());
            require(all_finite(means.data(), K), OVERFLOWN);
            tied_probabilities_into(means.data(), K, p.data());
            floored(p.data(), K, decayed(epsilon, decay, n_learnt + i), p.data());
            const Index arm = draw(p.data(), K, rng.random());
            return Decision{arm, p[arm]};
        });
    }, "models"_a, "grams"_a, "moments"_a, "lam"_a, "discount"_a, "epsilon"_a, "decay"_a, "n_learnt"_a, "contexts"_a,
          "rewards"_a, "rng"_a,
          R"(Epsilon-greedy over a block of rounds, ``n_learnt`` rewards before it; contexts as in ``squarecb_play``.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> none = np.zeros((1, 0, 0))
>>> greedy_play(models, none, none[0], 1.0, 1.0, 0.1, 0.0, 0, np.ones((2, 1, 1)), np.ones((2, 1)),
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("squarecb_choose_many", [](Array<double, 3> array, double extra, double beyond, double gamma,
                                     Const<double, 3> contexts, Generator rng) {
        const Models models = as_models(array, contexts.size(2));
        InverseGap agent(models, contexts.size(1), {0.0, 0.0, 1.0, extra, beyond}, rng);
        return choose_models(models, contexts, [&](const double* X, Index) { return agent.decide(X, gamma); });
    }, "models"_a, "extra"_a, "beyond"_a, "gamma"_a, "contexts"_a, "rng"_a,
          R"(Inverse-gap draws of many rounds with one gamma, without learning in between: arms and probabilities.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> squarecb_choose_many(models, 0.0, 1.0, 1.0, np.ones((2, 1, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.])))");

    m.def("regcb_choose_many", [](Array<double, 3> array, double lam, double mellowness, double extra, double beyond,
                                  double least, double most, bool elimination, Index t, Const<double, 3> contexts,
                                  Generator rng) {
        const Models models = as_models(array, contexts.size(2));
        const Bounds bounds{lam, mellowness, extra, beyond, {least, most}, elimination};
        Confident agent(models, contexts.size(1), bounds, rng);
        return choose_models(models, contexts, [&](const double* X, Index) { return agent.decide(X, t); });
    }, "models"_a, "lam"_a, "mellowness"_a, "extra"_a, "beyond"_a, "least"_a, "most"_a, "elimination"_a, "t"_a,
          "contexts"_a, "rng"_a,
          R"(RegCB's draws of many rounds, all as in round t, without learning in between: arms and probabilities.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> regcb_choose_many(models, 1.0, 0.1, 0.0, 1.0, 0.0, 1.0, False, 1, np.ones((2, 1, 1)), np.random.default_rng(1))
(array([0, 0]), array([1., 1.])))");
}
