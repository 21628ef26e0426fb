// Anytime-valid lower bounds on a running mean: the predictable plug-in empirical-Bernstein sequence.
#include "array.hpp"
#include "modules.hpp"

#include <algorithm>
#include <cmath>

using namespace nb::literals;
using namespace armwise;

void bind_sequences(nb::module_& m) {
    m.doc() = "Anytime-valid lower bounds on a running mean: the predictable plug-in empirical-Bernstein sequence.";
    constexpr Index STATE = 7;
    m.attr("STATE") = int(STATE);

    m.def("advance_lower", [](Array<double, 1> state, Const<double, 1> x, double log_inverse_delta, double scale,
                              Array<double, 1> bounds) {
        require(state.size() == STATE && bounds.size() >= x.size(), "state must have 7 entries and bounds one per x");
        Unlocked unlocked(50.0 * double(x.size()));
        // n, sum x, sum (x - mean)^2, sum lam, sum lam x, sum psi(lam) (x - mean)^2, best bound so far
        auto& [n, sum, squares, lams, gains, losses, best] = *reinterpret_cast<double(*)[STATE]>(state.data);
        const double prior = scale <= 1.0 ? 0.25 : scale;
        for (Index i = 0; i < x.size(); ++i) {
            const double next = n + 1.0, mean = std::min(1.0, (0.5 + sum) / next);
            const double variance = (prior * scale + squares) / (n + scale);
            const double lam =
                std::min(0.5, std::sqrt(2.0 * log_inverse_delta / (variance * next * std::log(1.0 + next))));
            lams += lam;
            gains += lam * x[i];
            losses += (-std::log1p(-lam) - lam) * ((x[i] - mean) * (x[i] - mean));
            n = next;
            sum += x[i];
            const double off = x[i] - std::min(1.0, (0.5 + sum) / (n + 1.0));
            squares += off * off;
            best = std::max(best, (gains - log_inverse_delta - losses) / lams);
            bounds[i] = best;
        }
    }, "state"_a, "x"_a, "log_inverse_delta"_a, "scale"_a, "bounds"_a,
          R"(Feed observations x >= 0 with conditional mean in [0, 1]; ``bounds[i]`` is the lower bound after x[i].

exp(lam (x - mu) - psi(lam) (x - m)^2), psi(lam) = -ln(1 - lam) - lam, is a test supermartingale for every
predictable lam in [0, 1) and m <= 1 + x, so that x needs no upper limit (Fan et al. 2015; Howard et al. 2021;
Waudby-Smith & Ramdas 2024, Theorem 2, whose lam is used). A bound stays valid, so that the best so far is kept.
``scale`` is a guess of the largest x. It makes the first bets cautious (a variance of up to ``scale`` is assumed
until about as many observations contradict it); it changes the width, not the validity.

>>> state, bounds = np.zeros(STATE), np.empty(1000)
>>> advance_lower(state, np.ones(1000), np.log(20), 1.0, bounds)
>>> bool(0.9 < bounds[-1] < 1)
True)");
}
