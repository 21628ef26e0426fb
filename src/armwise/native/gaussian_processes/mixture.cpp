// A mixture of Gaussian processes over the same rows: the likelihood of each, and their joint predictions.
//
// A posterior is kept as means and covariances of all rows. Only the part of a covariance on and below the diagonal is used:
// a reward changes all of it, at the speed of the memory.
#include "array.hpp"
#include "modules.hpp"
#include "scratch.hpp"
#include "simd.hpp"
#include "special.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

using namespace nb::literals;
using namespace armwise;

namespace {

struct Observation {
    Index row;
    double value, noise;
};

// Condition the rows from `low` on (all observed rows are among them) on R observations in order, in one pass over the
// covariance. `columns` is working memory for R N numbers.
template <int R>
void observe(double* mean, double* covariance, Index N, Index low, const Observation* seen, double* columns) {
    double scale[R];
    for (int k = 0; k < R; ++k) {
        const Index i = seen[k].row;
        double* c = columns + k * N;
        for (Index j = low; j <= i; ++j) c[j] = covariance[i * N + j];
        for (Index j = i + 1; j < N; ++j) c[j] = covariance[j * N + i];
        for (int m = 0; m < k; ++m) {
            const double *before = columns + m * N, gain = scale[m] * before[i];
            for (Index j = low; j < N; ++j) c[j] -= gain * before[j];
        }
        scale[k] = 1.0 / (c[i] + seen[k].noise);
        const double step = (seen[k].value - mean[i]) * scale[k];
        for (Index j = low; j < N; ++j) mean[j] += step * c[j];
    }
    for (Index r = low; r < N; ++r) {
        double gain[R];
        for (int k = 0; k < R; ++k) gain[k] = scale[k] * columns[k * N + r];
        double* row = covariance + r * N;
        for (Index j = low; j <= r; ++j) {
            double change = gain[0] * columns[j];
            for (int k = 1; k < R; ++k) change += gain[k] * columns[k * N + j];
            row[j] -= change;
        }
    }
}

// Q'AQ = T for A, of which the part on and below the diagonal is given (Householder, from the last row up): T's diagonal
// stays in A, its off-diagonal goes to off[1], ..., off[n - 1], and y becomes Q'y.
void tridiagonalise(double* A, Index n, double* off, double* y, double* w) {
    for (Index i = n - 1; i > 0; --i) {
        double* v = A + i * n;
        const double rest = lane_dot(v, v, i - 1);
        if (rest <= 1e-300) {
            off[i] = v[i - 1];
            continue;
        }
        const double length = std::sqrt(v[i - 1] * v[i - 1] + rest);
        off[i] = v[i - 1] > 0.0 ? -length : length;
        v[i - 1] -= off[i];
        const double beta = 2.0 / (v[i - 1] * v[i - 1] + rest);
        for (Index r = 0; r < i; ++r) {
            const double *row = A + r * n, x = v[r];
            w[r] = row[r] * x + lane_dot(row, v, r);
            for (Index j = 0; j < r; ++j) w[j] += x * row[j];
        }
        const double half = 0.5 * beta * lane_dot(w, v, i), turn = beta * lane_dot(y, v, i);
        for (Index j = 0; j < i; ++j) {
            w[j] = beta * (w[j] - half * v[j]);
            y[j] -= turn * v[j];
        }
        for (Index r = 0; r < i; ++r) {
            double* row = A + r * n;
            const double x = v[r], z = w[r];
            for (Index j = 0; j <= r; ++j) row[j] -= x * w[j] + z * v[j];
        }
    }
}

}  // namespace

void bind_mixture(nb::module_& m) {
    m.def("forms", [](Const<double, 2> kernel, Const<double, 1> roots, Const<double, 1> y, Const<double, 1> noises) {
        const Index n = roots.size(), G = noises.size();
        require(kernel.size(0) == n && kernel.size(1) == n && y.size() == n, "kernel must be (n, n), roots and y (n)");
        for (const double noise : noises) require(noise > 0.0, "noises must be > 0");
        New<double, 2> found(2, G);
        Unlocked unlocked(2.0 * double(n * n * n));
        Scratch scratch(n * n + 3 * n);
        double *A = scratch.data(), *off = A + n * n, *z = off + n, *w = z + n;
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j <= i; ++j) A[i * n + j] = roots[i] * kernel(i, j) * roots[j];
            z[i] = y[i];
        }
        tridiagonalise(A, n, off, z, w);
        for (Index k = 0; k < G; ++k) {
            // LDL' of T + noise; up to rounding, no pivot is below the noise.
            double form = 0.0, log = 0.0, pivot = 1.0, last = 0.0;
            for (Index i = 0; i < n; ++i) {
                const double ratio = i > 0 ? off[i] / pivot : 0.0;
                pivot = std::max(A[i * n + i] + noises[k] - (i > 0 ? ratio * off[i] : 0.0), noises[k]);
                last = z[i] - ratio * last;
                form += last * last / pivot;
                log += std::log(pivot);
            }
            found.view(0, k) = form, found.view(1, k) = log;
        }
        return found;
    }, "kernel"_a, "roots"_a, "y"_a, "noises"_a, R"(y' M^-1 y, and below it log det M, for M = roots kernel roots' + noise and every noise.

One tridiagonal form serves every noise; kernel is symmetric.

>>> forms(np.eye(2), np.ones(2), np.array([1.0, 2.0]), np.array([1.0])).round(6)
array([[2.5     ],
       [1.386294]]))");

    m.def("condition", [](Const<double, 2> kernel, Const<double, 1> counts, Const<double, 1> sums, double noise,
                          double variance, Index asked, Array<double, 1> mean, Array<double, 2> covariance) {
        const Index N = counts.size();
        require(kernel.size(0) == N && kernel.size(1) == N && sums.size() == N, "kernel must be (N, N), sums (N)");
        require(covariance.size(0) == N && covariance.size(1) == N && mean.size() == N,
                "covariance must be (N, N), mean (N)");
        require(noise > 0.0 && variance > 0.0, "noise and variance must be > 0");
        require(asked == 0 || std::all_of(counts.begin() + std::clamp<Index>(asked, 0, N), counts.end(),
                                          [](double n) { return n == 0.0; }),
                "only rows before those asked about have rewards");
        Unlocked unlocked(double(N * N * N));
        Scratch columns(4 * N);
        for (double& m : mean) m = 0.0;
        for (Index k = 0; k < N * N; ++k) covariance.data[k] = variance * kernel.data[k];
        std::vector<Observation> seen;
        for (Index i = 0; i < N; ++i)
            if (counts[i] > 0.0) seen.push_back({i, sums[i] / counts[i], variance * noise / counts[i]});
        for (std::size_t k = 0; k < seen.size();) {
            const Index low = asked > 0 ? seen[k].row : 0;
            const bool four = k + 4 <= seen.size();
            (four ? observe<4> : observe<1>)(mean.data, covariance.data, N, low, &seen[k], columns.data());
            k += four ? 4 : 1;
        }
    }, "kernel"_a, "counts"_a, "sums"_a, "noise"_a, "variance"_a, "asked"_a, "mean"_a, "covariance"_a,
          R"(Posterior means and covariances of rows, some with rewards; ``noise`` is in units of the variance.

With ``asked`` > 0 only those of the rows from there on are computed, at a third of the work. Above its diagonal the
covariance is not valid.

>>> mean, covariance = np.empty(2), np.empty((2, 2))
>>> condition(np.eye(2), np.array([1.0, 0.0]), np.array([2.0, 0.0]), 1.0, 1.0, 0, mean, covariance)
>>> mean.round(6), covariance.diagonal().round(6)
(array([1., 0.]), array([0.5, 1. ])))");

    m.def("learn", [](Array<double, 2> means, Array<double, 3> covariances, Const<double, 1> noises, Index i,
                      double reward) {
        const Index M = means.size(0), N = means.size(1);
        require(covariances.size(0) == M && covariances.size(1) == N && covariances.size(2) == N && noises.size() == M,
                "means must be (M, N), covariances (M, N, N), noises (M)");
        require_index(i, N, "no such row");
        Unlocked unlocked(double(M * N * N));
        Scratch column(N);
        for (Index k = 0; k < M; ++k) {
            const Observation seen{i, reward, noises[k]};
            observe<1>(means[k].data, covariances[k].data, N, 0, &seen, column.data());
        }
    }, "means"_a, "covariances"_a, "noises"_a, "i"_a, "reward"_a, R"(Learn a reward of row i in every process.

>>> means, covariances = np.zeros((1, 2)), np.eye(2)[None].copy()
>>> learn(means, covariances, np.ones(1), 0, 2.0)
>>> means
array([[1., 0.]]))");

    m.def("scores", [](Const<double, 2> means, Const<double, 3> covariances, Const<int64_t, 1> rows,
                       Const<double, 1> behind, double ahead) {
        const Index M = means.size(0), N = means.size(1), K = rows.size();
        require(covariances.size(0) == M && covariances.size(1) == N && covariances.size(2) == N && behind.size() == M,
                "means must be (M, N), covariances (M, N, N), behind (M)");
        require(K > 0, "rows must not be empty");
        for (const int64_t row : rows) require_index(Index(row), N, "no such row");
        New<double, 1> scores(K);
        scores.fill(0.0);
        double weights = 0.0;
        for (Index k = 0; k < M; ++k) {
            const double weight = std::exp(-behind[k]), *mean = means[k].data, *covariance = covariances[k].data;
            double best = -std::numeric_limits<double>::infinity(), second = best;
            for (Index a = 0; a < K; ++a) {
                const double x = mean[rows[a]];
                if (x > best) second = best, best = x;
                else if (x > second) second = x;
            }
            if (K == 1) second = best;
            for (Index a = 0; a < K; ++a) {
                const double x = mean[rows[a]], width = std::sqrt(std::max(covariance[rows[a] * (N + 1)], 0.0));
                const double apart = std::fabs(x - (x >= best ? second : best)), far = apart / width;
                double gain = 0.0;
                if (apart < 38.0 * width)  // 0 to the last bit beyond
                    gain = width * (std::exp(-0.5 * far * far) * 0.39894228040143267794 - far * normal_cdf(-far));
                scores[a] += weight * (x + ahead * gain);
            }
            weights += weight;
        }
        for (double& score : scores.view) score /= weights;
        return scores;
    }, "means"_a, "covariances"_a, "rows"_a, "behind"_a, "ahead"_a, R"(The mean of each row plus ``ahead`` times its knowledge gradient, averaged over the processes with weights exp(-behind).

The knowledge gradient of a row is the expected gain of the largest mean of the rows if this row's became known.

>>> scores(np.array([[0.0, 1.0]]), np.eye(2)[None].copy(), np.array([0, 1]), np.zeros(1), 10.0).round(4)
array([0.8332, 1.8332]))");
}
