// Thompson sampling over ridge models, step and block; both lanes call these.
//
// The order of the random stream is part of the contract between the lanes: first all standard normals of a round,
// draw by draw; then, only if some draw ties, one uniform number per draw; then, with several draws, one to choose
// among the winners. Outside of a block the numbers are drawn by the caller.
#include "thompson.hpp"
#include "block.hpp"
#include "modules.hpp"

#include <limits>
#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

namespace {

// How many draws (rows of Z) each arm wins; false, with nothing counted, if a draw ties and there is no u to break it.
class Competition {
  public:
    Competition(const Models& models, Index rows)
        : models_(models), rows_(rows), scores_(std::size_t(models.arms(rows))),
          memory_(std::size_t(posterior_memory(models))) {}

    bool count(const double* X, double v, const double* Z, Index draws, const double* u, double* counts) {
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

}  // namespace

void bind_thompson(nb::module_& m) {
    m.doc() = "Posterior sampling over ridge models: draws, their winners, and blocks of rounds.";

    m.def("scale", posterior_scale, "t"_a, "v"_a, "coefficient"_a, "delta"_a,
          R"(The posterior scale of round t: v, plus coefficient sqrt(ln(t / delta)) for the schedule (0 leaves a number).

>>> scale(5, 0.5, 0.0, 1.0), round(scale(1, 0.0, 2.0, np.exp(-4.0)), 9)
(0.5, 4.0))");

    m.def("posterior_scores", [](Array<double, 3> array, Const<double, 2> X, double v, Const<double, 1> z) {
        const Models models = as_models(array, X.size(1));
        require(X.size(0) > 0 && z.size() == posterior_normals(models), "z must have one normal per feature or model");
        New<double, 1> scores(models.arms(X.size(0)));
        Scratch memory(posterior_memory(models));
        posterior_scores(models, X.data, X.size(0), v, z.data, scores.view.data, memory.data());
        return scores;
    }, "models"_a, "X"_a, "v"_a, "z"_a, R"(Scores under one draw from the posterior: X mu with mu = theta + v W'z.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0; models[0, 8, 0] = 3.0
>>> posterior_scores(models, np.array([[2.0]]), 0.5, np.array([4.0]))
array([10.]))");

    m.def("compete", [](Array<double, 3> array, Const<double, 2> X, double v, Const<double, 2> Z, Const<double, 1> u) {
        const Models models = as_models(array, X.size(1));
        const Index draws = Z.size(0), K = models.arms(X.size(0));
        require(X.size(0) > 0 && Z.size(1) == posterior_normals(models), "Z must have one normal per feature or model");
        require(u.size() == 0 || u.size() == draws, "u must be empty or have one number per draw");
        New<double, 1> counts(K);
        Unlocked unlocked(double(draws) * double(K) * double(models.d));
        Competition competition(models, X.size(0));
        if (!competition.count(X.data, v, Z.data, draws, u.size() ? u.data : nullptr, counts.view.data))
            counts[0] = -1.0;
        return counts;
    }, "models"_a, "X"_a, "v"_a, "Z"_a, "u"_a,
          R"(How many draws (rows of Z) each arm wins. With ``u`` empty a tie makes the first count -1: draw u, call again.

>>> models = np.zeros((1, 9, 8)); models[0, 8, 0] = 3.0
>>> compete(models, np.array([[1.0], [2.0]]), 0.5, np.ones((5, 1)), np.empty(0))
array([0., 5.]))");

    m.def("play", [](Array<double, 3> array, Array<double, 3> grams, Array<double, 2> moments,
                     Const<double, 3> contexts, Const<double, 2> rewards, double lam, double discount, Index first,
                     double v, double coefficient, double delta, Index draws, Generator rng) {
        const Models models = as_models(array, grams, moments, contexts.size(2), lam, discount);
        require(draws > 0, "draws must be at least 1");
        const Index K = models.arms(contexts.size(1));
        std::vector<double> Z(draws * posterior_normals(models)), u(draws), counts(K);
        Competition competition(models, contexts.size(1));
        return play_models(models, contexts, rewards, [&](const double* X, Index t) {
            for (double& z : Z) z = rng.standard_normal();
            const double scale = posterior_scale(first + t, v, coefficient, delta);
            if (!competition.count(X, scale, Z.data(), draws, nullptr, counts.data())) {
                for (double& number : u) number = rng.random();
                competition.count(X, scale, Z.data(), draws, u.data(), counts.data());
            }
            const Index arm = draws == 1 ? std::max_element(counts.begin(), counts.end()) - counts.begin()
                                         : draw(counts.data(), K, double(draws) * rng.random());
            return Decision{arm, counts[arm]};
        });
    }, "models"_a, "grams"_a, "moments"_a, "contexts"_a, "rewards"_a, "lam"_a, "discount"_a, "first"_a, "v"_a,
          "coefficient"_a, "delta"_a, "draws"_a, "rng"_a,
          R"(Thompson sampling over a block that begins at round ``first``: arms, how many draws each won, rewards.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> none = np.zeros((1, 0, 0))
>>> play(models, none, none[0], np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 1.0, 1, 0.5, 0.0, 1.0, 3,
...     np.random.default_rng(1))
(array([0, 0]), array([3., 3.]), array([1., 1.])))");

    m.def("choose_many", [](Array<double, 3> array, Const<double, 3> contexts, double scale, Generator rng) {
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
    }, "models"_a, "contexts"_a, "scale"_a, "rng"_a,
          R"(The winner of one posterior draw of this scale per round, without learning in between: arms, and NaN.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 1.0
>>> choose_many(models, np.ones((2, 1, 1)), 0.5, np.random.default_rng(1))
(array([0, 0]), array([nan, nan])))");
}
