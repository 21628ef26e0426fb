// Kernel functions in blocks: a kernel is a small postfix program, so that sums and products are compiled too.
//
// A program is (ops, args), one row per instruction: ops = (kind, first column, one past the last or -1), args = two
// numbers. Leaves push a matrix; ADD and MULTIPLY combine the top two.
#pragma once

#include "array.hpp"

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

    // Check that rows of d numbers have the columns that the program reads.
    void check_width(Index d) const {
        for (Index i = 0; i < ops_.size(0); ++i)
            require(ops_(i, 0) >= ADD || (ops_(i, 1) >= 0 && ops_(i, 1) <= d && ops_(i, 2) <= d),
                    "program reads columns that the rows do not have");
    }

    // k(x, z) into `out`: a row for each row of X, a column for each row of Z.
    void cross(View<const double, 2> X, View<const double, 2> Z, double* out);

    // k(x, x) of every row.
    void diagonal(View<const double, 2> X, double* out);

  private:
    View<const int64_t, 2> ops_;
    View<const double, 2> args_;
    Index depth_ = 1;
    std::vector<double> stack_;

    void leaf(Index i, View<const double, 2> X, View<const double, 2> Z, double* out) const;
};

}  // namespace armwise
