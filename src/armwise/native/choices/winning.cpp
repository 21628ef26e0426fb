// The probability that each arm is the best (winning.hpp), and the bindings of winning.hpp and special.hpp.
#include "winning.hpp"
#include "eigen.hpp"
#include "modules.hpp"
#include "special.hpp"

#include <limits>
#include <vector>

namespace armwise {

namespace {

constexpr double MAX_DIFFERENCE = 1e-9;  // of covariances that count as equal, relative to them

// Nodes and weights of Gauss's rule of n points, from the three-term recurrence of its polynomials (Golub, Welsch 1969).
struct Gauss {
    std::vector<double> nodes, weights;

    template <class OffDiagonal> Gauss(Index n, double mass, OffDiagonal beta) : nodes(n), weights(n) {
        std::vector<double> jacobi(n * n);
        for (Index k = 1; k < n; ++k) jacobi[k * n + k - 1] = jacobi[(k - 1) * n + k] = beta(double(k));
        SymmetricEigen eigen(n);
        eigen.decompose(jacobi.data());
        for (Index k = 0; k < n; ++k) {
            nodes[k] = eigen.values[k];
            weights[k] = mass * eigen.vectors[k * n] * eigen.vectors[k * n];
        }
    }
};

const Gauss& legendre() {  // over [-1, 1]
    static const Gauss rule(8, 2.0, [](double k) { return k / std::sqrt(4.0 * k * k - 1.0); });
    return rule;
}
const Gauss& hermite() {  // of a standard normal
    static const Gauss rule(48, 1.0, [](double k) { return std::sqrt(k); });
    return rule;
}

// int f_a prod_(b != a) F_b between low and high, over the pieces that the arms' nodes cut. `distribution(a, y, f, F)`
// gives the density and the distribution function of arm a.
template <class Distribution>
void integrate(const double* centres, const double* spreads, Index K, double low, double high,
               Distribution distribution, double* p) {
    constexpr double STEPS[] = {-9.0, -5.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, 9.0};  // in deviations of an arm
    double first = centres[0] - 9.0 * spreads[0], last = centres[0] + 9.0 * spreads[0];
    for (Index a = 1; a < K; ++a) {
        first = std::max(first, centres[a] - 9.0 * spreads[a]);  // below it one arm's F is 0
        last = std::max(last, centres[a] + 9.0 * spreads[a]);
    }
    low = std::max(low, first), high = std::min(high, last);
    std::vector<double> cuts{low, high};
    for (Index a = 0; a < K; ++a)
        for (const double step : STEPS) {
            const double cut = centres[a] + spreads[a] * step;
            if (cut > low && cut < high) cuts.push_back(cut);
        }
    std::sort(cuts.begin(), cuts.end());
    std::vector<double> f(K), F(K), above(K);
    std::fill(p, p + K, 0.0);
    for (std::size_t piece = 1; piece < cuts.size(); ++piece) {
        const double half = 0.5 * (cuts[piece] - cuts[piece - 1]), middle = 0.5 * (cuts[piece] + cuts[piece - 1]);
        if (half <= 0.0) continue;
        for (std::size_t node = 0; node < legendre().nodes.size(); ++node) {
            const double y = middle + half * legendre().nodes[node], weight = half * legendre().weights[node];
            for (Index a = 0; a < K; ++a) distribution(a, y, f[a], F[a]);
            // prod_(b != a) F_b from both ends: a quotient by F_a could divide by 0.
            double product = 1.0;
            for (Index a = K - 1; a >= 0; --a) above[a] = product, product *= F[a];
            product = 1.0;
            for (Index a = 0; a < K; ++a) p[a] += weight * f[a] * product * above[a], product *= F[a];
        }
    }
    floored(p, K);
}

// w with covariance[a, b] = w_a w_b for all a != b, and w_a^2 at most the variance; false if there is none.
bool common_factor(const double* covariance, Index K, std::vector<double>& w) {
    double largest = 0.0;
    for (Index a = 0; a < K; ++a) largest = std::max(largest, covariance[a * K + a]);
    const double slack = MAX_DIFFERENCE * largest;
    std::vector<Index> loaded;  // the others are independent
    for (Index a = 0; a < K; ++a) {
        double most = 0.0;
        for (Index b = 0; b < K; ++b)
            if (b != a) most = std::max(most, std::fabs(covariance[b * K + a]));
        if (most > slack) loaded.push_back(a);
    }
    w.assign(K, 0.0);
    if (loaded.empty()) return true;
    if (loaded.size() < 3) return false;  // two correlated arms have no unique factor
    const Index i = loaded[0], j = loaded[1], k = loaded[2];
    const double jk = covariance[j * K + k];
    const double square = jk != 0.0 ? covariance[i * K + j] * covariance[i * K + k] / jk : -1.0;
    if (!(square > 0.0)) return false;
    w[i] = std::sqrt(square);
    for (const Index a : loaded)
        if (a != i) w[a] = covariance[i * K + a] / w[i];
    for (Index a = 0; a < K; ++a) {
        if (w[a] * w[a] > covariance[a * K + a] + slack) return false;
        for (Index b = 0; b < K; ++b)
            if (b != a && std::fabs(covariance[a * K + b] - w[a] * w[b]) > slack) return false;
    }
    return true;
}

}  // namespace

void independent_wins(const double* means, const double* deviations, Index K, double* p) {
    double widest = 0.0, size = 1.0;
    for (Index a = 0; a < K; ++a) widest = std::max(widest, deviations[a]), size = std::max(size, std::fabs(means[a]));
    if (widest <= 1e-13 * size) {  // below the rounding of the means
        tied_probabilities_into(means, K, p);
        return floored(p, K);
    }
    std::vector<double> spreads(K);
    for (Index a = 0; a < K; ++a) spreads[a] = std::max(deviations[a], 1e-9 * widest);
    const double infinity = std::numeric_limits<double>::infinity();
    integrate(means, spreads.data(), K, -infinity, infinity, [&](Index a, double y, double& f, double& F) {
        const double z = (y - means[a]) / spreads[a];
        f = std::exp(-0.5 * z * z) / (spreads[a] * 2.5066282746310005024);
        F = normal_cdf(z);
    }, p);
}

bool gaussian_wins(const double* means, const double* covariance, Index K, double* p) {
    if (K == 1) return p[0] = 1.0, true;
    if (K == 2) {
        const double variance = covariance[0] + covariance[3] - 2.0 * covariance[1];
        const double size = std::max(std::fabs(means[0]), std::fabs(means[1]));
        if (variance <= 1e-26 * std::max(1.0, size * size)) {  // below the rounding of the means
            tied_probabilities_into(means, K, p);
        } else {
            p[0] = normal_cdf((means[0] - means[1]) / std::sqrt(variance));
            p[1] = 1.0 - p[0];
        }
        return floored(p, K), true;
    }
    std::vector<double> w, own(K), shifted(K), mine(K);
    if (!common_factor(covariance, K, w)) return false;
    for (Index a = 0; a < K; ++a) own[a] = std::sqrt(std::max(covariance[a * K + a] - w[a] * w[a], 0.0));
    const auto [least, most] = std::minmax_element(w.begin(), w.end());
    if (*most - *least <= MAX_DIFFERENCE * std::max(std::fabs(*most), std::fabs(*least))) {  // a common shift changes no winner
        independent_wins(means, own.data(), K, p);
        return true;
    }
    std::fill(p, p + K, 0.0);
    for (std::size_t node = 0; node < hermite().nodes.size(); ++node) {
        for (Index a = 0; a < K; ++a) shifted[a] = means[a] + hermite().nodes[node] * w[a];
        independent_wins(shifted.data(), own.data(), K, mine.data());
        for (Index a = 0; a < K; ++a) p[a] += hermite().weights[node] * mine[a];
    }
    return floored(p, K), true;
}

// In the angle, y = sin^2(angle), a Beta is nearly Gaussian with deviation 1 / (2 sqrt(n)), and its density is finite at
// both ends for parameters from 1/2 on.
void beta_wins(const double* successes, const double* failures, Index K, double* p) {
    std::vector<double> centres(K), spreads(K);
    std::vector<Beta> arms;
    for (Index a = 0; a < K; ++a) {
        const double n = successes[a] + failures[a];
        centres[a] = std::asin(std::sqrt(successes[a] / n)), spreads[a] = 0.5 / std::sqrt(n);
        arms.emplace_back(successes[a], failures[a]);
    }
    integrate(centres.data(), spreads.data(), K, 0.0, 1.57079632679489661923, [&](Index a, double angle, double& f, double& F) {
        const double sine = std::sin(angle), cosine = std::cos(angle), x = sine * sine, y = cosine * cosine;
        f = 2.0 * arms[a].power(x, y) / (sine * cosine);
        F = arms[a].cdf(x, y);
    }, p);
}

}  // namespace armwise

using namespace nb::literals;
using namespace armwise;

void bind_winning(nb::module_& m) {
    m.doc() = "The probability that each arm is the best under a posterior: what Thompson sampling plays with.";
    m.attr("MIN_PROBABILITY") = MIN_PROBABILITY;

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
    }, "wins"_a, R"(The shares of wins among M draws and one more draw that all arms share: never zero.

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
          R"(P(arm has the largest score) for jointly Gaussian scores; None where that needs more than two nested integrals.

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
