// Bindings of kernels.hpp.
#include "kernels.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

void bind_kernels(nb::module_& m) {
    m.doc() = "Kernel functions in blocks, each a small postfix program.";
    m.attr("CONSTANT") = int(CONSTANT);
    m.attr("LINEAR") = int(LINEAR);
    m.attr("POLYNOMIAL") = int(POLYNOMIAL);
    m.attr("RBF") = int(RBF);
    m.attr("MATERN12") = int(MATERN12);
    m.attr("MATERN32") = int(MATERN32);
    m.attr("MATERN52") = int(MATERN52);
    m.attr("ADD") = int(ADD);
    m.attr("MULTIPLY") = int(MULTIPLY);

    m.def("cross", [](const ProgramArgument& code, Const<double, 2> X, Const<double, 2> Z) {
        Program program(code);
        require(X.size(1) == Z.size(1), "X and Z must have as many columns");
        program.check_width(X.size(1));
        New<double, 2> out(X.size(0), Z.size(0));
        Unlocked unlocked(double(X.size(0)) * double(Z.size(0)) * double(X.size(1) + 10));
        program.cross(X, Z, out.view.data);
        return out;
    }, "program"_a, "X"_a, "Z"_a, R"(k(x, z) for the rows of X (down) and of Z (across).

>>> rbf = np.array([[RBF, 0, -1]]), np.array([[1.0, 0.0]])
>>> cross(rbf, np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(4)
array([[1.    , 0.3679]]))");

    m.def("diagonal", [](const ProgramArgument& code, Const<double, 2> X) {
        Program program(code);
        program.check_width(X.size(1));
        New<double, 1> out(X.size(0));
        Unlocked unlocked(double(X.size(0)) * double(X.size(1) + 20));
        program.diagonal(X, out.view.data);
        return out;
    }, "program"_a, "X"_a, R"(k(x, x) for the rows of X.

>>> rbf = np.array([[RBF, 0, -1]]), np.array([[1.0, 0.0]])
>>> diagonal(rbf, np.eye(2))
array([1., 1.]))");
}
