// Bindings of weights.hpp, and the unbiased reward estimator (survey 2).
#include "weights.hpp"
#include "modules.hpp"

using namespace nb::literals;
using namespace armwise;

void bind_weights(nb::module_& m) {
    m.doc() = "Exponential weights in log space, and the unbiased reward estimator (survey 2).";

    m.def("importance_weighted", [](double reward, double probability) { return reward / probability; }, "reward"_a,
          "probability"_a, R"(The estimate r / p of the played arm's reward; every other arm's is 0 (survey 2).

>>> importance_weighted(0.5, 0.25)
2.0)");

    m.def("normalised", [](Const<double, 1> log_weights) {
        New<double, 1> p(log_weights.size());
        normalised(log_weights.data, log_weights.size(), p.view.data);
        return p;
    }, "log_weights"_a, R"(The weights' distribution; the largest exponent is subtracted first, so that nothing overflows.

>>> normalised(np.array([1e6, 1e6]))
array([0.5, 0.5]))");

    m.def("mixed", [](Const<double, 1> log_weights, double gamma) {
        New<double, 1> p(log_weights.size());
        mixed(log_weights.data, log_weights.size(), gamma, p.view.data);
        return p;
    }, "log_weights"_a, "gamma"_a, R"(The weights' distribution with a share ``gamma`` spread uniformly.

>>> mixed(np.zeros(4), 0.2)
array([0.25, 0.25, 0.25, 0.25]))");

    m.def("floored", [](Const<double, 1> p, double epsilon) {
        New<double, 1> result(p.size());
        floored(p.data, p.size(), epsilon, result.view.data);
        return result;
    }, "p"_a, "epsilon"_a,
          R"(A distribution with a share ``epsilon`` spread uniformly: no entry is below epsilon / K.

>>> floored(np.array([1.0, 0.0]), 0.2)
array([0.9, 0.1]))");
}
