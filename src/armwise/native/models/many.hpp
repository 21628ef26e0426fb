// The best of very many arms under one model: single precision rules out all but a few, which double precision compares.
//
// An arm is ruled out only by more than the error bound of single precision, so that the best arm is never lost.
#pragma once

#include "ridge.hpp"

namespace armwise {

#if defined(__GNUC__) && defined(__AVX__)

typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

class Sketch {
  public:
    static constexpr Index ARMS = 16;  // at a time, in two vectors

    Sketch(const double* model, Index D, Index d, double scale)
        : d_(d), rows_((d + 3) / 4 * 4), W_(std::size_t(rows_ * rows_), 0.0f), theta_(std::size_t(d)),
          arms_(std::size_t(rows_ * ARMS), 0.0f), scale_(float(scale)) {
        double squares = 0.0;
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j <= i; ++j) {
                W_[i * rows_ + j] = float(model[i * D + j]);
                squares += model[i * D + j] * model[i * D + j];
            }
        for (Index j = 0; j < d; ++j) theta_[j] = float(model[D * D + j]);
        // Rounding of x, W and theta and of sums of at most d terms, doubled; no row is longer than `longest`.
        constexpr double UNIT = 1.0 / (1 << 24);
        const double size = std::sqrt(padded_dot(model + D * D, model + D * D, D)) + scale * std::sqrt(squares);
        error_ = 2.0 * (3.0 * double(d) + 20.0) * UNIT * size;
    }
    // An approximation of the largest score of 16 rows.
    float largest(const double* X) {
        for (Index a = 0; a < ARMS; a += 4) turn(X + a * d_, arms_.data() + a);
        const float* arms = arms_.data();
        Eight left_square = {}, right_square = {}, left_mean = {}, right_mean = {}, left_length = {}, right_length = {};
        for (Index i = 0; i < d_; i += 4) {
            const float *w0 = W_.data() + i * rows_, *w1 = w0 + rows_, *w2 = w1 + rows_, *w3 = w2 + rows_;
            Eight a0 = {}, a1 = {}, a2 = {}, a3 = {}, b0 = {}, b1 = {}, b2 = {}, b3 = {};
            for (Index j = 0; j <= i; ++j) {
                const Eight a = at(arms + ARMS * j), b = at(arms + ARMS * j + 8);
                a0 += w0[j] * a, a1 += w1[j] * a, a2 += w2[j] * a, a3 += w3[j] * a;
                b0 += w0[j] * b, b1 += w1[j] * b, b2 += w2[j] * b, b3 += w3[j] * b;
            }
            const float* corner = arms + ARMS * (i + 1);  // of the triangle: W is zero above its diagonal
            const Eight a = at(corner), b = at(corner + 8), c = at(corner + ARMS), d = at(corner + ARMS + 8),
                        e = at(corner + 2 * ARMS), f = at(corner + 2 * ARMS + 8);
            a1 += w1[i + 1] * a, a2 += w2[i + 1] * a, a3 += w3[i + 1] * a;
            b1 += w1[i + 1] * b, b2 += w2[i + 1] * b, b3 += w3[i + 1] * b;
            a2 += w2[i + 2] * c, a3 += w3[i + 2] * c, b2 += w2[i + 2] * d, b3 += w3[i + 2] * d;
            a3 += w3[i + 3] * e, b3 += w3[i + 3] * f;
            left_square += (a0 * a0 + a1 * a1) + (a2 * a2 + a3 * a3);
            right_square += (b0 * b0 + b1 * b1) + (b2 * b2 + b3 * b3);
        }
        for (Index j = 0; j < d_; ++j) {
            const Eight a = at(arms + ARMS * j), b = at(arms + ARMS * j + 8);
            left_mean += theta_[j] * a, right_mean += theta_[j] * b;
            left_length += a * a, right_length += b * b;
        }
        float roots[ARMS];
        put(roots, left_square), put(roots + 8, right_square);
        for (Index k = 0; k < ARMS; ++k) roots[k] = std::sqrt(roots[k]);
        const Eight left = left_mean + scale_ * at(roots), right = right_mean + scale_ * at(roots + 8);
        wrong_ += ((left - left) + (right - right)) + ((left_length - left_length) + (right_length - right_length));
        longest_ = larger(longest_, larger(left_length, right_length));
        float best[8];
        put(best, larger(left, right));
        return std::max(std::max(std::max(best[0], best[1]), std::max(best[2], best[3])),
                        std::max(std::max(best[4], best[5]), std::max(best[6], best[7])));
    }
    // The largest error of a score; infinite where single precision overflowed or met NaN.
    double error() const {
        double longest = 0.0;
        for (int k = 0; k < 8; ++k) {
            if (wrong_[k] != 0.0f) return std::numeric_limits<double>::infinity();  // NaN
            longest = std::max(longest, double(longest_[k]));
        }
        return error_ * std::sqrt(longest) * 1.01 + TIE;
    }

  private:
    Index d_, rows_;
    std::vector<float> W_, theta_, arms_;
    float scale_;
    Eight longest_ = {}, wrong_ = {};
    double error_;

    static Eight at(const float* from) {
        Eight v;
        std::memcpy(&v, from, sizeof v);
        return v;
    }
    static void put(float* to, Eight v) { std::memcpy(to, &v, sizeof v); }
    static Eight larger(Eight a, Eight b) { return a > b ? a : b; }
    void turn(const double* X, float* to) const {
        Index i = 0;
        for (; i + 4 <= d_; i += 4) {
            Half line[4] = {load_half(X + i), load_half(X + d_ + i), load_half(X + 2 * d_ + i),
                            load_half(X + 3 * d_ + i)};
            transpose(line);
            for (Index k = 0; k < 4; ++k) {
                const Four single = __builtin_convertvector(line[k], Four);
                std::memcpy(to + ARMS * (i + k), &single, sizeof single);
            }
        }
        for (; i < d_; ++i)
            for (Index a = 0; a < 4; ++a) to[ARMS * i + a] = float(X[a * d_ + i]);
    }
};

#endif

// The best of K rows under one model by mean plus scale times width: one pass over X, then a second over a few rows.
inline Leader best_optimistic(const double* model, Index D, const double* X, Index K, Index d, double scale) {
    Contest contest(model, D, d, scale);
#if defined(__GNUC__) && defined(__AVX__)
    constexpr Index ARMS = Sketch::ARMS;
    if (K >= 32 * ARMS) {
        Sketch sketch(model, D, d, scale);
        const Index groups = (K + ARMS - 1) / ARMS;
        std::vector<float> tops(groups);
        float top = -std::numeric_limits<float>::infinity();
        for (Index g = 0; g < groups; ++g) {
            tops[g] = sketch.largest(X + std::min(g * ARMS, K - ARMS) * d);  // the last group overlaps the one before
            top = std::max(top, tops[g]);
        }
        // Either all is finite in single precision, hence within MAX_MAGNITUDE, or no row is ruled out.
        const double bar = double(top) - 2.0 * sketch.error();
        const auto possible = [bar](float best) { return !(double(best) < bar); };
        if (std::count_if(tops.begin(), tops.end(), possible) <= groups / 8) {
            for (Index g = 0; g < groups; ++g)
                if (possible(tops[g])) contest.see(X, g * ARMS, std::min(K, (g + 1) * ARMS));
            return contest.leader();
        }
    }
#endif
    contest.see(X, 0, K);
    return contest.leader();
}

}  // namespace armwise
