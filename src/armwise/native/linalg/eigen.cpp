// Eigenvalues and eigenvectors of a symmetric matrix; see eigen.hpp.
#include "eigen.hpp"
#include "simd.hpp"

#include <algorithm>
#include <cmath>

namespace armwise {

namespace {
constexpr double MIN_NORM = 1e-30;  // of a column below the diagonal; the matrix is scaled to size 1
}

void SymmetricEigen::decompose(const double* matrix) {
    double largest = 0.0;
    for (Index i = 0; i < n_ * n_; ++i) largest = std::max(largest, std::fabs(matrix[i]));
    int exponent = 0;  // a power of two scales without rounding, so that no square overflows
    std::frexp(largest, &exponent);
    const double shrink = std::ldexp(1.0, -std::max(-1000, std::min(exponent, 1000)));
    for (Index i = 0; i < n_ * n_; ++i) A_[i] = shrink * matrix[i];
    tridiagonalise();
    for (Index l = 0; l < n_; ++l) descend(l);
    for (double& value : values) value /= shrink;
    sort();
}

void SymmetricEigen::tridiagonalise() {
    double* A = A_.data();
    for (Index k = 0; k + 1 < n_; ++k) {
        // v = x - alpha e_1 of column k below the diagonal is stored in row k above the diagonal.
        double* v = A + k * n_;
        const Index from = k + 1;
        const double rest = lane_dot(v + from + 1, v + from + 1, n_ - from - 1);
        if (rest <= MIN_NORM * MIN_NORM) {  // 2 / rest would overflow
            off_[k] = v[from], beta_[k] = 0.0;
            continue;
        }
        const double length = std::sqrt(v[from] * v[from] + rest), alpha = v[from] > 0.0 ? -length : length;
        off_[k] = alpha;
        v[from] -= alpha;
        const double beta = 2.0 / (v[from] * v[from] + rest);
        beta_[k] = beta;
        double along = 0.0;
        for (Index i = from; i < n_; ++i) {
            w_[i] = beta * lane_dot(A + i * n_ + from, v + from, n_ - from);
            along += w_[i] * v[i];
        }
        const double half = 0.5 * beta * along;
        for (Index i = from; i < n_; ++i) w_[i] -= half * v[i];
        for (Index i = from; i < n_; ++i) {
            double* row = A + i * n_;
            const double vi = v[i], wi = w_[i];
            for (Index j = from; j < n_; ++j) row[j] -= vi * w_[j] + wi * v[j];
        }
    }
    for (Index i = 0; i < n_; ++i) values[i] = A[i * n_ + i];
    if (n_ > 0) off_[n_ - 1] = 0.0;
    std::fill(vectors.begin(), vectors.end(), 0.0);
    for (Index i = 0; i < n_; ++i) vectors[i * n_ + i] = 1.0;
    for (Index k = n_ - 2; k >= 0; --k) {
        const double* v = A + k * n_;
        for (Index i = k + 1; beta_[k] != 0.0 && i < n_; ++i) {
            double* row = vectors.data() + i * n_;
            const double step = beta_[k] * lane_dot(row + k + 1, v + k + 1, n_ - k - 1);
            for (Index j = k + 1; j < n_; ++j) row[j] -= step * v[j];
        }
    }
}

void SymmetricEigen::descend(Index l) {
    constexpr double EPSILON = 1.1102230246251565e-16;
    constexpr int MAX_STEPS = 100;  // of one eigenvalue; two or three do
    double *d = values.data(), *e = off_.data();
    for (int step = 0;; ++step) {
        Index m = l;
        // Take entries below the rounding of the matrix (of size 1) as zero: nearly equal rows leave eigenvalues of
        // pure rounding, and steps among these would never converge.
        while (m + 1 < n_ && std::fabs(e[m]) > EPSILON * std::max(std::fabs(d[m]) + std::fabs(d[m + 1]), 1.0)) ++m;
        if (m == l) return;
        require(step < MAX_STEPS, "the Gram matrix has no eigenvalues: did it overflow?");
        const double half = (d[l + 1] - d[l]) / (2.0 * e[l]), root = std::sqrt(half * half + 1.0);
        double g = d[m] - d[l] + e[l] / (half + (half < 0.0 ? -root : root));
        double sine = 1.0, cosine = 1.0, shift = 0.0;
        Index i = m - 1;
        for (; i >= l; --i) {
            const double f = sine * e[i], b = cosine * e[i], r = std::sqrt(f * f + g * g);
            e[i + 1] = r;
            if (r == 0.0) {  // the matrix splits here
                d[i + 1] -= shift;
                e[m] = 0.0;
                break;
            }
            sine = f / r, cosine = g / r;
            g = d[i + 1] - shift;
            const double turned = (d[i] - g) * sine + 2.0 * cosine * b;
            shift = sine * turned;
            d[i + 1] = g + shift;
            g = cosine * turned - b;
            double *one = vectors.data() + i * n_, *two = one + n_;
            for (Index j = 0; j < n_; ++j) {
                const double x = one[j], y = two[j];
                two[j] = sine * x + cosine * y;
                one[j] = cosine * x - sine * y;
            }
        }
        if (i >= l) continue;
        d[l] -= shift;
        e[l] = g;
        e[m] = 0.0;
    }
}

void SymmetricEigen::sort() {
    for (Index i = 0; i < n_; ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) { return values[a] < values[b]; });
    sorted_.resize(std::size_t(n_ * n_));
    for (Index i = 0; i < n_; ++i) {
        w_[i] = values[order_[i]];
        std::copy_n(vectors.data() + order_[i] * n_, n_, sorted_.data() + i * n_);
    }
    std::copy(w_.begin(), w_.end(), values.begin());
    vectors.swap(sorted_);
}

}  // namespace armwise
