// CoFineUCB: a ridge model in R^d drawn toward a ridge model in the coarse space of z = U'x, step and block.
#include "block.hpp"
#include "modules.hpp"
#include "prior.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

// M = lam I + sum x x', w = M^-1 (sum x r + lam U w~); M^-1 = W'W is never formed.
class CoFine {
  public:
    CoFine(const View<double, 3>& fine, const View<double, 3>& coarse, const View<const double, 2>& subspace,
           const View<const double, 1>& prior_mean, double lam)
        : fine_(as_models(fine, subspace.size(0))), coarse_(as_models(coarse, subspace.size(1))), U_(subspace.data),
          prior_(prior_mean, subspace.size(0)), lam_(lam), WU_(std::size_t(fine_.d * coarse_.D)), memory_(std::size_t(2 * fine_.D + 2 * coarse_.D)) {
        require(!fine_.disjoint() && !coarse_.disjoint(), "there must be one fine and one coarse model");
    }
    Index d() const { return fine_.d; }
    const Models& fine() const { return fine_; }
    const Models& coarse() const { return coarse_; }

    // WU, which estimates need of the fine model, computed once after each reward.
    void prepare() {
        const Index k = coarse_.d, width = coarse_.D;
        std::fill(WU_.begin(), WU_.end(), 0.0);
        for (Index i = 0; i < d(); ++i) {
            double* row = WU_.data() + i * width;
            for (Index j = 0; j <= i; ++j)
                for (Index c = 0; c < k; ++c) row[c] += fine_[0][i * fine_.D + j] * U_[j * k + c];
        }
        ready_ = true;
    }
    // Means w.x, fine widths ||x||_(M^-1) and coarse widths lam ||U' M^-1 x||_(M~^-1) of K rows.
    void estimate(const double* X, Index K, double* means, double* fine_widths, double* coarse_widths) {
        if (!ready_) prepare();
        const Index D = fine_.D, width = coarse_.D;
        double *x = memory_.data(), *p = x + D, *z = p + D, *q = z + width;
        bool all = true;
        for (Index a = 0; a < K; ++a) {
            std::copy_n(X + a * d(), d(), x);
            fine_widths[a] = std::sqrt(project(fine_[0], D, x, p));
            std::fill(z, z + width, 0.0);
            for (Index i = 0; i < d(); ++i) {
                const Lanes along = splat(p[i]);
                for (Index c = 0; c < width; c += LANES)
                    store(z + c, load(z + c) + along * load(WU_.data() + i * width + c));
            }
            const double pull = padded_dot(coarse_.theta(0), z, width);
            coarse_widths[a] = lam_ * std::sqrt(project(coarse_[0], width, z, q));
            means[a] = padded_dot(fine_.theta(0), x, D) + lam_ * pull;
            all &= is_finite(means[a]) && is_finite(fine_widths[a]) && is_finite(coarse_widths[a]);
        }
        require(all, OVERFLOWN);
        prior_.add(X, K, means);
    }
    void learn(const double* x, double reward) {
        reward = prior_.beyond(x, reward);
        const Index k = coarse_.d;
        double* z = memory_.data() + 2 * fine_.D;
        std::fill(z, z + k, 0.0);
        for (Index i = 0; i < d(); ++i)
            for (Index c = 0; c < k; ++c) z[c] += x[i] * U_[i * k + c];
        update(fine_[0], fine_.D, x, d(), reward);
        update(coarse_[0], coarse_.D, z, k, reward);
        ready_ = false;
    }

  private:
    Models fine_, coarse_;
    const double* U_;
    Prior prior_;
    double lam_;
    std::vector<double> WU_, memory_;
    bool ready_ = false;
};

}  // namespace

void bind_cofine(nb::module_& m) {
    m.doc() = "CoFineUCB: a ridge model drawn toward one in a subspace, step and block.";

    m.def("estimate", [](Array<double, 3> fine, Array<double, 3> coarse, Const<double, 2> subspace,
                         Const<double, 1> prior_mean, double lam, Const<double, 2> X) {
        CoFine model(fine, coarse, subspace, prior_mean, lam);
        const Index K = X.size(0);
        require(X.size(1) == model.d(), "X must have one column per row of subspace");
        New<double, 1> means(K), fine_widths(K), coarse_widths(K);
        {
            Unlocked unlocked(double(K) * double(X.size(1)) * double(X.size(1)));
            model.estimate(X.data, K, means.view.data, fine_widths.view.data, coarse_widths.view.data);
        }
        return std::make_tuple(means, fine_widths, coarse_widths);
    }, "fine"_a, "coarse"_a, "subspace"_a, "prior_mean"_a, "lam"_a, "X"_a,
          R"(Means w.x (and the prior's x.prior_mean, unless that is empty), fine widths ||x||_(M^-1) and coarse widths lam ||U' M^-1 x||_(M~^-1) of the rows of X.

>>> fine, coarse = np.zeros((1, 9, 8)), np.zeros((1, 9, 8)); fine[0, 0, 0] = 0.5; coarse[0, 0, 0] = 1.0
>>> estimate(fine, coarse, np.eye(1), np.empty(0), 4.0, np.ones((1, 1)))
(array([0.]), array([0.5]), array([1.])))");

    m.def("learn", [](Array<double, 3> fine, Array<double, 3> coarse, Const<double, 2> subspace,
                      Const<double, 1> prior_mean, Const<double, 1> x, double reward) {
        CoFine model(fine, coarse, subspace, prior_mean, 1.0);
        require(x.size() == model.d(), "x must have one number per row of subspace");
        Undo first(model.fine()), second(model.coarse());
        first.touch(0), second.touch(0);
        model.learn(x.data, reward);
        first.commit(), second.commit();
    }, "fine"_a, "coarse"_a, "subspace"_a, "prior_mean"_a, "x"_a, "reward"_a,
          R"(Learn one row and its reward, less the prior's mean, in both models.

>>> fine, coarse = np.zeros((1, 9, 8)), np.zeros((1, 9, 8)); fine[0, 0, 0] = coarse[0, 0, 0] = 1.0
>>> learn(fine, coarse, np.eye(1), np.empty(0), np.ones(1), 1.0)
>>> fine[0, 8, 0], coarse[0, 8, 0]
(np.float64(0.5), np.float64(0.5)))");

    m.def("play", [](Array<double, 3> fine, Array<double, 3> coarse, Const<double, 2> subspace,
                     Const<double, 1> prior_mean, double lam, double scale, double alpha, double alpha_coarse, Const<double, 3> contexts,
                     Const<double, 2> rewards, Generator rng) {
        CoFine model(fine, coarse, subspace, prior_mean, lam);
        const Index T = rewards.size(0), K = rewards.size(1), d = model.d();
        require(K > 0 && contexts.size(0) == T && contexts.size(1) == K && contexts.size(2) == d,
                "contexts must have one round per row of rewards, and one row per arm");
        Played played = new_played(T);
        auto& [arms, probabilities, got] = played;
        {
            Unlocked unlocked(double(T) * double(K) * double(d) * double(d));
            Undo first(model.fine()), second(model.coarse());
            std::vector<double> scores(K), widths(K), coarse_widths(K);
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * K * d;
                model.estimate(X, K, scores.data(), widths.data(), coarse_widths.data());
                for (Index a = 0; a < K; ++a) scores[a] += scale * (alpha * widths[a] + alpha_coarse * coarse_widths[a]);
                const Best best = first_best(scores.data(), K);
                const Index arm = pick(scores.data(), K, best, best.ties > 1 ? rng.random() : 0.0);
                arms[t] = arm, probabilities[t] = 1.0 / double(best.ties), got[t] = rewards(t, arm);
                first.touch(0), second.touch(0);
                model.learn(X + arm * d, got[t]);
            }
            first.commit(), second.commit();
        }
        return played;
    }, "fine"_a, "coarse"_a, "subspace"_a, "prior_mean"_a, "lam"_a, "scale"_a, "alpha"_a, "alpha_coarse"_a, "contexts"_a, "rewards"_a,
          "rng"_a, R"(CoFineUCB over a block of rounds: the largest mean + scale (alpha fine + alpha_coarse coarse width).

>>> fine, coarse = np.zeros((1, 9, 8)), np.zeros((1, 9, 8)); fine[0, 0, 0] = coarse[0, 0, 0] = 1.0
>>> play(fine, coarse, np.eye(1), np.empty(0), 1.0, 0.1, 1.0, 1.0, np.ones((2, 1, 1)), np.ones((2, 1)),
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
