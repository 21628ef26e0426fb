// Gaussian process posteriors over distinct rows: the algorithms of gp.hpp.
#include "gp.hpp"

namespace armwise {
namespace {

// Entries i and i + 1 of L^-1 v for R vectors v, from rows p and q of L. The order of sums does not depend on R.
template <int R> inline void solve_two_rows(const double* p, const double* q, Index i, double* const* v) {
    Half s[R], t[R];
    for (int r = 0; r < R; ++r) s[r] = t[r] = splat_half(0.0);
    Index j = 0;
    for (; j + 4 <= i; j += 4) {
        const Half a = load_half(p + j), b = load_half(q + j);
        for (int r = 0; r < R; ++r) {
            const Half x = load_half(v[r] + j);
            s[r] = s[r] + a * x;
            t[r] = t[r] + b * x;
        }
    }
    const double p_inverse = 1.0 / p[i], q_inverse = 1.0 / q[i + 1];
    for (int r = 0; r < R; ++r) {
        double first = total_half(s[r]), second = total_half(t[r]);
        for (Index k = j; k < i; ++k) {
            first += p[k] * v[r][k];
            second += q[k] * v[r][k];
        }
        v[r][i] = (v[r][i] - first) * p_inverse;
        v[r][i + 1] = (v[r][i + 1] - second - q[i] * v[r][i]) * q_inverse;
    }
}

// square = R'R for the K columns of the (n, K) array R, four rows and eight columns at a time; calls take(a, b, value)
// for every pair a <= b (and some of the others).
template <class Take> void square(const double* R, Index n, Index K, Take take) {
    for (Index a = 0; a < K; a += 4)
        for (Index b = a & ~Index(7); b < K; b += 8) {
            const Index rows = std::min<Index>(4, K - a), columns = std::min<Index>(8, K - b);
            double product[4][8] = {};
            if (rows == 4 && columns == 8) {
                Half s[4][2];
                for (auto& row : s) row[0] = row[1] = splat_half(0.0);
                for (Index j = 0; j < n; ++j) {
                    const double* r = R + j * K;
                    const Half left = load_half(r + b), right = load_half(r + b + 4);
                    for (int i = 0; i < 4; ++i) {
                        const Half x = splat_half(r[a + i]);
                        s[i][0] = s[i][0] + x * left;
                        s[i][1] = s[i][1] + x * right;
                    }
                }
                for (int i = 0; i < 4; ++i) {
                    store_half(product[i], s[i][0]);
                    store_half(product[i] + 4, s[i][1]);
                }
            } else {
                for (Index j = 0; j < n; ++j) {
                    const double* r = R + j * K;
                    for (Index i = 0; i < rows; ++i)
                        for (Index k = 0; k < columns; ++k) product[i][k] += r[a + i] * r[b + k];
                }
            }
            for (Index i = 0; i < rows; ++i)
                for (Index k = 0; k < columns; ++k) take(a + i, b + k, product[i][k]);
        }
}

double information(double variance, double noise) { return 0.5 * std::log1p(std::max(variance, 0.0) / noise); }

}  // namespace

// Two rows of L and four v at once: six loads for eight products.
void solve_lower(const double* L, Index n, double* V, Index rows, Index stride) {
    for (Index i = 0; i + 1 < n; i += 2) {
        const double *p = L + packed(i), *q = L + packed(i + 1);
        Index k = 0;
        for (; k + 4 <= rows; k += 4) {
            double* const v[4] = {V + k * stride, V + (k + 1) * stride, V + (k + 2) * stride, V + (k + 3) * stride};
            solve_two_rows<4>(p, q, i, v);
        }
        for (; k < rows; ++k) {
            double* const v[1] = {V + k * stride};
            solve_two_rows<1>(p, q, i, v);
        }
    }
    if (n % 2) {
        const double* p = L + packed(n - 1);
        for (Index k = 0; k < rows; ++k) {
            double* v = V + k * stride;
            v[n - 1] = (v[n - 1] - lane_dot(p, v, n - 1)) / p[n - 1];
        }
    }
}

// ---------------------------------------------------------------------------------------------------- the factor

void Factor::estimate(double* V, Index rows, const double* prior_of_rows, double* means, double* variances) const {
    const Index n = size();
    solve_lower(L.data(), n, V, rows, n);
    for (Index k = 0; k < rows; ++k) {
        means[k] = lane_dot(V + k * n, c.data(), n);
        variances[k] = prior_of_rows[k] - lane_dot(V + k * n, V + k * n, n);
    }
}

double Factor::learn(const double* x, double* row, double prior_of_x, double reward, int64_t count) {
    solve_lower(L.data(), size(), row, 1, size());
    const double variance = prior_of_x - lane_dot(row, row, size());
    return learn_solved(x, row, prior_of_x, variance, reward, count);
}

double Factor::learn_solved(const double* x, const double* v, double prior_of_x, double variance, double reward,
                            int64_t count) {
    if (!(variance >= -MAX_ROUNDING * prior_of_x)) return variance;
    const Index n = size(), i = learnt.add(x);
    if (i == n) {
        counts.push_back(count);
        sums.push_back(reward * double(count));
        prior.push_back(prior_of_x);
        const double pivot = std::sqrt(std::max(variance, 0.0) + variance_of(n));
        L.insert(L.end(), v, v + n);
        L.push_back(pivot);
        c.push_back((reward - lane_dot(v, c.data(), n)) / pivot);
    } else {  // a repeated row: the mean of its rewards has less noise
        const double before = variance_of(i);
        counts[i] += count;
        sums[i] += reward * double(count);
        const double by = before - variance_of(i);
        if (by > 0.0) shrink(i, by);
        solve_means(i);
    }
    gain += information(variance, noise / double(count));
    remember(x);
    return variance;
}

// LL' - by e_i e_i'. As D_ii = noise / n, this removes at most the share 1 / (n + 1), so that no pivot shrinks by more than
// sqrt(2): the downdate cannot fail.
void Factor::shrink(Index i, double by) {
    const Index n = size();
    std::vector<double> cos(n), sin(n);
    double w = std::sqrt(by);
    for (Index j = i; j < n; ++j) {
        double* row = L.data() + packed(j);
        for (Index k = i; k < j; ++k) {
            row[k] = (row[k] - sin[k] * w) / cos[k];
            w = cos[k] * w - sin[k] * row[k];
        }
        const double square = row[j] * row[j] - w * w, pivot = std::sqrt(std::max(square, 0.25 * row[j] * row[j]));
        cos[j] = pivot / row[j], sin[j] = w / row[j];
        row[j] = pivot;
        w = 0.0;
    }
    ++age;
}

// c = L^-1 (means of the rewards), from entry `from` on.
void Factor::solve_means(Index from) {
    for (Index j = from; j < size(); ++j) {
        const double* row = L.data() + packed(j);
        c[j] = (sums[j] / double(counts[j]) - lane_dot(row, c.data(), j)) / row[j];
    }
}

void Factor::refresh(const double* gram) {
    const Index n = size();
    for (Index i = 0; i < n; ++i) {
        double* row = L.data() + packed(i);
        std::copy(gram + i * n, gram + i * n + i, row);
        solve_lower(L.data(), i, row, 1, i);
        row[i] = std::sqrt(std::max(gram[i * n + i] - lane_dot(row, row, i), 0.0) + variance_of(i));
    }
    solve_means(0);
    age = 0;
}

void Factor::remember(const double* x) {
    if (saved < 0.0) return;  // too many distinct rows were offered
    offered.add(x);
    if (offered.size() > MAX_JOINT_ROWS) {
        offered = Points(offered.dim());
        saved = -1.0;
    }
}

void Factor::offer(View<const double, 2> X) {
    const Index before = offered.size();
    for (Index a = 0; a < X.size(0); ++a) remember(X.data + a * X.size(1));
    if (saved >= 0.0 && offered.size() == before)
        saved += 0.5 * double(X.size(0)) * double(size()) * double(size());
}

bool Factor::due() const { return saved > 0.0 && saved >= joint_work(double(size()), double(offered.size())); }

Index Factor::play(Program& program, const Width& width, int64_t t, const Rounds& rounds, const Generator& rng) {
    const Index T = rounds.size(), K = rounds.n_arms(), d = learnt.dim();
    std::vector<double> V, diagonal(K), means(K), variances(K);
    Optimism optimism(width, t, rounds, rng);
    for (Index i = 0; i < T; ++i) {
        const View<const double, 2> X = rounds.contexts[i];
        const Index n = size();
        V.resize(K * n);
        program.diagonal(X, diagonal.data());
        program.cross(X, learnt.view(), V.data());
        estimate(V.data(), K, diagonal.data(), means.data(), variances.data());
        for (Index a = 0; a < K; ++a)
            if (!(variances[a] >= -MAX_ROUNDING * diagonal[a])) return i;
        const Index arm = optimism.play(i, gain, means.data(), variances.data());
        learn_solved(X.data + arm * d, V.data() + arm * n, diagonal[arm], variances[arm], rounds.got[i], 1);
        if (stale()) {
            std::vector<double> gram(size() * size());
            program.cross(learnt.view(), learnt.view(), gram.data());
            refresh(gram.data());
        }
        offer(X);
        if (due()) return i + 1;
    }
    return T;
}

// ----------------------------------------------------------------------------------------------- the joint posterior

Joint::Joint(View<const double, 2> rows, View<const double, 2> gram, double noise)
    : points(rows.size(1)), noise(noise) {
    const Index n = rows.size(0);
    require(n > 0 && n <= MAX_JOINT_ROWS && gram.size(0) == n && gram.size(1) == n, "gram must be (n, n), n at most 1024");
    for (Index i = 0; i < n; ++i) require(points.add(rows.data + i * rows.size(1)) == i, "the rows must be distinct");
    prior.assign(gram.begin(), gram.end());
    mean.assign(n, 0.0);
    sums.assign(n, 0.0);
    counts.assign(n, 0);
    cov = prior;
    for (Index i = 0; i < n; ++i) noises.push_back(std::max(noise, JITTER * prior[i * n + i]));
}

void Joint::refresh() {
    const Index K = size();
    std::vector<Index> learnt;
    for (Index a = 0; a < K; ++a)
        if (counts[a] > 0) learnt.push_back(a);
    const Index n = Index(learnt.size());
    std::vector<double> S(n), L(packed(n)), R(n * K), y(n);
    for (Index i = 0; i < n; ++i) S[i] = std::sqrt(double(counts[learnt[i]]) / noises[learnt[i]]);
    for (Index i = 0; i < n; ++i) {  // LL' = B = I + SKS: no eigenvalue below 1, whatever the counts
        const double* row = prior.data() + learnt[i] * K;
        double* l = L.data() + packed(i);
        for (Index j = 0; j < i; ++j) l[j] = S[i] * row[learnt[j]] * S[j];
        solve_lower(L.data(), i, l, 1, i);
        l[i] = std::sqrt(std::max(1.0 + S[i] * row[learnt[i]] * S[i] - lane_dot(l, l, i), 1.0));
        y[i] = S[i] * (sums[learnt[i]] / double(counts[learnt[i]]));
        y[i] = (y[i] - lane_dot(l, y.data(), i)) / l[i];
    }
    for (Index i = 0; i < n; ++i) {  // R = L^-1 S K
        const double *row = prior.data() + learnt[i] * K, *l = L.data() + packed(i);
        double* r = R.data() + i * K;
        for (Index a = 0; a < K; ++a) r[a] = S[i] * row[a];
        Index j = 0;
        for (; j + 2 <= i; j += 2) {
            const double *one = R.data() + j * K, *two = one + K;
            for (Index a = 0; a < K; ++a) r[a] -= l[j] * one[a] + l[j + 1] * two[a];
        }
        if (j < i)
            for (Index a = 0; a < K; ++a) r[a] -= l[j] * R[j * K + a];
        for (Index a = 0; a < K; ++a) r[a] /= l[i];
    }
    // mean = (SK)' B^-1 (S ybar): computed as cov (sums / noise), small noise would cancel every digit.
    std::fill(mean.begin(), mean.end(), 0.0);
    for (Index i = 0; i < n; ++i)
        for (Index a = 0; a < K; ++a) mean[a] += R[i * K + a] * y[i];
    square(R.data(), n, K, [&](Index a, Index b, double value) {
        cov[a * K + b] = cov[b * K + a] = prior[a * K + b] - value;
    });
    age = 0;
}

bool Joint::find(View<const double, 2> X, std::vector<Index>& at) const {
    require(X.size(1) == points.dim(), "X must have the columns of the rows learnt so far");
    at.resize(X.size(0));
    for (Index a = 0; a < X.size(0); ++a)
        if ((at[a] = points.find(X.data + a * X.size(1))) < 0) return false;
    return true;
}

void Joint::learn(Index arm, double reward) {
    const Index K = size();
    const double* row = cov.data() + arm * K;
    column_.assign(row, row + K);
    const double* column = column_.data();
    const double variance = column[arm], step = 1.0 / (std::max(variance, 0.0) + noises[arm]);
    const double move = step * (reward - mean[arm]);
    for (Index a = 0; a < K; ++a) mean[a] += column[a] * move;
    for (Index a = 0; a < K; ++a) {
        const double weight = column[a] * step;
        double* to = cov.data() + a * K;
        for (Index b = 0; b < K; ++b) to[b] -= weight * column[b];
    }
    counts[arm] += 1;
    sums[arm] += reward;
    gain += information(variance, noises[arm]);
    if (++age >= 1000 + K) refresh();  // K^3 / period stays below the update's K^2
}

Index Joint::play(const Width& width, int64_t t, const Rounds& rounds, const Generator& rng) {
    const Index T = rounds.size(), K = rounds.n_arms(), d = points.dim();
    std::vector<Index> at;
    std::vector<double> means(K), variances(K);
    Optimism optimism(width, t, rounds, rng);
    for (Index i = 0; i < T; ++i) {
        const View<const double, 2> X = rounds.contexts[i];
        const bool same = i > 0 && std::memcmp(X.data, X.data - K * d, sizeof(double) * size_t(K * d)) == 0;
        if (!same && !find(X, at)) return i;
        for (Index a = 0; a < K; ++a) means[a] = mean_of(at[a]), variances[a] = variance_of(at[a]);
        const Index arm = optimism.play(i, gain, means.data(), variances.data());
        learn(at[arm], rounds.got[i]);
    }
    return T;
}

}  // namespace armwise
