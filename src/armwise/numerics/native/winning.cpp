// Bindings of winning.hpp and special.hpp.
#include "winning.hpp"
#include "modules.hpp"

using namespace nb::literals;
using namespace armwise;

void bind_winning(nb::module_& m) {
    m.doc() = "The probability that each arm is the best under a posterior: what Thompson sampling plays with.";
    m.attr("LEAST") = LEAST;

    m.def("normal_cdf", [](Const<double, 1> z) {
        New<double, 1> p(z.size());
        for (Index i = 0; i < z.size(); ++i) p[i] = normal_cdf(z[i]);
        return p;
    }, "z"_a, R"(P(a standard normal is below z).

>>> normal_cdf(np.array([0.0, 1.0])).round(4)
array([0.5   , 0.8413]))");

    m.def("beta_cdf", [](double a, double b, Const<double, 1> x) {
        require(a > 0.0 && b > 0.0, "a and b must be > 0");
        const Beta beta(a, b);
        New<double, 1> p(x.size());
        for (Index i = 0; i < x.size(); ++i) p[i] = beta.cdf(x[i], 1.0 - x[i]);
        return p;
    }, "a"_a, "b"_a, "x"_a, R"(P(a Beta(a, b) is below x): the regularised incomplete beta function.

>>> beta_cdf(2.0, 1.0, np.array([0.0, 0.5, 1.0])).round(9)
array([0.  , 0.25, 1.  ]))");

    m.def("smoothed_wins", [](Const<double, 1> wins) {
        New<double, 1> p(wins.size());
        std::copy(wins.begin(), wins.end(), p.view.begin());
        smoothed_wins(p.view.data, wins.size());
        return p;
    }, "wins"_a, R"(The wins of M draws and of one more that falls on every arm alike: never zero, whatever won.

>>> smoothed_wins(np.array([3.0, 0.0]))
array([0.875, 0.125]))");

    m.def("gaussian", [](Const<double, 1> means, Const<double, 2> covariance) -> nb::object {
        const Index K = means.size();
        require(K > 0 && covariance.size(0) == K && covariance.size(1) == K, "covariance must be (K, K)");
        New<double, 1> p(K);
        bool exact;
        {
            Unlocked unlocked(100.0 * double(K * K));
            exact = gaussian_wins(means.data, covariance.data, K, p.view.data);
        }
        return exact ? p.object : nb::none();
    }, "means"_a, "covariance"_a,
          nb::sig("def gaussian(means: numpy.typing.NDArray[numpy.float64], covariance: "
                  "numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64] | None"),
          R"(P(arm has the largest score) for jointly Gaussian scores; None where that is more than an integral or two.

Exact for two arms, for independent arms, and for arms that share one factor: covariance = diagonal + w w'.

>>> gaussian(np.array([0.0, 1.0]), np.diag([0.5, 0.5])).round(4)
array([0.1587, 0.8413]))");

    m.def("beta", [](Const<double, 1> successes, Const<double, 1> failures) {
        const Index K = successes.size();
        require(K > 0 && failures.size() == K, "successes and failures must have one number per arm");
        for (Index a = 0; a < K; ++a)
            require(successes[a] > 0.0 && failures[a] > 0.0, "successes and failures must be > 0");
        New<double, 1> p(K);
        Unlocked unlocked(1e4 * double(K * K));
        beta_wins(successes.data, failures.data, K, p.view.data);
        return p;
    }, "successes"_a, "failures"_a, R"(P(arm has the largest rate) for independent Beta posteriors.

>>> beta(np.array([1.0, 2.0]), np.array([1.0, 1.0])).round(4)
array([0.3333, 0.6667]))");
}
