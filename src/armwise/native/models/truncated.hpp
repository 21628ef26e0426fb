// Least squares on the leading eigenvectors of a Gram matrix: LinREL's model.
#pragma once

#include "eigen.hpp"
#include "scratch.hpp"
#include "simd.hpp"

#include <vector>

namespace armwise {

constexpr double MIN_EIGENVALUE = 1.0 - 1e-9;  // of an eigenvector that is kept: 1 up to rounding

// Column i of `basis` is an eigenvector: for i < k one that is cut, from k on one that is kept, divided by sqrt(l_i).
inline void truncated_estimate(const double* basis, Index k, const double* theta, const double* X, Index K, Index d,
                               double scale, double* means, double* widths) {
    Scratch projected(d);
    double* p = projected.data();
    for (Index a = 0; a < K; ++a) {
        const double* x = X + a * d;
        std::fill(p, p + d, 0.0);
        for (Index j = 0; j < d; ++j)
            for (Index i = 0; i < d; ++i) p[i] += x[j] * basis[j * d + i];
        means[a] = lane_dot(x, theta, d);
        widths[a] = scale * std::sqrt(lane_dot(p + k, p + k, d - k)) + std::sqrt(lane_dot(p, p, k));
    }
}

// D'D += x x', D'c += r x; what would overflow is refused before anything is changed.
inline void truncated_learn(double* gram, double* b, Index d, const double* x, double reward) {
    bool all = true;
    for (Index i = 0; i < d; ++i) {
        all &= is_finite(b[i] + reward * x[i]);
        for (Index j = 0; j < d; ++j) all &= is_finite(gram[i * d + j] + x[i] * x[j]);
    }
    require(all, "context must be finite (and its square must not overflow)");
    for (Index i = 0; i < d; ++i) {
        b[i] += reward * x[i];
        for (Index j = 0; j < d; ++j) gram[i * d + j] += x[i] * x[j];
    }
}

// D'D and D'c, and their decomposition, computed when an estimate first needs it.
class Truncated {
  public:
    Truncated(double* gram, double* b, Index d)
        : gram_(gram), b_(b), d_(d), eigen_(d), basis_(std::size_t(d * d)), theta_(std::size_t(d)), y_(std::size_t(d)),
          before_(gram, gram + d * d) {
        before_.insert(before_.end(), b, b + d);
    }

    const std::vector<double>& basis() const { return basis_; }
    const std::vector<double>& theta() const { return theta_; }
    Index cut() const { return k_; }

    void decompose() {
        eigen_.decompose(gram_);
        k_ = std::lower_bound(eigen_.values.begin(), eigen_.values.end(), MIN_EIGENVALUE) - eigen_.values.begin();
        for (Index i = 0; i < d_; ++i) {
            const double* vector = eigen_.vectors.data() + i * d_;
            const double root = i < k_ ? 1.0 : std::sqrt(eigen_.values[i]);
            for (Index j = 0; j < d_; ++j) basis_[j * d_ + i] = vector[j] / root;
        }
        std::fill(y_.begin(), y_.end(), 0.0);
        for (Index j = 0; j < d_; ++j)
            for (Index i = k_; i < d_; ++i) y_[i] += basis_[j * d_ + i] * b_[j];
        for (Index j = 0; j < d_; ++j) theta_[j] = lane_dot(basis_.data() + j * d_ + k_, y_.data() + k_, d_ - k_);
        fresh_ = true;
    }
    void estimate(const double* X, Index K, double scale, double* means, double* widths) {
        if (!fresh_) decompose();
        truncated_estimate(basis_.data(), k_, theta_.data(), X, K, d_, scale, means, widths);
    }
    void learn(const double* x, double reward) {
        truncated_learn(gram_, b_, d_, x, reward);
        fresh_ = false;
    }
    // Restore the state before the block.
    void restore() {
        std::copy_n(before_.data(), d_ * d_, gram_);
        std::copy_n(before_.data() + d_ * d_, d_, b_);
    }

  private:
    double *gram_, *b_;
    Index d_, k_ = 0;
    SymmetricEigen eigen_;
    std::vector<double> basis_, theta_, y_, before_;
    bool fresh_ = false;
};

}  // namespace armwise
