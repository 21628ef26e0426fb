// What a ridge model explains of the squares of its rewards.
#include "array.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <vector>

using namespace nb::literals;
using namespace armwise;

void bind_fits(nb::module_& m) {
    m.doc() = "What a ridge model explains of the squares of its rewards.";

    m.def("explained", [](Const<double, 2> W, Const<double, 1> theta) {
        const Index d = theta.size();
        require(W.size(0) == d && W.size(1) == d, "W must have a row and a column per entry of theta");
        Unlocked unlocked(2.0 * double(d) * double(d));
        std::vector<double> rest(theta.begin(), theta.end());
        double fit = 0.0, squares = 0.0;
        for (Index j = d - 1; j >= 0; --j) {  // W' root = theta from the last row on
            const double* row = W.data + j * d;
            if (row[j] == 0.0) throw std::invalid_argument("W is singular");
            const double root = rest[j] / row[j];
            fit += root * root;
            squares += row[j] * row[j];
            for (Index i = 0; i < j; ++i) {
                rest[i] -= row[i] * root;
                squares += row[i] * row[i];
            }
        }
        return std::tuple(fit, squares);
    }, "W"_a, "theta"_a,
          R"(theta' A theta and tr(A^-1), where A^-1 = W'W and W is lower triangular.

>>> explained(np.array([[0.5, 0.0], [0.0, 1.0]]), np.array([3.0, 1.0]))
(37.0, 1.25))");
}
