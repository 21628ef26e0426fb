// Ridge regression one row at a time, kept as a triangular factor of the inverse Gram matrix.
//
// A model of dimension d is one (D + 1, D) array, D = d rounded up to a multiple of eight:
//
// - rows 0..D-1: W, lower triangular, with A^-1 = W'W. Then x' A^-1 x = ||W x||^2, ln det A = -2 sum ln W_ii, and
//   theta + v W'z with z standard normal is a posterior sample;
// - row D: theta = A^-1 b.
//
// A model with centred rewards, or with a ridge that depends on its rows, is one (D + 3, D) array, with two more rows:
//
// - row D + 1: h = A^-1 s with s the sum of the rows x: the estimate for rewards of 1. The estimate for rewards less c is
//   theta - c h, so that rewards can be centred at any time;
// - row D + 2: the number of rows, the sum of ln ||x||^2 over those that are not 0, and the number of these.
//
// Learning a row turns W by Carlson's triangular square-root step (Carlson 1973; Bierman 1977, ch. V). Unlike an
// updated inverse it never subtracts nearly equal matrices: after 10^6 updates at condition number 10^6 the relative
// error of widths and estimates is about 1e-12, so neither A nor b has to be kept. Padding rows are zero and stay zero.
#pragma once

#include "choice.hpp"
#include "scratch.hpp"
#include "simd.hpp"
#include "triangular.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace armwise {

constexpr const char* TOO_LARGE = "context must be finite, with numbers of at most 1e150 in size";
constexpr const char* OVERFLOWN = "context must be finite (and its square must not overflow)";

constexpr double MIN_SQUARE = 1e-290;  // squared lengths below count as 0

// Count a row in row D + 2 of a model.
inline void count_row(double* counts, const double* x, Index d) {
    const double square = lane_dot(x, x, d);
    counts[0] += 1.0;
    if (square > MIN_SQUARE) counts[1] += std::log(square), counts[2] += 1.0;
}

// A += x x', b += r x, s += x: Carlson's step on W, and theta and h with it; a `counted` model has a row h. What would
// overflow is refused before anything is changed.
inline void update(double* model, Index D, const double* x, Index d, double reward, bool counted = false) {
    Scratch scratch(3 * D, 3 * D);
    double *v = scratch.data(), *p = v + D, *k = p + D;
    std::copy(x, x + d, v);
    const double width = project(model, D, v, p), error = reward - padded_dot(model + D * D, v, D);
    require(is_finite(width) && is_finite(error), OVERFLOWN);
    double before = 1.0;
    for (Index i = 0; i < d; ++i) {
        const double after = before + p[i] * p[i], product = before * after;
        const double root = is_finite(product) ? std::sqrt(product) : std::sqrt(before) * std::sqrt(after);
        const Lanes keep = splat(before / root), take = splat(-p[i] / root), add = splat(p[i]);
        double* row = model + i * D;
        for (Index j = 0; j < i + 1; j += LANES) {
            const Lanes w = load(row + j), sofar = load(k + j);
            store(row + j, keep * w + take * sofar);
            store(k + j, add * w + sofar);
        }
        before = after;
    }
    const Lanes step = splat(error / before);  // k is now A^-1 x before the update
    double* theta = model + D * D;
    for (Index j = 0; j < D; j += LANES) store(theta + j, step * load(k + j) + load(theta + j));
    if (!counted) return;
    double* h = theta + D;
    const Lanes also = splat((1.0 - padded_dot(h, v, D)) / before);
    for (Index j = 0; j < D; j += LANES) store(h + j, also * load(k + j) + load(h + j));
    count_row(h + D, x, d);
}

// b += change x: theta += change A^-1 x = change W'(W x), as if the row had been learnt with the changed reward.
inline void revise(double* model, Index D, const double* x, Index d, double change) {
    Scratch scratch(3 * D, 3 * D);
    double *v = scratch.data(), *p = v + D, *k = p + D;
    std::copy(x, x + d, v);
    require(is_finite(change) && is_finite(project(model, D, v, p)), OVERFLOWN);
    for (Index i = 0; i < d; ++i) {
        const Lanes add = splat(p[i]);
        const double* row = model + i * D;
        for (Index j = 0; j < i + 1; j += LANES) store(k + j, add * load(row + j) + load(k + j));
    }
    const Lanes step = splat(change);
    double* theta = model + D * D;
    for (Index j = 0; j < D; j += LANES) store(theta + j, step * load(k + j) + load(theta + j));
}

inline double log_det(const double* model, Index D, Index d) {
    double result = 0.0;
    for (Index i = 0; i < d; ++i) result -= 2.0 * std::log(model[i * D + i]);
    return result;
}

// A + x x' has no Cholesky factor: rounding lost the smaller of the two. Python gets a subclass of ValueError.
struct NotPositiveDefinite : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

// A^-1 b = W'(W b), into a row of the model.
inline void solve(const double* model, Index D, const double* b, Index d, double* row) {
    std::fill(row, row + D, 0.0);
    for (Index i = 0; i < d; ++i) {
        const Lanes m = splat(lane_dot(model + i * D, b, i + 1));
        for (Index j = 0; j < i + 1; j += LANES) store(row + j, load(row + j) + m * load(model + i * D + j));
    }
}

// Compute W and theta anew from A and b, and h from s if the model has it: A = L L', W = L^-1.
inline void refit(double* model, Index D, const double* A, const double* b, Index d, const double* s = nullptr) {
    std::vector<double> L(A, A + d * d);
    for (Index i = 0; i < d; ++i)
        for (Index j = 0; j <= i; ++j) {
            const double rest = L[i * d + j] - lane_dot(&L[i * d], &L[j * d], j);
            if (i == j && !(rest > 0.0)) throw NotPositiveDefinite("A must be positive definite");
            L[i * d + j] = i == j ? std::sqrt(rest) : rest / L[j * d + j];
        }
    for (Index i = 0; i < d; ++i) {  // row i of W: (e_i - sum_{k<i} L_ik W_k) / L_ii
        double* row = model + i * D;
        std::fill(row, row + D, 0.0);
        for (Index k = 0; k < i; ++k) {
            const Lanes factor = splat(L[i * d + k]);
            for (Index j = 0; j < k + 1; j += LANES) store(row + j, load(row + j) - factor * load(model + k * D + j));
        }
        const double pivot = L[i * d + i];
        for (Index j = 0; j < i; ++j) row[j] /= pivot;
        row[i] = 1.0 / pivot;
    }
    solve(model, D, b, d, model + D * D);
    if (s) solve(model, D, s, d, model + D * D + D);
}

constexpr double MIN_REWARDS = 0.05;  // discounted number of rewards of an arm that has been tried

// M models side by side and, with a discount, the A and b that they are computed from.
struct Models {
    double* data;
    Index M, D, d;
    bool counted = false;  // whether each has rows h and counts
    double *grams = nullptr, *moments = nullptr;
    double* rows = nullptr;         // the sum of the rows of each model
    const double* prior = nullptr;  // the ridge draws theta towards it, a row per model
    double lam = 1.0, discount = 1.0;

    Index stride() const { return (counted ? D + 3 : D + 1) * D; }
    double* operator[](Index m) const { return data + m * stride(); }
    const double* theta(Index m) const { return (*this)[m] + D * D; }
    bool disjoint() const { return M > 1; }
    // Whether an arm with a model of its own has (nearly) no rewards left: it is tried first.
    bool untried(Index m) const { return counted && disjoint() && (*this)[m][(D + 2) * D] < MIN_REWARDS; }
    Index arms(Index rows) const { return disjoint() ? M : rows; }
};

// The uniform distribution over untried arms; false, with nothing written, if there is none.
inline bool untried_first(const Models& models, double* p) {
    Index n = 0;
    for (Index m = 0; m < models.M; ++m) n += models.untried(m);
    for (Index m = 0; n && m < models.M; ++m) p[m] = models.untried(m) ? 1.0 / double(n) : 0.0;
    return n > 0;
}

// Learn x into model m. Earlier rows of every model fade by the same factor per reward, the ridge does not:
// A = lam I + sum discount^age x x'. Fading moves every eigenvalue, so that A and b are kept and W is computed anew, in
// O(d^3) per model.
inline void learn(const Models& models, Index m, const double* x, double reward) {
    const Index d = models.d;
    if (models.discount == 1.0) return update(models[m], models.D, x, d, reward, models.counted);
    const double discount = models.discount, ridge = (1.0 - discount) * models.lam;
    for (Index i = 0; i < d; ++i) require(is_finite(x[i] * x[i]) && is_finite(reward * x[i]), OVERFLOWN);
    for (Index k = 0; k < models.M; ++k) {
        double *A = models.grams + k * d * d, *b = models.moments + k * d, *s = models.rows + k * d;
        const double learns = k == m ? 1.0 : 0.0;
        for (Index i = 0; i < d; ++i) {
            b[i] = discount * b[i] + learns * (reward * x[i]) + ridge * models.prior[k * d + i];
            s[i] = discount * s[i] + learns * x[i];
            for (Index j = 0; j < d; ++j) A[i * d + j] = discount * A[i * d + j] + learns * (x[i] * x[j]);
            A[i * d + i] += ridge;
        }
        refit(models[k], models.D, A, b, d, models.counted ? s : nullptr);
        if (!models.counted) continue;
        double* counts = models[k] + (models.D + 2) * models.D;
        for (Index i = 0; i < 3; ++i) counts[i] *= discount;
        if (k == m) count_row(counts, x, d);
    }
}

// ln+(square / bar); 0 for a leading row of zeros, whose reward is known.
inline double known_less(double square, double bar) {
    const double ratio = bar > 0.0 ? std::min(square / bar, MAX_MAGNITUDE) : 1.0;
    return ratio > 1.0 ? std::log(ratio) : 0.0;
}

// The margin over an arm's mean: a multiplier times its width w. The multiplier is alpha +
// R sqrt(2 ln(det(A)^1/2 det(lam I)^-1/2 / delta)) (alpha alone for R = 0) or, with `extra`, the root of
// alpha^2 + extra ln+(w^2 / (beyond v^2)), where v is the width of the arm with the largest mean: an arm known much less
// than that one gets a larger margin.
struct Width {
    double alpha, noise, delta, extra = 0.0, beyond = 1.0;

    double multiplier(const double* model, Index D, Index d, double lam) const {
        if (noise == 0.0) return alpha;
        const double excess = std::max(0.0, log_det(model, D, d) - double(d) * std::log(lam));
        return alpha + noise * std::sqrt(excess - 2.0 * std::log(delta));
    }
    bool compares() const { return extra > 0.0; }
    // The margin of an arm of squared width `square`, where the leading arm's is `leader`.
    double margin(double square, double leader) const {
        return std::sqrt(square * (alpha * alpha + extra * known_less(square, beyond * leader)));
    }
};

// Arms side by side, four or eight of them, a feature per line of eight: ||W x||^2 and x.theta of each.
template <class Vector, class Load, class Splat>
ARMWISE_INLINE void estimate_arms(const double* model, Index D, Index d, const double* arms, Vector& square,
                                  Vector& mean, Load load_arms, Splat everywhere) {
    square = everywhere(0.0), mean = everywhere(0.0);
    for (Index i = 0; i < d; i += 4) {
        const double *w0 = model + i * D, *w1 = w0 + D, *w2 = w1 + D, *w3 = w2 + D;
        Vector s0 = everywhere(0.0), s1 = s0, s2 = s0, s3 = s0;
        for (Index j = 0; j < i; ++j) {
            const Vector v = load_arms(arms + LANES * j);
            s0 = s0 + everywhere(w0[j]) * v;
            s1 = s1 + everywhere(w1[j]) * v;
            s2 = s2 + everywhere(w2[j]) * v;
            s3 = s3 + everywhere(w3[j]) * v;
        }
        const Vector v0 = load_arms(arms + LANES * i), v1 = load_arms(arms + LANES * (i + 1)),
                     v2 = load_arms(arms + LANES * (i + 2)), v3 = load_arms(arms + LANES * (i + 3));
        s0 = s0 + everywhere(w0[i]) * v0;  // the corner of the triangle: W is zero above its diagonal
        s1 = s1 + everywhere(w1[i]) * v0 + everywhere(w1[i + 1]) * v1;
        s2 = s2 + everywhere(w2[i]) * v0 + everywhere(w2[i + 1]) * v1 + everywhere(w2[i + 2]) * v2;
        s3 = s3 + everywhere(w3[i]) * v0 + everywhere(w3[i + 1]) * v1 + everywhere(w3[i + 2]) * v2 +
             everywhere(w3[i + 3]) * v3;
        square = square + s0 * s0;
        square = square + s1 * s1;
        square = square + s2 * s2;
        square = square + s3 * s3;
    }
    for (Index j = 0; j < d; ++j) mean = mean + everywhere(model[D * D + j]) * load_arms(arms + LANES * j);
}

// Up to eight rows at a time under one model: their means x.theta and squared widths x' A^-1 x.
class Group {
  public:
    Group(const double* model, Index D, Index d)
        : model_(model), D_(D), d_(d), scratch_(D * LANES), arms_(scratch_.data()) {
        std::fill(arms_ + d * LANES, arms_ + D * LANES, 0.0);
    }
    // n <= 8 rows; `squares` and `means` have room for eight. The lanes of missing rows repeat the last one.
    void estimate(const double* X, Index n, double* squares, double* means) {
        for (Index a = 0; a < n; a += 4)
            turn(X + a * d_, X + std::min(a + 1, n - 1) * d_, X + std::min(a + 2, n - 1) * d_,
                 X + std::min(a + 3, n - 1) * d_, arms_ + a);
        if (n > 4) {
            Lanes square, mean;
            estimate_arms(model_, D_, d_, arms_, square, mean, [](const double* p) ARMWISE_LAMBDA { return load(p); },
                          [](double x) ARMWISE_LAMBDA { return splat(x); });
            store(squares, square);
            store(means, mean);
        } else {
            Half square, mean;
            estimate_arms(model_, D_, d_, arms_, square, mean,
                          [](const double* p) ARMWISE_LAMBDA { return load_half(p); },
                          [](double x) ARMWISE_LAMBDA { return splat_half(x); });
            store_half(squares, square);
            store_half(means, mean);
        }
    }

  private:
    // Four rows into four neighbouring lanes, a feature per line.
    void turn(const double* x0, const double* x1, const double* x2, const double* x3, double* to) {
        Index i = 0;
        for (; i + 4 <= d_; i += 4) {
            Half line[4] = {load_half(x0 + i), load_half(x1 + i), load_half(x2 + i), load_half(x3 + i)};
            transpose(line);
            for (Index k = 0; k < 4; ++k) store_half(to + LANES * (i + k), line[k]);
        }
        for (; i < d_; ++i) store_half(to + LANES * i, half_of(x0[i], x1[i], x2[i], x3[i]));
    }

    const double* model_;
    Index D_, d_;
    Scratch scratch_;
    double* arms_;
};

// Means x.theta and widths sqrt(x' A^-1 x) of K rows under one model.
inline void estimate_into(const double* model, Index D, const double* X, Index K, Index d, double* means,
                          double* widths) {
    Group group(model, D, d);
    double squares[LANES], mine[LANES];
    for (Index start = 0; start < K; start += LANES) {
        const Index n = std::min(LANES, K - start);
        group.estimate(X + start * d, n, squares, mine);
        for (Index a = 0; a < n; ++a) {
            widths[start + a] = std::sqrt(squares[a]);
            means[start + a] = mine[a];
        }
    }
}

// Mean and width of one row under every model.
inline void estimate_all_into(const Models& models, const double* x, double* means, double* widths) {
    const Index D = models.D;
    Scratch scratch(2 * D, D);
    double *v = scratch.data(), *p = v + D;
    std::copy(x, x + models.d, v);
    for (Index m = 0; m < models.M; ++m) {
        widths[m] = std::sqrt(project(models[m], D, v, p));
        means[m] = padded_dot(models.theta(m), v, D);
    }
}

// Means and widths: of each row under the one model, or of the one row under each model.
inline void estimate(const Models& models, const double* X, Index rows, double* means, double* widths) {
    if (models.disjoint())
        estimate_all_into(models, X, means, widths);
    else
        estimate_into(models[0], models.D, X, rows, models.d, means, widths);
}

// The means of `estimate`, to the bit, without the widths.
inline void means_into(const Models& models, const double* X, Index rows, double* means) {
    const Index d = models.d;
    if (models.disjoint()) {
        Scratch padded_row(models.D, models.D);
        std::copy(X, X + d, padded_row.data());
        for (Index m = 0; m < models.M; ++m) means[m] = padded_dot(models.theta(m), padded_row.data(), models.D);
        return;
    }
    const double* theta = models.theta(0);
    for (Index a = 0; a < rows; ++a) {
        double mean = 0.0;
        for (Index j = 0; j < d; ++j) mean += theta[j] * X[a * d + j];
        means[a] = mean;
    }
}

// Adds to each mean the margin of its width.
inline void widen(double* scores, const double* widths, Index K, const Width& width) {
    const double leader = widths[std::max_element(scores, scores + K) - scores];
    bool all = true;
    for (Index a = 0; a < K; ++a) {
        scores[a] += width.margin(widths[a] * widths[a], leader * leader);
        all &= is_finite(scores[a]);
    }
    require(all, OVERFLOWN);
}

// Mean plus margin; untried arms come first. `widths` is working memory, one number per arm.
inline void optimistic(const Models& models, const double* X, Index rows, const Width& width, double* scores,
                       double* widths) {
    const Index K = models.arms(rows);
    estimate(models, X, rows, scores, widths);
    if (width.compares()) {
        widen(scores, widths, K, width);
        for (Index a = 0; a < K; ++a)
            if (models.untried(a)) scores[a] = std::numeric_limits<double>::infinity();
        return;
    }
    double scale = width.multiplier(models[0], models.D, models.d, models.lam);
    bool all = true;
    for (Index a = 0; a < K; ++a) {
        if (models.disjoint() && width.noise > 0.0)
            scale = width.multiplier(models[a], models.D, models.d, models.lam);
        scores[a] += scale * widths[a];
        all &= is_finite(scores[a]);
    }
    require(all, OVERFLOWN);
}

// The best score so far, the first arm within TIE of it, and the number of such arms, without keeping the scores.
class Leader {
  public:
    void see(Index arm, double score) {
        if (!(score >= bar())) return;
        if (score - TIE > top_) {  // the earlier arms are behind
            top_ = lowest_ = score, best_ = {arm, 1};
            return;
        }
        top_ = std::max(top_, score), lowest_ = std::min(lowest_, score);
        ++best_.ties;
        clear_ &= lowest_ >= top_ - TIE;  // else some earlier ones tie no longer, and it is not known which
    }
    double bar() const { return top_ - TIE; }
    bool clear() const { return clear_; }
    Best best() const { return best_; }

  private:
    double top_ = -std::numeric_limits<double>::infinity(), lowest_ = 0.0;
    Best best_{-1, 0};
    bool clear_ = true;
};

// The best of rows under one model by mean plus scale times width; each row is checked when it is read.
class Contest {
  public:
    Contest(const double* model, Index D, Index d, double scale) : group_(model, D, d), d_(d), scale_(scale) {}

    // Read the arms `start` to `stop` - 1, rows of X.
    void see(const double* X, Index start, Index stop) {
        double squares[LANES] = {}, scores[LANES] = {};
        for (; start < stop; start += LANES) {
            const Index n = std::min(LANES, stop - start);
            const double* rows = X + start * d_;
            require(all_within(rows, n * d_), TOO_LARGE);
            group_.estimate(rows, n, squares, scores);
            for (Index a = 0; a < LANES; ++a) scores[a] += scale_ * std::sqrt(squares[a]);
            double top = scores[0];
            for (Index a = 0; a < n; ++a) {
                wrong_ += scores[a] - scores[a];  // NaN for NaN and infinity
                top = std::max(top, scores[a]);
            }
            if (top >= leader_.bar())
                for (Index a = 0; a < n; ++a) leader_.see(start + a, scores[a]);
        }
    }
    // Where scores tie in a chain, each with the next, the leader is not clear: `clear()` is false.
    Leader leader() const {
        require(wrong_ == 0.0, OVERFLOWN);
        return leader_;
    }

  private:
    Group group_;
    Leader leader_;
    Index d_;
    double scale_, wrong_ = 0.0;
};

}  // namespace armwise
