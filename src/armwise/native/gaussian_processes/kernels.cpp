// Kernel functions in blocks (kernels.hpp), and their bindings.
#include "kernels.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

#include <cmath>

namespace armwise {

namespace {

double from_product(int64_t kind, double a, double b, double s) {
    if (kind == LINEAR) return s;
    double base = s + b, power = 1.0;  // POLYNOMIAL: degree, offset
    for (auto n = static_cast<uint64_t>(a); n; n >>= 1) {
        if (n & 1) power *= base;
        if (n > 1) base *= base;
    }
    return power;
}

// The stationary kernels, from the squared distance s.
double from_distance(int64_t kind, double scale, double s) {
    if (kind == RBF) return std::exp(-0.5 * s / (scale * scale));
    double z = std::sqrt(s) / scale;
    if (kind == MATERN12) return std::exp(-z);
    if (kind == MATERN32) {
        z *= std::sqrt(3.0);
        return (1.0 + z) * std::exp(-z);
    }
    z *= std::sqrt(5.0);
    return (1.0 + z + z * z / 3.0) * std::exp(-z);
}

template <bool Distance> double term(double x, double z) {
    return Distance ? (x - z) * (x - z) : x * z;
}

// x.z or ||x - z||^2 of one x and all z: four rows of Z at a time, each summed in order.
template <bool Distance>
void compare(const double* x, const double* Z, Index n, Index stride, Index d, double* out) {
    Index j = 0;
    for (; j + 4 <= n; j += 4) {
        const double *z0 = Z + j * stride, *z1 = z0 + stride, *z2 = z1 + stride, *z3 = z2 + stride;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        for (Index c = 0; c < d; ++c) {
            s0 += term<Distance>(x[c], z0[c]);
            s1 += term<Distance>(x[c], z1[c]);
            s2 += term<Distance>(x[c], z2[c]);
            s3 += term<Distance>(x[c], z3[c]);
        }
        out[j] = s0, out[j + 1] = s1, out[j + 2] = s2, out[j + 3] = s3;
    }
    for (; j < n; ++j) {
        double s = 0.0;
        for (Index c = 0; c < d; ++c) s += term<Distance>(x[c], Z[j * stride + c]);
        out[j] = s;
    }
}

}  // namespace

void Program::leaf(Index i, View<const double, 2> X, View<const double, 2> Z, double* out) const {
    const int64_t kind = ops_(i, 0);
    const Index D = X.size(1), low = ops_(i, 1), high = ops_(i, 2) >= 0 ? ops_(i, 2) : D, n = Z.size(0);
    const double a = args_(i, 0), b = args_(i, 1);
    for (Index r = 0; r < X.size(0); ++r, out += n) {
        if (kind == CONSTANT) {
            for (Index j = 0; j < n; ++j) out[j] = a;
            continue;
        }
        const double* x = X.data + r * D + low;
        bool same = r > 0;  // arms that share their context, as in CGPUCB
        for (Index c = 0; same && c < high - low; ++c) same = x[c] == x[c - D];
        if (same) {
            for (Index j = 0; j < n; ++j) out[j] = out[j - n];
        } else if (kind <= POLYNOMIAL) {
            compare<false>(x, Z.data + low, n, D, high - low, out);
            for (Index j = 0; j < n; ++j) out[j] = from_product(kind, a, b, out[j]);
        } else {
            compare<true>(x, Z.data + low, n, D, high - low, out);
            for (Index j = 0; j < n; ++j) out[j] = from_distance(kind, a, out[j]);
        }
    }
}

void Program::cross(View<const double, 2> X, View<const double, 2> Z, double* out) {
    const Index size = X.size(0) * Z.size(0);
    stack_.resize(static_cast<size_t>((depth_ - 1) * size));
    Index top = 0;
    const auto level = [&](Index i) { return i == 0 ? out : stack_.data() + (i - 1) * size; };
    for (Index i = 0; i < ops_.size(0); ++i) {
        const int64_t kind = ops_(i, 0);
        if (kind == ADD || kind == MULTIPLY) {
            --top;
            double* left = level(top - 1);
            const double* right = level(top);
            if (kind == ADD)
                for (Index e = 0; e < size; ++e) left[e] += right[e];
            else
                for (Index e = 0; e < size; ++e) left[e] *= right[e];
        } else {
            leaf(i, X, Z, level(top));
            ++top;
        }
    }
}

void Program::diagonal(View<const double, 2> X, double* out) {
    View<const double, 2> row = X;
    row.shape[0] = 1;
    for (Index i = 0; i < X.size(0); ++i) {
        row.data = X.data + i * X.size(1);
        cross(row, row, out + i);
    }
}

}  // namespace armwise

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
    }, "program"_a, "X"_a, "Z"_a, R"(k(x, z): a row for each row of X, a column for each row of Z.

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
