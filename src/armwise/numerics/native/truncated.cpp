// Least squares on the leading eigenvectors of a Gram matrix: LinREL's estimate for a block of arms.
#include "choice.hpp"
#include "modules.hpp"
#include "scratch.hpp"
#include "simd.hpp"

#include <algorithm>
#include <nanobind/stl/tuple.h>

using namespace nb::literals;
using namespace armwise;

void bind_truncated(nb::module_& m) {
    m.doc() = "Least squares on the leading eigenvectors of a Gram matrix: LinREL's estimate for a block of arms.";

    m.def("estimate", [](Const<double, 2> basis, Index k, Const<double, 1> theta, Const<double, 2> X, double scale) {
        const Index K = X.size(0), d = X.size(1);
        require(basis.size(0) == d && basis.size(1) == d && theta.size() == d, "basis must be (d, d) and theta (d,)");
        require(0 <= k && k <= d, "k must lie between 0 and d");
        New<double, 1> means(K), widths(K);
        {
            Unlocked unlocked(double(K) * double(d) * double(d));
            Scratch projected(d);
            double* p = projected.data();
            for (Index a = 0; a < K; ++a) {
                const double* x = X[a].data;
                std::fill(p, p + d, 0.0);
                for (Index j = 0; j < d; ++j)
                    for (Index i = 0; i < d; ++i) p[i] += x[j] * basis(j, i);
                means[a] = lane_dot(x, theta.data, d);
                widths[a] = scale * std::sqrt(lane_dot(p + k, p + k, d - k)) + std::sqrt(lane_dot(p, p, k));
            }
        }
        return std::make_tuple(means, widths);
    }, "basis"_a, "k"_a, "theta"_a, "X"_a, "scale"_a,
          R"(Means x.theta and widths scale ||w|| + ||v~|| of the rows of X.

Column i of ``basis`` is an eigenvector: one that is cut for i < k, one that is kept, over sqrt(l_i), from k on.

>>> estimate(np.array([[0.0, 0.5], [1.0, 0.0]]), 1, np.array([2.0, 0.0]), np.array([[4.0, 3.0]]), 10.0)
(array([8.]), array([23.])))");
}
