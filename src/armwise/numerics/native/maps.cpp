// Feature maps, row by row and in a fixed order, so that a row alone and a row in a block give the same bits.
#include "array.hpp"
#include "modules.hpp"
#include "simd.hpp"

#include <algorithm>
#include <cmath>

using namespace nb::literals;
using namespace armwise;

namespace {

// Where x stands among sorted knots, from 0 to 1: linear between them, in the middle of equal ones.
double position(const double* knots, Index n, double x) {
    const Index below = std::lower_bound(knots, knots + n, x) - knots;
    const Index upto = std::upper_bound(knots + below, knots + n, x) - knots;
    const double last = double(n - 1);
    if (upto > below) return 0.5 * double(below + upto - 1) / last;
    if (below == 0) return 0.0;
    if (below == n) return 1.0;
    return (double(below - 1) + (x - knots[below - 1]) / (knots[below] - knots[below - 1])) / last;
}

}  // namespace

void bind_maps(nb::module_& m) {
    m.doc() = "Feature maps: numbers standardised and placed among quantiles, categories one-hot, random Fourier features.";

    m.def("columns", [](Const<double, 2> rows, Const<int64_t, 1> numbers, Const<double, 1> means,
                        Const<double, 1> inverses, Const<double, 2> knots, Const<int64_t, 1> categories,
                        Const<double, 1> values, double limit) {
        const Index n = rows.size(0), d = rows.size(1), N = numbers.size(), Q = knots.size(1), C = categories.size();
        require(means.size() == N && inverses.size() == N && knots.size(0) == N && Q >= 2 && values.size() == C,
                "one mean, inverse and row of knots per number, one value per category");
        for (Index j = 0; j < N; ++j) require_index(numbers[j], d, "numbers must be columns of rows");
        for (Index j = 0; j < C; ++j) require_index(categories[j], d, "categories must be columns of rows");
        New<double, 2> out(n, 2 * N + C);
        const double spread = std::sqrt(12.0);  // a uniform position has variance 1/12
        for (Index i = 0; i < n; ++i) {
            const double* x = rows.data + i * d;
            double* y = out.view.data + i * (2 * N + C);
            for (Index j = 0; j < N; ++j) {
                const double v = x[numbers[j]];
                y[j] = std::max(-limit, std::min(limit, (v - means[j]) * inverses[j]));
                y[N + C + j] = (position(knots.data + j * Q, Q, v) - 0.5) * spread;
            }
            for (Index j = 0; j < C; ++j) y[N + j] = x[categories[j]] == values[j] ? 1.0 : 0.0;
        }
        return out;
    }, "rows"_a, "numbers"_a, "means"_a, "inverses"_a, "knots"_a, "categories"_a, "values"_a, "limit"_a,
          R"(Standardised numbers (cut at +-limit), then indicators of categories, then the numbers' positions among the knots.

>>> none = np.array([0])
>>> columns(np.array([[3.0]]), none, np.array([1.0]), np.array([0.5]), np.array([[0.0, 4.0]]), none, np.array([3.0]), 5.0)
array([[1.       , 1.       , 0.8660254]]))");

    m.def("fourier", [](Const<double, 2> rows, Const<double, 2> frequencies, Const<double, 1> phases,
                        double amplitude) {
        const Index n = rows.size(0), p = rows.size(1), D = frequencies.size(0);
        require(frequencies.size(1) == p && phases.size() == D, "one frequency per column, one phase per feature");
        New<double, 2> out(n, D);
        Unlocked unlocked(double(n) * double(D) * double(p));
        for (Index i = 0; i < n; ++i)
            for (Index k = 0; k < D; ++k)
                out.view(i, k) =
                    amplitude * std::cos(lane_dot(rows.data + i * p, frequencies.data + k * p, p) + phases[k]);
        return out;
    }, "rows"_a, "frequencies"_a, "phases"_a, "amplitude"_a, R"(amplitude x cos(rows . frequency + phase).

>>> fourier(np.zeros((1, 2)), np.ones((3, 2)), np.zeros(3), 2.0)
array([[2., 2., 2.]]))");
}
