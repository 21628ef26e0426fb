// The part of the squared rewards that a ridge model explains.
#include "array.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <vector>

using namespace nb::literals;
using namespace armwise;

namespace {

// theta' A theta, tr(A^-1), h' A theta and h' A h of a model (the last two are 0 for a model without h).
struct Explained {
    double fit = 0.0, trace = 0.0, cross = 0.0, ones = 0.0;

    Explained(const double* model, Index D, Index d, bool counted, double* theta, double* h) {
        std::copy(model + D * D, model + D * D + d, theta);
        if (counted)
            std::copy(model + (D + 1) * D, model + (D + 1) * D + d, h);
        else
            std::fill(h, h + d, 0.0);
        for (Index j = d - 1; j >= 0; --j) {  // W' root = theta from the last row on, and W' also = h
            const double* row = model + j * D;
            if (row[j] == 0.0) throw std::invalid_argument("W is singular");
            const double root = theta[j] / row[j], also = h[j] / row[j];
            fit += root * root, cross += root * also, ones += also * also;
            trace += row[j] * row[j];
            for (Index i = 0; i < j; ++i) {
                theta[i] -= row[i] * root, h[i] -= row[i] * also;
                trace += row[i] * row[i];
            }
        }
    }
};

}  // namespace

void bind_fits(nb::module_& m) {
    m.doc() = "What ridge models explain of the squares of their rewards.";

    m.def("explained", [](Const<double, 3> models, Index d) {
        const Index M = models.size(0), D = models.size(2);
        const bool counted = models.size(1) == D + 3;
        require(d > 0 && d <= D && (counted || models.size(1) == D + 1), "models must be (M, D + 1, D) or (M, D + 3, D)");
        Unlocked unlocked(3.0 * double(M) * double(d) * double(d));
        std::vector<double> theta(static_cast<std::size_t>(d)), h(theta.size());
        double fit = 0.0, trace = 0.0, cross = 0.0, ones = 0.0;
        Index taught = 0;
        for (Index k = 0; k < M; ++k) {
            const double* model = models.data + k * models.size(1) * D;
            if (counted && model[(D + 2) * D] == 0.0) continue;
            const Explained one(model, D, d, counted, theta.data(), h.data());
            fit += one.fit, trace += one.trace, cross += one.cross, ones += one.ones;
            ++taught;
        }
        return std::tuple(fit, trace, cross, ones, taught);
    }, "models"_a, "d"_a,
          R"(theta' A theta, tr(A^-1), h' A theta and h' A h, the sums over models (the last two are 0 for models without h).

Models that count their rows and have none are left out; the last value is the number of the others.

>>> models = np.zeros((1, 9, 8)); models[0, 0, 0] = 0.5; models[0, 1, 1] = 1.0; models[0, 8, :2] = 3.0, 1.0
>>> explained(models, 2)
(37.0, 1.25, 0.0, 0.0, 1))");
}
