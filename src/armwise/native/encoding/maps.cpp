// Feature maps, row by row in a fixed order, so that a row has the same bits alone and in a block.
#include "array.hpp"
#include "modules.hpp"
#include "scratch.hpp"
#include "simd.hpp"

#include <algorithm>
#include <cmath>

using namespace nb::literals;
using namespace armwise;

namespace {

// The position of x among sorted knots, from 0 to 1: linear between knots, in the middle of equal ones.
double position(const double* knots, Index n, double x) {
    const Index below = std::lower_bound(knots, knots + n, x) - knots;
    const Index upto = std::upper_bound(knots + below, knots + n, x) - knots;
    const double last = double(n - 1);
    if (upto > below) return 0.5 * double(below + upto - 1) / last;
    if (below == 0) return 0.0;
    if (below == n) return 1.0;
    return (double(below - 1) + (x - knots[below - 1]) / (knots[below] - knots[below - 1])) / last;
}

// cos(x) lane by lane, within 4e-16 for |x| <= MAX_ANGLE: 1 - 2 sin(r / 2)^2 with r = x minus whole turns. libm's cosine
// takes ten times as long, and its last bit depends on the processor.
constexpr double MAX_ANGLE = 1e5;

inline Lanes lane_cos(Lanes x) {
    const Lanes whole = splat(6755399441055744.0);  // 1.5 x 2^52: a number added to it is rounded to an integer
    const Lanes turns = (x * splat(0.15915494309189535) + whole) - whole;
    // 2 pi in two parts, the first of 24 bits, so that its products are exact.
    const Lanes r = (x - turns * splat(6.28318500518798828125)) - turns * splat(3.01991598195675286766559e-07);
    const Lanes h = r * splat(0.5), q = h * h;
    Lanes series = splat(1.0 / 51090942171709440000.0);  // 1 / 21!; the next term is below 2e-18
    for (const double factorial : {121645100408832000.0, 355687428096000.0, 1307674368000.0, 6227020800.0, 39916800.0,
                                   362880.0, 5040.0, 120.0, 6.0, 1.0})
        series = splat(1.0 / factorial) - q * series;
    const Lanes sine = h * series;
    return splat(1.0) - splat(2.0) * (sine * sine);
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
        const Index n = rows.size(0), p = rows.size(1), D = frequencies.size(1), whole = D / LANES * LANES;
        require(frequencies.size(0) == p && phases.size() == D, "one row of frequencies per column, one phase per feature");
        New<double, 2> out(n, D);
        Unlocked unlocked(double(n) * double(D) * double(p));
        Scratch scratch(padded(D), padded(D));
        double* angles = scratch.data();
        for (Index i = 0; i < n; ++i) {
            const double* x = rows.data + i * p;
            double* y = out.view.data + i * D;
            for (Index k = 0; k < whole; k += LANES) {
                Lanes sums = zero();
                for (Index j = 0; j < p; ++j) sums += splat(x[j]) * load(frequencies.data + j * D + k);
                store(angles + k, sums + load(phases.data + k));
            }
            for (Index k = whole; k < D; ++k) {
                double sum = 0.0;
                for (Index j = 0; j < p; ++j) sum += x[j] * frequencies(j, k);
                angles[k] = sum + phases[k];
            }
            for (Index k = 0; k < D; k += LANES) {
                double cosines[LANES];
                store(cosines, splat(amplitude) * lane_cos(load(angles + k)));
                for (Index l = 0; l < std::min(LANES, D - k); ++l)
                    y[k + l] = std::fabs(angles[k + l]) <= MAX_ANGLE ? cosines[l] : amplitude * std::cos(angles[k + l]);
            }
        }
        return out;
    }, "rows"_a, "frequencies"_a, "phases"_a, "amplitude"_a, R"(amplitude x cos(row . column of frequencies + phase).

>>> fourier(np.zeros((1, 2)), np.ones((2, 3)), np.zeros(3), 2.0)
array([[2., 2., 2.]]))");
}
