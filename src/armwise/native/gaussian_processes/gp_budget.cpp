// A Gaussian process posterior over at most m inducing points: every step costs O(m^2) per query at any time.
//
// With Kmm = LL' over the points z_1..z_n (n <= m), a row x has features phi = L^-1 k(x) and a residual variance
// nu = k(x, x) - phi'phi that the points cannot express. The posterior is Bayesian linear regression on phi whose
// rewards have noise + nu (FITC; Snelson and Ghahramani 2006), kept as its precision A = I + sum phi phi' / (noise + nu)
// = UU', U upper triangular, and c = U^-1 b. Then mean = g'c and variance = nu + g'g with g = U^-1 phi.
//
// L is packed by rows; U is packed by columns, so both grow by appending.
#include "gp.hpp"
#include "modules.hpp"

#include <nanobind/stl/tuple.h>

using namespace nb::literals;

namespace armwise {
namespace {

// nu / k(x, x) of a point that joins while there is room: with nearer ones Kmm would be ill conditioned.
constexpr double MIN_NOVELTY = 1e-6;
// Novelty of a point that replaces the least novel one of a full set, relative to that one's.
constexpr double MIN_SWAP_RATIO = 2.0;

void solve_upper(const double* U, Index n, double* V, Index rows, Index stride) {
    for (Index j = n - 1; j > 0; j -= 2) {  // two columns at a time halve the loads and stores of v
        const double *p = U + packed(j - 1), *q = U + packed(j);
        const double a = 1.0 / p[j - 1], b = q[j - 1], c = 1.0 / q[j];
        for (Index k = 0; k < rows; ++k) {
            double* v = V + k * stride;
            const double y = v[j] * c, x = (v[j - 1] - b * y) * a;
            v[j] = y, v[j - 1] = x;
            for (Index i = 0; i + 1 < j; ++i) v[i] -= x * p[i] + y * q[i];
        }
    }
    if (n % 2)
        for (Index k = 0; k < rows; ++k) V[k * stride] /= U[0];
}

// Turn the rows k(x) of V into phi, and compute the residual variances nu.
void features(const double* L, Index n, double* V, Index rows, Index stride, const double* prior, double* residuals) {
    solve_lower(L, n, V, rows, stride);
    for (Index k = 0; k < rows; ++k) residuals[k] = prior[k] - lane_dot(V + k * stride, V + k * stride, n);
}

void budget_estimate(const double* L, const double* U, const double* c, Index n, double* V, Index rows,
                     const double* prior, double* means, double* variances) {
    features(L, n, V, rows, n, prior, variances);
    solve_upper(U, n, V, rows, n);
    for (Index k = 0; k < rows; ++k) {
        means[k] = 0.0;
        if (variances[k] >= -MAX_ROUNDING * prior[k]) {
            means[k] = lane_dot(V + k * n, c, n);
            variances[k] = std::max(variances[k], 0.0) + lane_dot(V + k * n, V + k * n, n);
        }
    }
}

// A + pp' and b + rho p by n rotations of the columns (U, p), which also rotate (c, rho); p is overwritten.
void absorb(double* U, double* c, Index n, double* p, double rho) {
    for (Index j = n - 1; j >= 0; --j) {
        double* column = U + packed(j);
        const double radius = std::hypot(column[j], p[j]), cos = column[j] / radius, sin = p[j] / radius;
        for (Index i = 0; i <= j; ++i) {
            const double u = column[i];
            column[i] = cos * u + sin * p[i];
            p[i] = cos * p[i] - sin * u;
        }
        const double old = c[j];
        c[j] = cos * old + sin * rho;
        rho = cos * rho - sin * old;
    }
}

// The arrays of a posterior with room for m points of d numbers.
struct Budget {
    View<double, 2> Z;
    double *L, *U, *c;
    View<double, 2> Q;

    Budget(View<double, 2> Z, View<double, 1> L, View<double, 1> U, View<double, 1> c, View<double, 2> Q)
        : Z(Z), L(L.data), U(U.data), c(c.data), Q(Q) {
        const Index m = Z.size(0);
        require(L.size() >= packed(m) && U.size() >= packed(m) && c.size() >= m && Q.size(0) >= m && Q.size(1) >= m,
                "Z, L, U, c and Q must have room for the same number of points");
    }
    Index most() const { return Z.size(0); }

    // Forget inducing point i in O(n^2): the posterior of the others is the old one with f(z_i) integrated out.
    //
    // Without its row i, L is triangular again after rotations of its columns; the last feature then feeds no point.
    // The same rotations turn the features, hence the rows of U, and rotations of U's columns restore its triangle.
    // In A = UU' integrating out the last feature is dropping the last row and column of U.
    void remove(Index n, Index i) const {
        std::vector<double> M((n - 1) * n), W(n * n);
        for (Index a = 0; a < n; ++a)
            for (Index b = 0; b <= a; ++b) {
                if (a != i) M[(a - (a > i)) * n + b] = L[packed(a) + b];
                W[b * n + a] = U[packed(a) + b];
            }
        for (Index j = i; j < n - 1; ++j) {
            double radius = std::hypot(M[j * n + j], M[j * n + j + 1]);
            double cos = M[j * n + j] / radius, sin = M[j * n + j + 1] / radius;
            for (Index a = j; a < n - 1; ++a) {
                const double left = M[a * n + j], right = M[a * n + j + 1];
                M[a * n + j] = cos * left + sin * right, M[a * n + j + 1] = cos * right - sin * left;
            }
            for (Index b = j; b < n; ++b) {
                const double upper = W[j * n + b], lower = W[(j + 1) * n + b];
                W[j * n + b] = cos * upper + sin * lower, W[(j + 1) * n + b] = cos * lower - sin * upper;
            }
            const double corner = W[(j + 1) * n + j + 1], below = W[(j + 1) * n + j];
            radius = std::hypot(corner, below), cos = corner / radius, sin = below / radius;
            for (Index a = 0; a < j + 2; ++a) {
                const double left = W[a * n + j], right = W[a * n + j + 1];
                W[a * n + j] = cos * left - sin * right, W[a * n + j + 1] = cos * right + sin * left;
            }
            const double left = c[j], right = c[j + 1];
            c[j] = cos * left - sin * right, c[j + 1] = cos * right + sin * left;
        }
        for (Index a = 0; a < n - 1; ++a)
            for (Index b = 0; b <= a; ++b) {
                L[packed(a) + b] = M[a * n + b];
                U[packed(a) + b] = W[b * n + a];
            }
        const Index d = Z.size(1);
        std::copy(Z.data + (i + 1) * d, Z.data + n * d, Z.data + i * d);
        std::vector<double> q(n);
        for (Index a = 0; a < n; ++a) q[a] = Q(i, a);
        for (Index a = 0; a < n - 1; ++a)
            for (Index b = 0; b < n - 1; ++b) {
                const Index from = a + (a >= i), to = b + (b >= i);
                Q(a, b) = Q(from, to) - q[from] * q[to] / q[i];
            }
    }

    // Make x inducing point n + 1: a new feature with its prior alone; sets phi[n].
    void join(Index n, const double* x, double* phi, double nu) const {
        double *l = L + packed(n), *u = U + packed(n);
        for (Index j = 0; j < n; ++j) l[j] = phi[j], u[j] = 0.0;
        phi[n] = std::sqrt(nu);
        l[n] = phi[n], u[n] = 1.0, c[n] = 0.0;
        std::copy(x, x + Z.size(1), Z.data + n * Z.size(1));
    }

    // Q = Kmm^-1 with the point (phi, nu) added, in O(n^2).
    void extend_inverse(Index n, const double* phi, double nu) const {
        std::vector<double> a(phi, phi + n);  // will be Kmm^-1 k(x) = L'^-1 phi
        for (Index j = n - 1; j >= 0; --j) {
            const double* l = L + packed(j);
            a[j] /= l[j];
            for (Index k = 0; k < j; ++k) a[k] -= a[j] * l[k];
        }
        for (Index j = 0; j < n; ++j) {
            Q(n, j) = Q(j, n) = -a[j] / nu;
            for (Index k = 0; k < n; ++k) Q(j, k) += a[j] * a[k] / nu;
        }
        Q(n, n) = 1.0 / nu;
    }

    // Q = Kmm^-1 from L, in O(n^3): done once in n swaps.
    void refresh_inverse(Index n) const {
        std::vector<double> V(n * n);
        for (Index i = 0; i < n; ++i) V[i * n + i] = 1.0;
        solve_lower(L, n, V.data(), n, n);  // row i becomes column i of L^-1
        for (Index a = 0; a < n; ++a)
            for (Index b = 0; b <= a; ++b) Q(a, b) = Q(b, a) = lane_dot(V.data() + a * n, V.data() + b * n, n);
    }

    // The residual variance of inducing point i given the others: 1 / (Kmm^-1)_ii.
    double novelty(Index n, Index i) const {
        std::vector<double> v(n);
        v[i] = 1.0;
        solve_lower(L, n, v.data(), 1, n);
        return 1.0 / lane_dot(v.data(), v.data(), n);
    }

    // Learn one reward and return the variance at x before it. `state` has the numbers of points and of swaps so far.
    //
    // x joins the inducing points if there is room and it is novel, or replaces the least novel one if
    // it is MIN_SWAP_RATIO times as novel. Every swap multiplies det Kmm by at least that, so that swaps come to an end.
    double append(int64_t* state, const double* x, double* row, double prior, double noise, double reward) const {
        Index n = state[0];
        const Index m = most();
        std::vector<double> phi(m + 1);
        std::copy(row, row + n, phi.data());
        double nu;
        features(L, n, phi.data(), 1, m + 1, &prior, &nu);
        if (nu < -MAX_ROUNDING * prior) return nu;
        nu = std::max(nu, 0.0);
        std::vector<double> g(phi.data(), phi.data() + n);
        solve_upper(U, n, g.data(), 1, n);
        const double variance = nu + lane_dot(g.data(), g.data(), n);
        bool novel = nu > MIN_NOVELTY * prior;
        if (n == m) {
            Index i = 0;
            for (Index j = 1; j < n; ++j)
                if (Q(j, j) > Q(i, i)) i = j;
            novel = nu * Q(i, i) > MIN_SWAP_RATIO && nu > MIN_SWAP_RATIO * std::max(novelty(n, i), MIN_NOVELTY * prior);
            if (novel) {
                remove(n, i);
                std::copy(row + i + 1, row + n, row + i);
                --n;
                std::copy(row, row + n, phi.data());
                features(L, n, phi.data(), 1, m + 1, &prior, &nu);
                extend_inverse(n, phi.data(), nu);
                ++state[1];
            }
        }
        if (novel) {
            join(n, x, phi.data(), nu);
            ++n;
            nu = 0.0;
            // Q only selects the point to replace: its rounding between refreshes does no harm.
            if (n == m && state[1] % m == 0) refresh_inverse(n);
        }
        state[0] = n;
        const double weight = 1.0 / std::sqrt(std::max(noise, JITTER * prior) + nu);
        for (Index j = 0; j < n; ++j) phi[j] *= weight;
        absorb(U, c, n, phi.data(), reward * weight);
        return variance;
    }
};

void check_state(const View<int64_t, 1>& state, Index m) {
    require(state.size() == 2 && state[0] >= 0 && state[0] <= m && state[1] >= 0 && m > 0,
            "state must hold the number of points and of swaps");
}

}  // namespace
}  // namespace armwise

using namespace armwise;

void bind_gp_budget(nb::module_& m) {
    m.doc() = "A Gaussian process posterior over at most m inducing points: every step costs O(m^2) per query, for ever.";
    m.attr("MIN_NOVELTY") = MIN_NOVELTY;
    m.attr("MIN_SWAP_RATIO") = MIN_SWAP_RATIO;

    m.def("solve_upper", [](Const<double, 1> U, Index n, Array<double, 2> V) {
        require(n >= 0 && U.size() >= packed(n) && V.size(1) >= n, "U must hold n columns and V have n");
        solve_upper(U.data, n, V.data, V.size(0), V.size(1));
    }, "U"_a, "n"_a, "V"_a, R"(U^-1 v in place for each row v of V.

>>> V = np.array([[2.0, 4.0]])
>>> solve_upper(np.array([1.0, 1.0, 4.0]), 2, V)
>>> V
array([[1., 1.]]))");

    m.def("features", [](Const<double, 1> L, Index n, Array<double, 2> V, Const<double, 1> prior) {
        require(n >= 0 && L.size() >= packed(n) && V.size(1) >= n && prior.size() == V.size(0),
                "L must hold n rows, V have n columns and prior one number per row");
        New<double, 1> residuals(V.size(0));
        features(L.data, n, V.data, V.size(0), V.size(1), prior.data, residuals.view.data);
        return residuals;
    }, "L"_a, "n"_a, "V"_a, "prior"_a, R"(Turn the rows k(x) of V into phi, and return the residual variances nu.

>>> V = np.array([[1.0]])
>>> features(np.array([2.0]), 1, V, np.ones(1)), V
(array([0.75]), array([[0.5]])))");

    m.def("budget_estimate", [](Const<double, 1> L, Const<double, 1> U, Const<double, 1> c, Index n, Array<double, 2> V,
                                Const<double, 1> prior) {
        const Index rows = V.size(0);
        require(n >= 0 && L.size() >= packed(n) && U.size() >= packed(n) && c.size() >= n && V.size(1) == n &&
                    prior.size() == rows,
                "L, U and c must hold n rows, V have n columns and prior one number per row");
        New<double, 1> means(rows), variances(rows);
        {
            Unlocked unlocked(double(rows) * double(n) * double(n));
            budget_estimate(L.data, U.data, c.data, n, V.data, rows, prior.data, means.view.data, variances.view.data);
        }
        return std::make_tuple(std::move(means), std::move(variances));
    }, "L"_a, "U"_a, "c"_a, "n"_a, "V"_a, "prior"_a,
          R"(Means and variances from the rows k(x) of V, which are overwritten; an indefinite kernel has negative variances.

>>> budget_estimate(np.ones(1), np.array([2.0]), np.ones(1), 1, np.array([[1.0]]), np.ones(1))
(array([0.5]), array([0.25])))");

    m.def("absorb", [](Array<double, 1> U, Array<double, 1> c, Index n, Array<double, 1> p, double rho) {
        require(n >= 0 && U.size() >= packed(n) && c.size() >= n && p.size() >= n, "U, c and p must hold n entries");
        absorb(U.data, c.data, n, p.data, rho);
    }, "U"_a, "c"_a, "n"_a, "p"_a, "rho"_a,
          R"(A + pp' and b + rho p by n rotations of the columns (U, p), which also rotate (c, rho); p is overwritten.

>>> U, c = np.ones(1), np.zeros(1)
>>> absorb(U, c, 1, np.array([np.sqrt(3.0)]), np.sqrt(3.0))
>>> U, c
(array([2.]), array([1.5])))");

    m.def("remove", [](Array<double, 2> Z, Array<double, 1> L, Array<double, 1> U, Array<double, 1> c,
                       Array<double, 2> Q, Index n, Index i) {
        const Budget budget(Z, L, U, c, Q);
        require(n <= budget.most(), "n must not exceed the room");
        require_index(i, n, "i must be one of the n points");
        budget.remove(n, i);
    }, "Z"_a, "L"_a, "U"_a, "c"_a, "Q"_a, "n"_a, "i"_a,
          R"(Forget inducing point i in O(n^2): the posterior of the others is the old one with f(z_i) integrated out.)");

    m.def("novelty", [](Const<double, 1> L, Index n, Index i) {
        require(L.size() >= packed(n), "L must hold n rows");
        require_index(i, n, "i must be one of the n points");
        std::vector<double> v(n);
        v[i] = 1.0;
        solve_lower(L.data, n, v.data(), 1, n);
        return 1.0 / lane_dot(v.data(), v.data(), n);
    }, "L"_a, "n"_a, "i"_a, R"(The residual variance of inducing point i given the others: 1 / (Kmm^-1)_ii.

>>> novelty(np.array([1.0, 0.5, 2.0]), 2, 1)
4.0)");

    m.def("budget_append", [](Array<double, 2> Z, Array<double, 1> L, Array<double, 1> U, Array<double, 1> c,
                              Array<double, 2> Q, Array<int64_t, 1> state, Const<double, 1> x, Array<double, 2> row,
                              double prior, double noise, double reward) {
        const Budget budget(Z, L, U, c, Q);
        check_state(state, budget.most());
        require(x.size() == Z.size(1) && row.size(0) == 1 && row.size(1) >= state[0],
                "x must have a point's columns and row one entry per point");
        return budget.append(state.data, x.data, row.data, prior, noise, reward);
    }, "Z"_a, "L"_a, "U"_a, "c"_a, "Q"_a, "state"_a, "x"_a, "row"_a, "prior"_a, "noise"_a, "reward"_a,
          R"(Learn one reward and return the variance at x before it. ``state`` has the numbers of points and of swaps so far.

x joins the inducing points if there is room and it is novel, or replaces the least novel one if it is MIN_SWAP_RATIO times
as novel. Every swap multiplies det Kmm by at least that, so that swaps come to an end.)");

    m.def("budget_play", [](const ProgramArgument& code, Array<double, 2> Z, Array<double, 1> L, Array<double, 1> U,
                            Array<double, 1> c, Array<double, 2> Q, Array<int64_t, 1> state, double noise,
                            const Width& width, int64_t t, double gain, Const<double, 3> contexts,
                            Const<double, 2> rewards, Generator rng, Array<int64_t, 1> arms,
                            Array<double, 1> probabilities, Array<double, 1> got) {
        const Rounds rounds{contexts, rewards, arms, probabilities, got};
        rounds.check(Z.size(1));
        const Index T = rounds.size(), K = rounds.n_arms(), d = Z.size(1);
        const Budget budget(Z, L, U, c, Q);
        const Index most = budget.most();
        check_state(state, most);
        Program program(code);
        program.check_width(d);
        std::vector<double> V(K * most), rows, row(most), prior(K), means(K), variances(K);
        Optimism optimism(width, t, rounds, rng);
        Unlocked unlocked(double(T) * double(K) * double(most) * double(most));
        for (Index i = 0; i < T; ++i) {
            const View<const double, 2> X = contexts[i];
            const Index n = state[0];
            View<const double, 2> points;
            points.data = Z.data, points.shape[0] = n, points.shape[1] = d;
            program.diagonal(X, prior.data());
            program.cross(X, points, V.data());
            rows.assign(V.data(), V.data() + K * n);
            budget_estimate(L.data, U.data, c.data, n, V.data(), K, prior.data(), means.data(), variances.data());
            for (Index a = 0; a < K; ++a)
                if (variances[a] < -MAX_ROUNDING * prior[a]) return std::make_tuple(i, gain);
            const Index arm = optimism.play(i, gain, means.data(), variances.data());
            std::copy(rows.data() + arm * n, rows.data() + (arm + 1) * n, row.data());
            const double variance =
                budget.append(state.data, X.data + arm * d, row.data(), prior[arm], noise, got[i]);
            gain += 0.5 * std::log1p(std::max(variance, 0.0) / noise);
        }
        return std::make_tuple(T, gain);
    }, "program"_a, "Z"_a, "L"_a, "U"_a, "c"_a, "Q"_a, "state"_a, "noise"_a, "width"_a, "t"_a, "gain"_a, "contexts"_a,
          "rewards"_a, "rng"_a, "arms"_a, "probabilities"_a, "got"_a,
          R"(Play a block of rounds; return how many were played, and the information gain.

It stops early where a variance shows that the kernel is not positive definite.)");
}
