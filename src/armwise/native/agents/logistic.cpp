// Logistic regression with a diagonal Gaussian posterior over sparse rows: the cost is that of the non-zeros.
//
// Rows are in CSR form over the coordinates that occur, `found`: row j has the entries e in indptr[j] : indptr[j + 1], with
// the number data[e] at coordinate found[place[e]]. `found` is in increasing order, so that a draw of the coordinates does
// not depend on the order of the rows. `posterior` has the mean m_i and the precision q_i of coordinate i side by side, so
// that one read from memory loads both.
#include "logistic_rounds.hpp"
#include "modules.hpp"
#include "simd.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace nb::literals;

namespace armwise {
namespace {

constexpr int MAX_STEPS = 100;           // of Newton's method; a strongly convex fit takes about five
constexpr double MIN_DECREMENT = 1e-22;  // of the objective; less is rounding

struct Rows {
    View<const int64_t, 1> indptr, found, place;
    View<const double, 1> data;

    Rows(View<const double, 2> posterior, View<const int64_t, 1> indptr, View<const int64_t, 1> found,
         View<const int64_t, 1> place, View<const double, 1> data)
        : indptr(indptr), found(found), place(place), data(data) {
        require(posterior.size(1) == 2 && indptr.size() > 0 && place.size() == data.size() && indptr[0] == 0 &&
                    indptr[indptr.size() - 1] <= data.size(),
                "rows must be in CSR form, and the posterior have two columns");
        for (Index j = 0; j + 1 < indptr.size(); ++j)
            require(indptr[j] <= indptr[j + 1], "rows must be in CSR form");
        for (const int64_t i : found) require_index(i, posterior.size(0), "X has columns that the posterior has not");
        for (const int64_t e : place) require_index(e, found.size(), "rows must be in CSR form");
    }
    Index rows() const { return indptr.size() - 1; }
    Index coordinates() const { return found.size(); }

    // s = X w.
    void margins(const double* w, double* s) const {
        for (Index j = 0; j < rows(); ++j) {
            s[j] = 0.0;
            for (Index e = indptr[j]; e < indptr[j + 1]; ++e) s[j] += data[e] * w[place[e]];
        }
    }
};

// 1 / (1 + e^-s) and its complement, both without cancellation.
struct Sigmoid {
    double p, rest;
    explicit Sigmoid(double s) {
        const double e = std::exp(-std::fabs(s)), large = 1.0 / (1.0 + e), small = e / (1.0 + e);
        p = s >= 0.0 ? large : small;
        rest = s >= 0.0 ? small : large;
    }
    double variance() const { return p * rest; }
    double residual(double r) const { return r * rest - (1.0 - r) * p; }  // r - p
};

// The root of s = s0 + v (r - sigmoid(s)): the margin of a single row after its update.
//
// s - s0 - v (r - sigmoid(s)) increases, is convex below 0 and concave above, so that Newton's method from 0 converges
// without overshooting.
double margin_after(double s0, double v, double r) {
    double s = 0.0;
    for (int i = 0; i < 1000; ++i) {
        const Sigmoid at(s);
        const double next = s + (s0 - s + v * at.residual(r)) / (1.0 + v * at.variance());
        if (!(std::fabs(next - s) > 1e-15 * std::fabs(next))) return next;
        s = next;
    }
    return s;
}

// 1/2 sum q u^2 + sum ln(1 + e^s) - r s, without overflow; for r in {0, 1} the log loss with y = 2r - 1.
double loss_at(const Buffer& u, const Buffer& q, const Buffer& s, View<const double, 1> rewards) {
    double total = 0.0;
    for (size_t i = 0; i < u.size(); ++i) total += 0.5 * q[i] * u[i] * u[i];
    for (size_t j = 0; j < s.size(); ++j)
        total += std::max(s[j], 0.0) + std::log1p(std::exp(-std::fabs(s[j]))) - rewards[j] * s[j];
    return total;
}

// Newton's step -H^-1 g, H = diag(q) + X' diag(h) X, by conjugate gradients; and the decrement g' H^-1 g.
//
// Preconditioned by diag(H): H is a diagonal plus one rank per row, so that few iterations suffice.
double newton_step(const Rows& X, const Buffer& q, const Buffer& h, const Buffer& g, Buffer& x) {
    const Index n = X.coordinates(), rows = X.rows();
    Buffer D(q), r(n), s(rows), Hp(n), z(n);
    for (Index j = 0; j < rows; ++j)
        for (Index e = X.indptr[j]; e < X.indptr[j + 1]; ++e) D[X.place[e]] += h[j] * X.data[e] * X.data[e];
    x.assign(n, 0.0);
    for (Index i = 0; i < n; ++i) r[i] = -g[i], z[i] = r[i] / D[i];
    Buffer p(z);
    double rz = lane_dot(r.data(), z.data(), n);
    const double enough = 1e-14 * rz;  // seven more digits per step, which is enough for Newton's method
    for (Index k = 0; k < 2 * std::min(n, rows) + 20; ++k) {
        X.margins(p.data(), s.data());
        for (Index i = 0; i < n; ++i) Hp[i] = q[i] * p[i];
        for (Index j = 0; j < rows; ++j)
            for (Index e = X.indptr[j]; e < X.indptr[j + 1]; ++e) Hp[X.place[e]] += h[j] * s[j] * X.data[e];
        const double alpha = rz / lane_dot(p.data(), Hp.data(), n);
        for (Index i = 0; i < n; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * Hp[i];
            z[i] = r[i] / D[i];
        }
        const double before = rz;
        rz = lane_dot(r.data(), z.data(), n);
        if (rz <= enough) break;
        for (Index i = 0; i < n; ++i) p[i] = z[i] + rz / before * p[i];
    }
    return -lane_dot(g.data(), x.data(), n);
}

// Fit one row of n entries, number x(e) at coordinate at(e): only the margin is unknown, as w - m = (r - p) x / q.
template <class X, class At> void fit_row(View<double, 2> posterior, Index n, double reward, X x, At at) {
    double s0 = 0.0, v = 0.0;
    for (Index e = 0; e < n; ++e) {
        const Index i = at(e);
        s0 += x(e) * posterior(i, 0);
        v += x(e) * x(e) / posterior(i, 1);
    }
    const double s = margin_after(s0, v, reward);
    const Sigmoid after(s);
    // r - p = (s - s0) / v: take the form with less cancellation.
    const bool between = 0.0 < reward && reward < 1.0 && std::max(std::fabs(s), std::fabs(s0)) < v;
    const double residual = between ? (s - s0) / v : after.residual(reward), curvature = after.variance();
    for (Index e = 0; e < n; ++e) {
        const Index i = at(e);
        posterior(i, 0) += residual * x(e) / posterior(i, 1);
        posterior(i, 1) += x(e) * x(e) * curvature;
    }
}

void fit(View<double, 2> posterior, const Rows& X, View<const double, 1> rewards) {
    const Index n = X.coordinates(), rows = X.rows();
    if (rows == 1)
        return fit_row(posterior, X.indptr[1], rewards[0], [&](Index e) { return X.data[e]; },
                       [&](Index e) { return Index(X.found[X.place[e]]); });
    Buffer prior(n), precision(n), u(n), g(n), s(rows), trial(rows), p(rows), h(rows), step(n), moved(n), w(n);
    for (Index i = 0; i < n; ++i) prior[i] = posterior(X.found[i], 0), precision[i] = posterior(X.found[i], 1);
    X.margins(prior.data(), s.data());
    double loss = loss_at(u, precision, s, rewards);
    for (int k = 0; k < MAX_STEPS; ++k) {
        for (Index j = 0; j < rows; ++j) {
            p[j] = 1.0 / (1.0 + std::exp(-s[j]));
            h[j] = p[j] * (1.0 - p[j]);
        }
        for (Index i = 0; i < n; ++i) g[i] = precision[i] * u[i];
        for (Index j = 0; j < rows; ++j)
            for (Index e = X.indptr[j]; e < X.indptr[j + 1]; ++e) g[X.place[e]] += (p[j] - rewards[j]) * X.data[e];
        const double decrement = newton_step(X, precision, h, g, step);
        if (!(decrement > MIN_DECREMENT * loss)) break;
        double size = 1.0, better = loss;
        while (size > 1e-10) {  // Armijo's rule; the slack allows for the rounding of the last steps
            for (Index i = 0; i < n; ++i) moved[i] = u[i] + size * step[i], w[i] = prior[i] + moved[i];
            X.margins(w.data(), trial.data());
            better = loss_at(moved, precision, trial, rewards);
            if (better <= loss - 1e-4 * size * decrement + 1e-14 * loss) break;
            size *= 0.5;
        }
        for (Index i = 0; i < n; ++i) u[i] += size * step[i];
        s = trial;
        loss = better;
    }
    for (Index i = 0; i < n; ++i) posterior(X.found[i], 0) = prior[i] + u[i];
    for (Index j = 0; j < rows; ++j) {
        p[j] = 1.0 / (1.0 + std::exp(-s[j]));
        for (Index e = X.indptr[j]; e < X.indptr[j + 1]; ++e)
            posterior(X.found[X.place[e]], 1) += X.data[e] * X.data[e] * p[j] * (1.0 - p[j]);
    }
}

}  // namespace
}  // namespace armwise

using namespace armwise;

void bind_logistic(nb::module_& m) {
    m.doc() = "Logistic regression with a diagonal Gaussian posterior, over sparse rows.";

    m.def("sparse_rows", [](Const<double, 2> X) {
        const Index K = X.size(0), d = X.size(1);
        New<int64_t, 1> indptr(K + 1);
        indptr[0] = 0;
        for (Index a = 0; a < K; ++a) {
            Index n = 0;
            for (Index i = 0; i < d; ++i) n += X(a, i) != 0.0;
            indptr[a + 1] = indptr[a] + n;
        }
        New<int64_t, 1> indices(indptr[K]);
        New<double, 1> data(indptr[K]);
        Index n = 0;
        for (Index a = 0; a < K; ++a)
            for (Index i = 0; i < d; ++i)
                if (X(a, i) != 0.0) {
                    indices[n] = i, data[n] = X(a, i);
                    ++n;
                }
        return std::make_tuple(std::move(indptr), std::move(indices), std::move(data));
    }, "X"_a, R"(The non-zeros of a dense array in CSR form: indptr, indices, data.

>>> sparse_rows(np.array([[0.0, 2.0], [3.0, 0.0]]))
(array([0, 1, 2]), array([1, 0]), array([2., 3.])))");

    m.def("compete", [](Const<double, 2> posterior, Const<int64_t, 1> indptr, Const<int64_t, 1> found,
                        Const<int64_t, 1> place, Const<double, 1> data, Const<double, 2> Z, Const<double, 1> u) {
        const Rows X(posterior, indptr, found, place, data);
        const Index K = X.rows(), n = X.coordinates();
        require(Z.size(1) == n && (u.size() == 0 || u.size() >= Z.size(0)), "Z must have a column per coordinate");
        New<double, 1> counts(K);
        counts.fill(0.0);
        Unlocked unlocked(double(Z.size(0)) * double(n + data.size()));
        Buffer mean(n), deviation(n), w(n), scores(K);
        for (Index i = 0; i < n; ++i)
            mean[i] = posterior(found[i], 0), deviation[i] = 1.0 / std::sqrt(posterior(found[i], 1));
        for (Index k = 0; k < Z.size(0); ++k) {
            for (Index i = 0; i < n; ++i) w[i] = mean[i] + deviation[i] * Z(k, i);
            X.margins(w.data(), scores.data());
            const Best best = first_best(scores.data(), K);
            if (best.ties > 1 && u.size() == 0) {
                counts[0] = -1.0;
                break;
            }
            counts[best.ties == 1 ? best.first : pick(scores.data(), K, best, u[k])] += 1.0;
        }
        return counts;
    }, "posterior"_a, "indptr"_a, "found"_a, "place"_a, "data"_a, "Z"_a, "u"_a,
          R"(The number of draws w = m + z / sqrt(q) (rows z of Z) in which each row has the largest x.w; ties as in ``thompson``.

>>> rows = np.array([0, 1, 2]), np.array([7]), np.array([0, 0]), np.array([1.0, 2.0])
>>> compete(np.ones((9, 2)), *rows, np.array([[1.0], [-3.0], [2.0]]), np.empty(0))
array([1., 2.]))");

    m.def("score_posterior", [](Const<double, 2> posterior, Const<int64_t, 1> indptr, Const<int64_t, 1> found,
                                Const<int64_t, 1> place, Const<double, 1> data, double scale) {
        const Rows X(posterior, indptr, found, place, data);
        const Index K = X.rows();
        New<double, 1> means(K);
        New<double, 2> covariance(K, K);
        {
            Unlocked unlocked(double(K) * double(data.size()));
            Buffer loaded(X.coordinates());
            score_posterior(posterior, scale, K, [&](Index a, auto visit) {
                for (Index e = indptr[a]; e < indptr[a + 1]; ++e) visit(found[place[e]], place[e], data[e]);
            }, loaded.data(), means.view.data, covariance.view.data);
        }
        return std::make_tuple(std::move(means), std::move(covariance));
    }, "posterior"_a, "indptr"_a, "found"_a, "place"_a, "data"_a, "scale"_a,
          R"(Mean and covariance of the rows' scores x.w, where w_i ~ N(m_i, scale^2 / q_i).

>>> rows = np.array([0, 1, 2]), np.array([7]), np.array([0, 0]), np.array([1.0, 2.0])
>>> score_posterior(np.ones((9, 2)), *rows, 0.5)
(array([1., 2.]), array([[0.25, 0.5 ],
       [0.5 , 1.  ]])))");

    m.def("fit", [](Array<double, 2> posterior, Const<int64_t, 1> indptr, Const<int64_t, 1> found,
                    Const<int64_t, 1> place, Const<double, 1> data, Const<double, 1> rewards) {
        const Rows X(posterior, indptr, found, place, data);
        require(rewards.size() == X.rows(), "rewards must have one entry per row");
        Unlocked unlocked(100.0 * double(data.size()));
        fit(posterior, X, rewards);
    }, "posterior"_a, "indptr"_a, "found"_a, "place"_a, "data"_a, "rewards"_a,
          R"(One batch: move m to the minimiser w of 1/2 sum q (w - m)^2 + loss, then q += sum x^2 p (1 - p) at it.

Newton's method with backtracking, or a scalar root for a single row; coordinates that do not occur keep their prior.

>>> posterior = np.array([[0.0, 1.0], [0.0, 1.0]])
>>> fit(posterior, np.array([0, 1]), np.array([1]), np.array([0]), np.array([1.0]), np.array([1.0]))
>>> posterior.round(4)
array([[0.    , 1.    ],
       [0.4011, 1.2402]]))");

    m.def("play", [](Array<double, 2> posterior, Const<int64_t, 1> indptr, Const<int64_t, 1> indices,
                     Const<double, 1> data, Const<double, 2> rewards, double scale, Index draws, bool learns,
                     Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1), dim = posterior.size(0), n = data.size();
        require(indptr.size() == T * K + 1 && K > 0 && indices.size() == n && posterior.size(1) == 2 &&
                    indptr[0] == 0 && indptr[T * K] == n,
                "contexts must be K rows per round, in CSR form, and the posterior (dim, 2)");
        for (Index j = 0; j < T * K; ++j) require(indptr[j] <= indptr[j + 1], "rows must be in CSR form");
        for (const int64_t i : indices) require_index(i, dim, "X has columns that the posterior has not");
        PosteriorRounds round(posterior, rewards, scale, draws, rng);
        {
            Unlocked unlocked(10.0 * double(n));
            std::vector<Index> drawn(dim, -1);  // the last round with each coordinate
            for (Index t = 0; t < T; ++t) {
                const int64_t* row = indptr.data + t * K;
                round.found.clear();
                for (Index e = row[0]; e < row[K]; ++e)
                    if (drawn[indices[e]] != t) {
                        drawn[indices[e]] = t;
                        round.found.push_back(indices[e]);
                    }
                if (!std::is_sorted(round.found.begin(), round.found.end()))
                    std::sort(round.found.begin(), round.found.end());
                const Index arm = round.play(t, [&] {
                    for (Index a = 0; a < K; ++a) {
                        round.scores[a] = 0.0;
                        for (Index e = row[a]; e < row[a + 1]; ++e) round.scores[a] += data[e] * round.w[indices[e]];
                    }
                }, [&](Index a, auto visit) {
                    for (Index e = row[a]; e < row[a + 1]; ++e) visit(indices[e], indices[e], data[e]);
                });
                const Index first = row[arm];
                if (learns)
                    fit_row(posterior, row[arm + 1] - first, round.got(t), [&](Index e) { return data[first + e]; },
                            [&](Index e) { return Index(indices[first + e]); });
            }
        }
        return round.answer();
    }, "posterior"_a, "indptr"_a, "indices"_a, "data"_a, "rewards"_a, "scale"_a, "draws"_a, "learns"_a,
          "rng"_a,
          R"(A block of rounds, K rows per round: arms, probabilities (NaN with a single draw) and rewards.

``scale`` multiplies the deviations of the draws. With ``learns``, ``fit`` learns the played row after each round.

>>> one = np.array([0, 1, 2]), np.array([0, 0]), np.ones(2)
>>> play(np.array([[0.0, 1.0]]), *one, np.ones((2, 1)), 1.0, 2, True, np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");

    m.def("play_dense", [](Array<double, 2> posterior, Const<double, 3> contexts, Const<double, 2> rewards,
                           double scale, Index draws, bool learns, Generator rng) {
        const Index T = rewards.size(0), K = rewards.size(1), d = contexts.size(2);
        require(contexts.size(0) == T && contexts.size(1) == K && K > 0 && posterior.size(0) == d &&
                    posterior.size(1) == 2,
                "contexts must be (T, K, d), rewards (T, K) and the posterior (d, 2)");
        PosteriorRounds round(posterior, rewards, scale, draws, rng);
        {
            Unlocked unlocked(4.0 * double(contexts.size()));
            std::vector<char> occurs(d);
            for (Index t = 0; t < T; ++t) {
                const double* X = contexts.data + t * K * d;
                std::fill(occurs.begin(), occurs.end(), 0);
                for (Index a = 0; a < K; ++a)
                    for (Index i = 0; i < d; ++i) occurs[i] |= X[a * d + i] != 0.0;
                round.found.clear();
                for (Index i = 0; i < d; ++i)
                    if (occurs[i]) round.found.push_back(i);
                const Index n = Index(round.found.size());
                const Index* found = round.found.data();
                const Index arm = round.play(t, [&] {
                    Index a = 0;
                    for (; a + 4 <= K; a += 4) {  // four sums at once: independent additions overlap
                        const double* x = X + a * d;
                        double s[4] = {};
                        for (Index e = 0; e < n; ++e)
                            for (int k = 0; k < 4; ++k) s[k] += x[k * d + found[e]] * round.w[found[e]];
                        std::copy(s, s + 4, round.scores.data() + a);
                    }
                    for (; a < K; ++a) {
                        double s = 0.0;
                        for (Index e = 0; e < n; ++e) s += X[a * d + found[e]] * round.w[found[e]];
                        round.scores[a] = s;
                    }
                }, [&](Index a, auto visit) {
                    for (Index e = 0; e < n; ++e) visit(found[e], found[e], X[a * d + found[e]]);
                });
                const double* x = X + arm * d;
                if (learns)
                    fit_row(posterior, n, round.got(t), [&](Index e) { return x[found[e]]; },
                            [&](Index e) { return found[e]; });
            }
        }
        return round.answer();
    }, "posterior"_a, "contexts"_a, "rewards"_a, "scale"_a, "draws"_a, "learns"_a, "rng"_a,
          R"(``play`` over a dense (T, K, d) array: the same arms, without a copy in CSR form.

>>> play_dense(np.array([[0.0, 1.0]]), np.ones((2, 1, 1)), np.ones((2, 1)), 1.0, 2, True, np.random.default_rng(1))
(array([0, 0]), array([1., 1.]), array([1., 1.])))");
}
