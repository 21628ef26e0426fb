// Kernel functions in blocks: a kernel is a small postfix program, so that sums and products are compiled too.
//
// A program is (ops, args), one row per instruction: ops = (kind, first column, one past the last or -1), args = its
// two numbers. Leaves push a matrix, ADD and MULTIPLY join the two on top.
#pragma once

#include "array.hpp"

#include <cmath>
#include <tuple>
#include <vector>

namespace armwise {

enum Kind : int64_t { CONSTANT, LINEAR, POLYNOMIAL, RBF, MATERN12, MATERN32, MATERN52, ADD, MULTIPLY };

using ProgramArgument = std::tuple<Const<int64_t, 2>, Const<double, 2>>;

class Program {
  public:
    explicit Program(const ProgramArgument& program) : ops_(std::get<0>(program)), args_(std::get<1>(program)) {
        require(ops_.size(1) == 3 && args_.size(1) == 2 && ops_.size(0) == args_.size(0) && ops_.size(0) > 0,
                "program must be (m, 3) instructions and their (m, 2) numbers");
        Index depth = 0;
        for (Index i = 0; i < ops_.size(0); ++i) {
            const int64_t kind = ops_(i, 0);
            require(kind >= CONSTANT && kind <= MULTIPLY, "program has an unknown instruction");
            depth += kind == ADD || kind == MULTIPLY ? -1 : 1;
            require(depth >= 1, "program joins more matrices than it pushes");
            if (depth > depth_) depth_ = depth;
        }
        require(depth == 1, "program must leave one matrix");
    }

    // Whether the columns that the program reads are there in rows of d numbers.
    void check_width(Index d) const {
        for (Index i = 0; i < ops_.size(0); ++i)
            require(ops_(i, 0) >= ADD || (ops_(i, 1) >= 0 && ops_(i, 1) <= d && ops_(i, 2) <= d),
                    "program reads columns that the rows do not have");
    }

    // k(x, z) of the rows of X (down) and of Z (across) into `out`.
    void cross(View<const double, 2> X, View<const double, 2> Z, double* out) {
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

    // k(x, x) of every row.
    void diagonal(View<const double, 2> X, double* out) {
        View<const double, 2> row = X;
        row.shape[0] = 1;
        for (Index i = 0; i < X.size(0); ++i) {
            row.data = X.data + i * X.size(1);
            cross(row, row, out + i);
        }
    }

  private:
    View<const int64_t, 2> ops_;
    View<const double, 2> args_;
    Index depth_ = 1;
    std::vector<double> stack_;

    static double from_product(int64_t kind, double a, double b, double s) {
        if (kind == LINEAR) return s;
        double base = s + b, power = 1.0;  // POLYNOMIAL: degree, offset
        for (auto n = static_cast<uint64_t>(a); n; n >>= 1) {
            if (n & 1) power *= base;
            if (n > 1) base *= base;
        }
        return power;
    }

    // The stationary kernels, from the squared distance s.
    static double from_distance(int64_t kind, double scale, double s) {
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

    template <bool Distance> static double term(double x, double z) {
        return Distance ? (x - z) * (x - z) : x * z;
    }

    // x.z or ||x - z||^2 of one x and all z: four rows of Z at a time, each summed in order.
    template <bool Distance>
    static void compare(const double* x, const double* Z, Index n, Index stride, Index d, double* out) {
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

    void leaf(Index i, View<const double, 2> X, View<const double, 2> Z, double* out) const {
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
};

}  // namespace armwise
