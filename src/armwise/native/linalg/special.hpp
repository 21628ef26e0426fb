// The distribution functions of the normal and of the beta distribution.
//
// exp, ln, erfc and ln Gamma are those of the C library: the last bit may differ between machines.
#pragma once

#include <cmath>

namespace armwise {

inline double normal_cdf(double z) { return 0.5 * std::erfc(-z * 0.70710678118654752440); }

// ln Gamma(z) - (z - 1/2) ln z + z - ln(2 pi) / 2: the remainder of Stirling's formula.
inline double stirling_rest(double z) {
    constexpr double HALF_LOG_2PI = 0.91893853320467274178;
    if (z < 16.0) return std::lgamma(z) - ((z - 0.5) * std::log(z) - z + HALF_LOG_2PI);
    const double r = 1.0 / (z * z);
    return (1.0 / 12.0 -
            r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r * (1.0 / 1188.0 - r * 691.0 / 360360.0))))) /
           z;
}

// a ln(a / m) + m - a, without cancellation where a is near m (Loader 2000): a / m = (1 + v) / (1 - v).
inline double deviance(double a, double m) {
    const double v = (a - m) / (a + m);
    if (std::fabs(v) > 0.1) return a * std::log(a / m) + m - a;
    double sum = (a - m) * v, power = 2.0 * a * v;
    for (int k = 3; k < 100; k += 2) {
        power *= v * v;
        const double next = sum + power / k;
        if (next == sum) break;
        sum = next;
    }
    return sum;
}

// The Beta(a, b) distribution at x, with y = 1 - x.
class Beta {
  public:
    Beta(double a, double b)
        : a_(a), b_(b), factor_(std::sqrt(a * b / (6.2831853071795864769 * (a + b))) *
                                std::exp(stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b))) {}

    // x^a y^b / B(a, b): the density times x y.
    double power(double x, double y) const {
        if (x <= 0.0 || y <= 0.0) return 0.0;
        const double n = a_ + b_;
        return factor_ * std::exp(-deviance(a_, n * x) - deviance(b_, n * y));
    }
    // P(below x) by the continued fraction, which converges fast below the mean; above the mean by symmetry.
    double cdf(double x, double y) const {
        if (x <= 0.0) return 0.0;
        if (y <= 0.0) return 1.0;
        const double at = power(x, y), below = a_ > b_ ? (a_ + b_) * y - b_ : a_ - (a_ + b_) * x;  // a - (a + b) x
        return below >= 0.0 ? at * fraction(a_, b_, x, y, below) : 1.0 - at * fraction(b_, a_, y, x, -below);
    }

  private:
    double a_, b_, factor_;

    // I_x(a, b) over x^a y^b / B(a, b), for below = a - (a + b) x >= 0: the continued fraction of DiDonato and Morris
    // (1992), which has no cancellation, by Lentz's method.
    static double fraction(double a, double b, double x, double y, double below) {
        double denominator = (a / (a + 1.0)) * (below + 1.0), c = denominator, d = 0.0;  // below the first numerator, 1
        for (int n = 1; n < 100000; ++n) {
            const double s = a + 2.0 * n - 1.0, w = n * (b - n) * x;
            const double alpha = (a + n - 1.0) / s * ((a + b + n - 1.0) / s) * w * x;
            const double beta = n + w / s + (a + n) / (s + 2.0) * (below + 1.0 + n * (1.0 + y));
            d = 1.0 / (beta + alpha * d), c = beta + alpha / c;
            const double step = c * d;
            denominator *= step;
            if (std::fabs(step - 1.0) < 1e-16) break;
        }
        return 1.0 / denominator;
    }
};

}  // namespace armwise
