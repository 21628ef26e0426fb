// Empirical likelihood of two inequalities between means: the largest value of its dual.
#include "array.hpp"
#include "modules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace nb::literals;
using namespace armwise;

namespace {

// sum_i counts_i ln(1 + a (u_i - t) + b s_i) at (a, b), with its slope and minus its curvature.
class Dual {
  public:
    double slope[2], curve[3];  // curve: aa, ab, bb

    Dual(const double* u, const double* s, const double* counts, Index n, double t)
        : u_(u), s_(s), counts_(counts), n_(n), t_(t) {}

    // Minus infinity outside the domain.
    double value(double a, double b) const {
        double sum = 0.0;
        for (Index i = 0; i < n_; ++i) {
            const double inside = 1.0 + (a * (u_[i] - t_) + b * s_[i]);
            if (!(inside > 1e-12)) return -std::numeric_limits<double>::infinity();
            sum += counts_[i] * std::log(inside);
        }
        return sum;
    }

    void look(double a, double b) {
        double g0 = 0.0, g1 = 0.0, h00 = 0.0, h01 = 0.0, h11 = 0.0;
        for (Index i = 0; i < n_; ++i) {
            const double up = u_[i] - t_, scale = 1.0 / (1.0 + (a * up + b * s_[i]));
            const double x = up * scale, y = s_[i] * scale, cx = counts_[i] * x, cy = counts_[i] * y;
            g0 += cx;
            g1 += cy;
            h00 += cx * x;
            h01 += cx * y;
            h11 += cy * y;
        }
        slope[0] = g0, slope[1] = g1;
        curve[0] = h00, curve[1] = h01, curve[2] = h11;
    }

    // Newton's step in the free coordinates: those above zero, or with a positive slope; false if there is none.
    bool step(const double (&lam)[2], double (&to)[2]) const {
        const bool first = lam[0] > 0.0 || slope[0] > 0.0, second = lam[1] > 0.0 || slope[1] > 0.0;
        if (!first && !second) return false;
        const double trace = (first ? curve[0] : 0.0) + (second ? curve[2] : 0.0);
        const double more = 1e-10 * std::max(trace, 1e-300);
        const double aa = curve[0] + more, bb = curve[2] + more, ab = curve[1];
        to[0] = to[1] = 0.0;
        if (first && second) {
            const double below = ab / aa;  // positive definite: elimination needs no pivots
            to[1] = (slope[1] - below * slope[0]) / (bb - below * ab);
            to[0] = (slope[0] - ab * to[1]) / aa;
        } else if (first) {
            to[0] = slope[0] / aa;
        } else {
            to[1] = slope[1] / bb;
        }
        return true;
    }

  private:
    const double *u_, *s_, *counts_;
    Index n_;
    double t_;
};

}  // namespace

void bind_likelihood(nb::module_& m) {
    m.doc() = "Empirical likelihood of two inequalities between means: the largest value of its dual.";

    m.def("largest", [](Const<double, 1> u, double t, Const<double, 1> s, Const<double, 1> counts, double enough) {
        require(u.size() == s.size() && u.size() == counts.size(), "u, s and counts must have one entry per row");
        Unlocked unlocked(100.0 * double(u.size()));
        Dual dual(u.data, s.data, counts.data, u.size(), t);
        double lam[2] = {0.0, 0.0}, best = 0.0, step[2];
        for (int iteration = 0; iteration < 50; ++iteration) {
            dual.look(lam[0], lam[1]);
            if (!dual.step(lam, step)) break;
            double length = 1.0, found = -std::numeric_limits<double>::infinity(), there[2] = {0.0, 0.0};
            while (found <= best && length > 1e-7) {
                for (int i = 0; i < 2; ++i) there[i] = std::max(lam[i] + length * step[i], 0.0);
                found = dual.value(there[0], there[1]);
                length /= 2.0;
            }
            if (!(found > best)) break;
            const double gained = found - best;
            lam[0] = there[0], lam[1] = there[1], best = found;
            if (gained < 1e-6 || best > enough) break;
        }
        return best;
    }, "u"_a, "t"_a, "s"_a, "counts"_a, "enough"_a,
          R"(max over a, b >= 0 of sum_i counts_i ln(1 + a (u_i - t) + b s_i).

Minus the log likelihood ratio of E[u] <= t and E[s] <= 0 (the dual of Owen 2001), by Newton's method on the free
coordinates; a step that leaves the domain, or gains nothing, is halved. It stops once the value exceeds ``enough``.

>>> u, ones = np.array([0.0, 1.0]), np.ones(2)  # E[u] <= 1/4: ln 4/3 of the likelihood is lost
>>> round(largest(u, 0.25, -ones, ones, np.inf), 6), largest(u, 0.75, -ones, ones, np.inf)
(0.287682, 0.0))");
}
