// Bindings of choice.hpp.
#include "choice.hpp"
#include "modules.hpp"
#include "random.hpp"

#include <nanobind/stl/tuple.h>
#include <utility>

using namespace nb::literals;
using namespace armwise;

namespace {

std::pair<const double*, Index> numbers(nb::handle values) {
    auto* array = reinterpret_cast<PyArrayObject*>(values.ptr());
    if (!PyArray_Check(values.ptr()) || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array))
        throw nb::type_error("values must be a C-contiguous array of float64");
    return {static_cast<const double*>(PyArray_DATA(array)), PyArray_SIZE(array)};
}

}  // namespace

void bind_choice(nb::module_& m) {
    m.doc() = "Checks and draws that every decision needs: finite input, ties, sampling from a distribution.";
    m.attr("TIE") = TIE;

    m.def("finite", [](double value) { return is_finite(value); }, "value"_a, R"(Whether a number is neither NaN nor infinite.

>>> finite(float("nan")), finite(float("-inf")), finite(1e308)
(False, False, True))");

    m.attr("MAX_MAGNITUDE") = MAX_MAGNITUDE;
    m.def("all_finite", [](nb::handle values) {
        const auto [data, n] = numbers(values);
        Unlocked unlocked(double(n) / 8);
        return all_finite(data, n);
    }, "values"_a, nb::sig("def all_finite(values: numpy.typing.NDArray[numpy.float64]) -> bool"),
          R"(Whether no entry of a C-contiguous array, of any shape, is NaN or infinite.

>>> all_finite(np.array([1.0, np.nan]))
False)");

    m.def("all_within", [](nb::handle values) {
        const auto [data, n] = numbers(values);
        Unlocked unlocked(double(n) / 8);
        return all_within(data, n);
    }, "values"_a, nb::sig("def all_within(values: numpy.typing.NDArray[numpy.float64]) -> bool"),
          R"(Whether every entry of a C-contiguous array, of any shape, is a number of at most MAX_MAGNITUDE in size.

>>> all_within(np.array([1.0, -1e150])), all_within(np.array([1e151])), all_within(np.array([np.nan]))
(True, False, False))");

    m.def("first_best", [](Const<double, 1> scores) {
        const Best best = first_best(scores.data, scores.size());
        return std::make_tuple(best.first, best.ties);
    }, "scores"_a, R"(The first arm within 1e-12 of the largest score, and the number of such arms.

>>> first_best(np.array([0.5, 1.0, 1.0]))
(1, 2))");

    m.def("best_arms", [](Const<double, 1> scores) {
        const Best best = first_best(scores.data, scores.size());
        New<int64_t, 1> arms(best.ties);
        double top = scores[0];
        for (double score : scores)
            if (score > top) top = score;
        Index n = 0;
        for (Index a = best.first; a < scores.size(); ++a)
            if (scores[a] >= top - TIE) arms[n++] = a;
        return arms;
    }, "scores"_a, R"(The arms whose score lies within 1e-12 of the largest; NaN among the scores is refused.

>>> best_arms(np.array([0.5, 1.0, 1.0]))
array([1, 2]))");

    m.def("draw", [](Const<double, 1> probabilities, double u) {
        return draw(probabilities.data, probabilities.size(), u);
    }, "probabilities"_a, "u"_a, R"(The arm at which the running total of ``probabilities`` passes ``u`` in [0, 1).

>>> draw(np.array([0.25, 0.75]), 0.5)
1)");

    m.def("tied_probabilities", [](Const<double, 1> scores) {
        New<double, 1> p(scores.size());
        tied_probabilities_into(scores.data, scores.size(), p.view.data);
        return p;
    }, "scores"_a, R"(Uniform over the arms that tie for the largest score.

>>> tied_probabilities(np.array([0.5, 1.0, 1.0]))
array([0. , 0.5, 0.5]))");

    m.def("row_argmax", [](Const<double, 2> scores) {
        New<int64_t, 1> best(scores.size(0));
        require(scores.size(1) > 0, "scores must have a column");
        Unlocked unlocked(double(scores.size()));
        for (Index t = 0; t < scores.size(0); ++t) {
            const View<const double, 1> row = scores[t];
            Index arm = 0;
            for (Index a = 1; a < row.size(); ++a)
                if (row[a] > row[arm]) arm = a;
            best[t] = arm;
        }
        return best;
    }, "scores"_a, R"(The first largest entry of every row: np.argmax, faster for short rows.

>>> row_argmax(np.array([[0.5, 1.0, 1.0], [2.0, 1.0, 0.0]]))
array([1, 0]))");

    m.def("explored", [](Index T, Index n_arms, double epsilon, Generator rng) {
        require(T >= 0 && n_arms > 0, "there must be an arm");
        New<int64_t, 1> arms(T);
        for (Index t = 0; t < T; ++t)
            arms[t] = rng.random() < epsilon ? static_cast<int64_t>(rng.random() * double(n_arms)) : -1;
        return arms;
    }, "T"_a, "n_arms"_a, "epsilon"_a, "rng"_a,
          R"(A uniform arm for each round that explores, which it does with probability epsilon; -1 for the others.

>>> explored(5, 1, 0.5, np.random.default_rng(1))
array([-1, -1,  0,  0, -1]))");
}
