// Thompson sampling over ridge models: single steps and blocks.
//
// Single steps and blocks must use the random stream in the same order: first all standard normals of a round,
// draw by draw; then, only if some draw ties, one uniform number per draw; then, with several draws, one to choose
// among the winners. Outside of a block the numbers are drawn by the caller.
#include "thompson.hpp"
#include "block.hpp"
#include "modules.hpp"
#include "winning.hpp"

#include <limits>
#include <optional>
#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

constexpr Index MAX_EXACT_ARMS = 512;  // for exact probabilities to win: their K x K numbers soon cost more than draws

// The number of draws (rows of Z) that each arm wins; false, with nothing counted, if one ties and there is no u.
class Competition {
  public:
    Competition(const Models& models, Index rows)
        : models_(models), rows_(rows), scores_(std::size_t(models.arms(rows))),
          memory_(std::size_t(posterior_memory(models, rows))) {}

    bool count(const double* X, const Spread& v, const double* Z, Index draws, const double* u, double* counts) {
        const Index K = Index(scores_.size()), n = posterior_normals(models_);
        std::fill(counts, counts + K, 0.0);
        for (Index i = 0; i < draws; ++i) {
            posterior_scores(models_, X, rows_, v, Z + i * n, scores_.data(), memory_.data());
            const Index arm = winner(scores_.data(), K, u ? u[i] : -1.0);
            if (arm < 0) return false;
            counts[arm] += 1.0;
        }
        return true;
    }

  private:
    const Models& models_;
    Index rows_;
    std::vector<double> scores_, memory_;
};

// Mean and covariance of the arms' scores, where theta ~ N(theta_hat, v^2 A^-1).
class ScorePosterior {
  public:
    std::vector<double> means, covariance;

    ScorePosterior(const Models& models, Index rows)
        : means(std::size_t(models.arms(rows))), covariance(means.size() * means.size()), models_(models),
          images_(std::size_t(models.disjoint() ? models.M : rows * models.D)), x_(std::size_t(models.D)),
          widths_(means.size()) {}

    void work_out(const double* X, const Spread& v) {
        const Index K = Index(means.size()), D = models_.D, d = models_.d;
        if (models_.disjoint()) {
            estimate_all_into(models_, X, means.data(), images_.data());
            const double leader = images_[std::size_t(std::max_element(means.begin(), means.end()) - means.begin())];
            for (Index m = 0; m < K; ++m) {
                const double deviation = (v.compares() ? v.of(images_[m], leader) : v.v) * images_[m];
                covariance[m * K + m] = deviation * deviation;
            }
        } else {
            for (Index a = 0; a < K; ++a) {
                std::copy(X + a * d, X + (a + 1) * d, x_.data());
                means[a] = padded_dot(models_.theta(0), x_.data(), D);
                widths_[a] = std::sqrt(project(models_[0], D, x_.data(), images_.data() + a * D));
            }
            const double leader = widths_[std::size_t(std::max_element(means.begin(), means.end()) - means.begin())];
            for (Index a = 0; a < K; ++a) {
                double* image = images_.data() + a * D;  // v W x, where A^-1 = W'W
                const double scale = v.compares() ? v.of(widths_[a], leader) : v.v;
                for (Index j = 0; j < D; ++j) image[j] *= scale;
                for (Index b = 0; b <= a; ++b)
                    covariance[a * K + b] = covariance[b * K + a] = padded_dot(image, images_.data() + b * D, D);
            }
        }
        require(all_finite(means.data(), K) && all_finite(covariance.data(), K * K), OVERFLOWN);
    }

  private:
    const Models& models_;
    std::vector<double> images_, x_, widths_;
};

}  // namespace

void bind_thompson(nb::module_& m) {
    m.doc() = "Posterior sampling over ridge models: draws, their winners, and blocks of rounds.";

    m.attr("MAX_EXACT_ARMS") = MAX_EXACT_ARMS;
    m.def("scale", posterior_scale, "t"_a, "v"_a, "coefficient"_a, "delta"_a,
          R"(The posterior scale of round t: v + coefficient sqrt(ln(t / delta)) (a coefficient of 0: a constant).

>>> scale(5, 0.5, 0.0, 1.0), round(scale(1, 0.0, 2.0, np.exp(-4.0)), 9)
(0.5, 4.0))");

    m.def("posterior_scores", [](Array<double, 3> array, Const<double, 2> X, double v, Const<double, 1> z) {
        const Models models = as_models(array, X.size(1));
        require(X.size(0) > 0 && z.size() == posterior_normals(models), "z must have one normal per feature or model");
        New<double, 1> scores(models.arms(X.size(0)));
        Scratch memory(posterior_memory(models, X.size(0)));
        posterior_scores(models, X.data, X.size(0), {v, 0.0, 1.0, v}, z.data, scores.view.data, memory.data());
        return scores;
    }, "models"_a, "X"_a, "v"_a, "z"_a, R"(Scores under one draw from the posterior: X mu with mu = theta + v W'z.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0; models[0, 8, 0] = 3.0
>>> posterior_scores(models, np.array([[2.0]]), 0.5, np.array([4.0]))
array([10.]))");

    m.def("compete", [](Array<double, 3> array, Const<double, 2> X, double v, double extra, double beyond, double most,
                        Const<double, 2> Z, Const<double, 1> u) {
        const Models models = as_models(array, X.size(1));
        const Index draws = Z.size(0), K = models.arms(X.size(0));
        require(X.size(0) > 0 && Z.size(1) == posterior_normals(models), "Z must have one normal per feature or model");
        require(u.size() == 0 || u.size() == draws, "u must be empty or have one number per draw");
        New<double, 1> counts(K);
        Unlocked unlocked(double(draws) * double(K) * double(models.d));
        Competition competition(models, X.size(0));
        if (!competition.count(X.data, {v, extra, beyond, most}, Z.data, draws, u.size() ? u.data : nullptr, counts.view.data))
            counts[0] = -1.0;
        return counts;
    }, "models"_a, "X"_a, "v"_a, "extra"_a, "beyond"_a, "most"_a, "Z"_a, "u"_a,
          R"(The number of draws (rows of Z) that each arm wins. With ``u`` empty a tie sets the first count to -1: draw u, call again.

>>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
>>> compete(models, np.array([[1.0], [2.0]]), 0.5, 0.0, 1.0, 0.5, np.ones((5, 1)), np.empty(0))
array([0., 5.]))");

    m.def("score_posterior", [](Array<double, 3> array, Const<double, 2> X, double v, double extra, double beyond,
                                double most) {
        const Models models = as_models(array, X.size(1));
        require(X.size(0) > 0 && (!models.disjoint() || X.size(0) == 1), "X must have a row per arm, or one for all");
        const Index K = models.arms(X.size(0));
        New<double, 1> means(K);
        New<double, 2> covariance(K, K);
        {
            Unlocked unlocked(double(K) * double(models.d) * double(models.d + K));
            ScorePosterior posterior(models, X.size(0));
            posterior.work_out(X.data, {v, extra, beyond, most});
            std::copy(posterior.means.begin(), posterior.means.end(), means.view.begin());
            std::copy(posterior.covariance.begin(), posterior.covariance.end(), covariance.view.begin());
        }
        return std::make_tuple(std::move(means), std::move(covariance));
    }, "models"_a, "X"_a, "v"_a, "extra"_a, "beyond"_a, "most"_a, R"(Mean and covariance of the arms' scores under the posterior of scale v.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0; models[0, 8, 0] = 3.0
>>> score_posterior(models, np.array([[1.0], [2.0]]), 0.5, 0.0, 1.0, 0.5)
(array([3., 6.]), array([[0.25, 0.5 ],
       [0.5 , 1.  ]])))");

    m.def("play", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                     Const<double, 3> contexts, Const<double, 2> rewards, double lam, double discount, Index first,
                     double v, double coefficient, double delta, double extra, double beyond, double most, Index draws,
                     Generator rng) {
        const Models models = as_models(array, grams, moments, contexts.size(2), lam, discount);
        require(draws > 0, "draws must be at least 1");
        const Index K = models.arms(contexts.size(1));
        std::vector<double> Z(draws * posterior_normals(models)), u(draws), p(K);
        Competition competition(models, contexts.size(1));
        std::optional<ScorePosterior> posterior;  // K x K numbers
        if (draws > 1 && K <= MAX_EXACT_ARMS) posterior.emplace(models, contexts.size(1));
        return play_models(models, contexts, rewards, [&](const double* X, Index t) {
            const Spread scale{posterior_scale(first + t, v, coefficient, delta), extra, beyond, most};
            const bool untried = draws > 1 && scale.compares() && untried_first(models, p.data());
            if (posterior && !untried) posterior->work_out(X, scale);
            if (!untried && (!posterior || !gaussian_wins(posterior->means.data(), posterior->covariance.data(), K, p.data()))) {
                for (double& z : Z) z = rng.standard_normal();
                if (!competition.count(X, scale, Z.data(), draws, nullptr, p.data())) {
                    for (double& number : u) number = rng.random();
                    competition.count(X, scale, Z.data(), draws, u.data(), p.data());
                }
                if (draws == 1)
                    return Decision{std::max_element(p.begin(), p.end()) - p.begin(),
                                    std::numeric_limits<double>::quiet_NaN()};
                smoothed_wins(p.data(), K);
            }
            const Index arm = draw(p.data(), K, rng.random());
            return Decision{arm, p[arm]};
        });
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "rewards"_a, "lam"_a, "discount"_a, "first"_a, "v"_a,
          "coefficient"_a, "delta"_a, "extra"_a, "beyond"_a, "most"_a, "draws"_a, "rng"_a,
          R"(Thompson sampling over a block that begins at round ``first``: arms, probabilities, rewards.

With a single draw the probabilities are NaN; with several they are exact if they can be computed, else smoothed wins.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> none = np.zeros((1, 0, 0))
>>> play(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1, 0.5, 0.0, 1.0, 0.0, 1.0, 0.5, 3,
...     np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("choose_many", [](Array<double, 3> array, Const<double, 3> contexts, double v, double extra, double beyond,
                            double most, Generator rng) {
        const Spread scale{v, extra, beyond, most};
        const Models models = as_models(array, contexts.size(2));
        std::vector<double> Z(posterior_normals(models)), counts(models.arms(contexts.size(1)));
        Competition competition(models, contexts.size(1));
        return choose_models(models, contexts, [&](const double* X, Index) {
            for (double& z : Z) z = rng.standard_normal();
            if (!competition.count(X, scale, Z.data(), 1, nullptr, counts.data())) {
                const double u = rng.random();
                competition.count(X, scale, Z.data(), 1, &u, counts.data());
            }
            const Index arm = std::max_element(counts.begin(), counts.end()) - counts.begin();
            return Decision{arm, std::numeric_limits<double>::quiet_NaN()};
        });
    }, "models"_a, "contexts"_a, "v"_a, "extra"_a, "beyond"_a, "most"_a, "rng"_a,
          R"(The winner of one posterior draw of this scale per round, without learning in between: arms, and NaN.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> choose_many(models, np.ones((2, 1, 1)), 0.5, 0.0, 1.0, 0.5, np.random.default_rng(1))
(array([0, 0]), array([nan, nan])))");
}
