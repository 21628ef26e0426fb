"""Recipes of ``variants`` for the kernels of posteriors, experts, policies, sequences and the service's features."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.native.variants import D, K, T, numbers, recipe, ridge_models, rng

RBF = np.array([[3, 0, -1]]), np.array([[0.8, 0.0]])
MIXED = (  # RBF on the first columns times Matern on the others, plus a cubic
    np.array([[3, 0, 2], [5, 2, -1], [8, 0, 0], [2, 0, -1], [7, 0, 0]]),
    np.array([[0.7, 0.0], [1.3, 0.0], [0.0, 0.0], [3.0, 0.5], [0.0, 0.0]]),
)
WIDTH = (1, 0.1, 0.0)


def shop(rows: int = 40, d: int = 3) -> np.ndarray:
    return np.random.default_rng(2).random((rows, d))


def offers(rounds: int = T, rows: int = 40) -> np.ndarray:
    """Rounds of K rows out of a shop, in any order."""
    draw = np.random.default_rng(3)
    return np.array([shop(rows)[draw.choice(rows, K, replace=False)] for _ in range(rounds)])


def results() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(T, np.int64), np.zeros(T), np.zeros(T)


@recipe("kernels.cross", "kernels.diagonal")
def kernels(module: Any) -> object:
    k, X, Z = module.kernels, numbers(K, 5), numbers(T, 5, seed=2)
    programs = [(np.array([[kind, 0, -1]]), np.array([[2.0, 0.5]])) for kind in range(7)]
    return [(k.cross(p, X, Z), k.diagonal(p, X)) for p in (*programs, MIXED)]


@recipe("gp.multiplier", "gp.solve_lower", "gp.joint_work")
def triangles(module: Any) -> object:
    g, n = module.gp, 23
    L = (np.tril(numbers(n, n)) + 5 * np.eye(n))[np.tril_indices(n)]
    V = numbers(K, n, seed=4)
    g.solve_lower(L, n, V)
    return V, [g.multiplier((kind, 0.1, 2.0), K, 9, 1.5) for kind in range(3)], g.joint_work(7, 9)


def factor_state(f: Any) -> tuple[Any, ...]:
    return (f.points, f.L, f.c, f.sums, f.prior, f.counts, f.offered, f.gain, f.saved, f.age, f.due, f.stale)


@recipe("gp.Factor", "gp.Factor.restored", "gp.Factor.cross", "gp.Factor.estimate", "gp.Factor.learn")
@recipe("gp.Factor.refresh", "gp.Factor.offer", "gp.Factor.play")
def factor(module: Any) -> object:
    f, rows = module.gp.Factor(3, 0.09), shop(25)
    for t in range(60):  # the second time round every row is learnt again
        x = rows[t % 25]
        f.learn(x, f.cross(RBF, x[None]), 1.0, float(np.sin(t)))
        f.offer(rows[:4])
    again = module.gp.Factor.restored(0.09, *factor_state(f)[:10])
    learnt = f.estimate(f.cross(RBF, numbers(K, 3)), np.ones(K)), factor_state(f)
    played = results()
    done = again.play(RBF, WIDTH, 61, offers(), numbers(T, K), rng(), *played)
    state = factor_state(again)
    again.refresh(module.kernels.cross(RBF, again.points, again.points))
    return learnt, done, played, state, again.L


def joint_state(j: Any) -> tuple[Any, ...]:
    return (j.counts, j.sums, j.mean, j.cov, j.gain, j.age)


@recipe("gp.Joint", "gp.Joint.restore", "gp.Joint.recall", "gp.Joint.find", "gp.Joint.estimate", "gp.Joint.learn")
@recipe("gp.Joint.play", "gp.play_stages")
def joint(module: Any) -> object:
    points = shop(40)
    gram = module.kernels.cross(RBF, points, points)
    j, twin = (module.gp.Joint(points, gram, 0.09) for _ in range(2))
    played = results()
    done = j.play(WIDTH, 1, offers(), numbers(T, K), rng(), *played)
    learnt = j.learn(points[:5], 3, 0.4), j.learn(points[:5] + 9.0, 3, 0.4)
    twin.restore(*joint_state(j))
    state = joint_state(j), j.prior, j.noises, j.find(points[::-1] + 0.0), j.estimate(points[3:9]), joint_state(twin)
    twin.recall(j.counts, j.sums)
    staged, stage = results(), np.zeros(T, np.int64)
    pooled = results()
    twin.play((module.gp.STAGED, 0.4, 100.0), 1, offers(), numbers(T, K), rng(), *pooled)
    rounds = module.gp.play_stages([j, twin, None], RBF, 0.9, 100, offers(), numbers(T, K), rng(), *staged, stage)
    return done, played, learnt, state, pooled, joint_state(twin), rounds, staged, stage, joint_state(j)


@recipe("gp_budget.solve_upper", "gp_budget.features", "gp_budget.budget_estimate", "gp_budget.absorb")
@recipe("gp_budget.remove", "gp_budget.novelty", "gp_budget.budget_append", "gp_budget.budget_play")
def budget(module: Any) -> object:
    b, m, d = module.gp_budget, 15, 3
    Z, Q, c, counters = np.zeros((m, d)), np.zeros((m, m)), np.zeros(m), np.zeros(2, np.int64)
    L, U = np.zeros(m * (m + 1) // 2), np.zeros(m * (m + 1) // 2)
    contexts, played = np.random.default_rng(0).random((T, 4, d)), results()
    done = b.budget_play(RBF, Z, L, U, c, Q, counters, 0.09, WIDTH, 1, 0.0, contexts, numbers(T, 4), rng(), *played)
    assert counters[1] > 0  # points were swapped
    row = module.kernels.cross(RBF, contexts[0][:1], Z)
    appended = b.budget_append(Z, L, U, c, Q, counters, contexts[0, 0], row.copy(), 1.0, 0.09, 0.3)
    V, W, p = np.repeat(row, 5, 0), np.repeat(row, 5, 0), numbers(m)
    parts = b.features(L, m, V, np.ones(5)), b.budget_estimate(L, U, c, m, W, np.ones(5)), b.novelty(L, m, 4)
    b.solve_upper(U, m, V)
    b.absorb(U, c, m, p, 0.7)
    b.remove(Z, L, U, c, Q, m, 6)
    return done, played, appended, parts, V, Z, L, U, c, Q, p


@recipe("mixture.condition", "mixture.forms", "mixture.learn", "mixture.scores")
def mixture(module: Any) -> object:
    mix, n = module.mixture, 27
    Z, counts = numbers(n, 3), np.arange(float(n)) % 4
    kernel = 1.0 + Z @ Z.T
    forms = mix.forms(kernel, np.sqrt(counts + 1.0), numbers(n), np.array([0.001, 0.1, 3.0]))
    means, covariances = np.empty((2, n)), np.empty((2, n, n))
    for i, asked in enumerate((0, n)):
        mix.condition(kernel, counts, counts * numbers(n, seed=2), 0.1, 0.7, asked, means[i], covariances[i])
    mix.learn(means, covariances, np.array([0.2, 0.4]), 26, 0.6)
    return forms, means, covariances, mix.scores(means, covariances, np.arange(9) * 3, np.array([0.0, 0.7]), 190.0)


@recipe("logistic.sparse_rows", "logistic.compete", "logistic.fit", "logistic.play", "logistic.play_dense")
@recipe("logistic.score_posterior")
def logistic(module: Any) -> object:
    g, X = module.logistic, numbers(30, D) * (numbers(30, D, seed=2) > 0)
    indptr, indices, data = g.sparse_rows(X)
    found, place = np.unique(indices, return_inverse=True)
    posterior = np.tile([0.0, 1.0], (D, 1))
    g.fit(posterior, indptr, found, place, data, rng().random(30))
    batch = posterior.copy()
    for j in range(30):
        part = slice(indptr[j], indptr[j + 1])
        one, at = np.unique(indices[part], return_inverse=True)
        g.fit(posterior, np.array([0, at.size]), one, at, data[part], np.array([0.3 + j / 60]))
    Z = numbers(9, found.size)
    wins = g.compete(posterior, indptr, found, place, data, Z, np.empty(0))
    dense, rewards = numbers(T, K, D) * (numbers(T, K, D, seed=2) > 0), rng().random((T, K))
    block = g.sparse_rows(dense.reshape(-1, D))
    ways = [(0.8, draws, learns) for draws in (1, 3) for learns in (False, True)]
    played = [g.play(posterior, *block, rewards, *way, rng()) for way in ways]
    played += [g.play_dense(posterior, dense, rewards, *way, rng()) for way in ways]
    scores = g.score_posterior(posterior, indptr, found, place, data, 0.8)
    return indptr, indices, data, batch, wins, played, scores, posterior


@recipe("winning.normal_cdf", "winning.beta_cdf", "winning.smoothed_wins", "winning.gaussian", "winning.beta")
def winning(module: Any) -> object:
    w, means, loadings = module.winning, numbers(K), np.abs(numbers(K, seed=2))
    covariance = np.diag(np.abs(numbers(K, seed=3))) + np.outer(loadings, loadings)
    return (
        w.normal_cdf(3.0 * means), w.beta_cdf(3.5, 0.7, loadings % 1.0), w.smoothed_wins(loadings),
        w.gaussian(means, covariance), w.gaussian(means, np.diag(loadings)), w.gaussian(means[:2], covariance[:2, :2]),
        w.beta(1.0 + 9.0 * loadings, 2.0 + loadings),
    )  # fmt: skip


@recipe("experts.advised", "experts.recentre", "experts.exp4_learn", "experts.exp4p_learn", "experts.exp4_play")
@recipe("experts.exp4p_play", "experts.voted", "experts.voted_learn", "experts.voted_play")
def experts(module: Any) -> object:
    e, N = module.experts, 17
    weights = [numbers(N) for _ in range(7)]
    advice, rewards = rng().dirichlet(np.ones(K), size=(T, N)), rng().random((T, K))
    votes, p = rng().integers(K, size=(T, N)), np.full(K, 1 / K)
    e.recentre(weights[0])
    e.exp4_learn(weights[1], advice[0], 0.2, 3, 0.4, 0.9)
    e.exp4p_learn(weights[2], advice[0], 0.02, 0.3, p, 3, 0.4, 0.9)
    e.voted_learn(weights[3], votes[0], 0.02, 0.3, p, 3, 0.4, 0.9)
    return (
        e.advised(weights[0], advice[0], 0.01), e.voted(weights[0], votes[0], 0.01, K),
        e.exp4_play(weights[4], 0.2, advice, rewards, rng()),
        e.exp4p_play(weights[5], 0.02, 0.3, advice, rewards, rng()),
        e.voted_play(weights[6], 0.02, 0.3, votes, rewards, rng()), weights,
    )  # fmt: skip


@recipe("policies.policy_totals", "policies.add_rewards", "policies.arm_masses")
def policies(module: Any) -> object:
    found, rewards = [], numbers(T, K)
    for dtype in (np.uint8, np.uint16, np.uint32, np.int64):
        table, totals = rng().integers(K, size=(T, 33)).astype(dtype), np.zeros(33)
        module.policies.add_rewards(totals, table[4], rewards[4])
        masses = module.policies.arm_masses(table, numbers(33), K)
        found.append((totals, module.policies.policy_totals(table, rewards), masses))
    return found


@recipe("fits.explained")
def fits(module: Any) -> object:
    return [module.fits.explained(ridge_models(module, 3, counted=counted), D) for counted in (False, True)]


@recipe("likelihood.largest")
def likelihood(module: Any) -> object:
    u, s, counts = np.abs(numbers(301)), numbers(301, seed=2), 1.0 + np.arange(301) % 3
    return [
        module.likelihood.largest(u, t, s + shift, counts, enough)
        for t in np.linspace(0.0, 2.0, 23) for shift in (-0.5, 0.0, 0.5) for enough in (5.0, np.inf)
    ]  # fmt: skip


@recipe("sequences.advance_lower")
def sequences(module: Any) -> object:
    state, bounds = np.zeros(module.sequences.STATE), np.empty(300)
    module.sequences.advance_lower(state, 2 * rng().random(300), 3.0, 4.0, bounds)
    return state, bounds


@recipe("spectral.refresh", "spectral.learn", "spectral.scores", "spectral.play")
def spectral(module: Any) -> object:
    s, Q, model = module.spectral, np.linalg.qr(numbers(T, D))[0], ridge_models(module)[0]
    means, squares = np.empty(T), np.empty(T)
    s.refresh(Q, model, means, squares)
    age = s.learn(Q, model, means, squares, 0, 4, 0.3)
    played = s.play(Q, model, means, squares, age, 0.4, numbers(300, T), rng())
    return s.scores(means, squares, 0.4), played, model, means, squares


@recipe("features.scan", "features.place", "features.scaled", "features.varied", "features.welford")
@recipe("features.mix", "features.cross")
def features(module: Any) -> object:
    f, names = module.features, np.arange(3, 60, 7, dtype=np.uint64) << np.uint64(50)
    counts, means, squares = np.full(names.size, 4.0), numbers(names.size), np.abs(numbers(names.size, seed=2))

    def tokens(n: int, seed: int) -> np.ndarray:
        table = np.random.default_rng(seed).integers(1 << 62, size=(n, 3)).astype(np.uint64)
        table[::2, 0], table[:, 2] = names[: len(table[::2])], np.arange(n) % 2 == 0
        table.view(np.float64)[:, 1] = numbers(n, seed=seed)
        return table

    parts = [np.array([3, 8], np.uint64), tokens(8, 1)]
    for arm in range(3):
        parts += [np.array([arm + 17, 5], np.uint64), tokens(5, arm)]
    words = np.concatenate([part.ravel() for part in parts])
    scaling = f.varied(names, counts, means, squares, tokens(12, 5))
    rows = [f.cross(words, *scaling, dim, inter, alone, 99)
            for dim in (32, 77) for inter in (True, False) for alone in (True, False)]  # fmt: skip
    learnt = f.welford(names, counts, means, squares, tokens(12, 6), True)
    text = b'{"a\\"": [1, {"b:": [2]}], "c": 3}'
    return (
        scaling,
        rows,
        learnt,
        counts,
        means,
        squares,
        f.scan(text),
        f.place(names, 3 << 50),
        f.mix(1, 2),
        f.scaled(5, 2, 3),
    )


@recipe("maps.columns", "maps.fourier")
def feature_maps(module: Any) -> object:
    rows = numbers(T, 5)
    knots = np.sort(numbers(3, 9, seed=2), axis=1)
    index, values = np.array([0, 2, 4]), np.array([0.5, -1.0, 2.0])
    return (
        module.maps.columns(rows, index, values, np.abs(values), knots, index, values, 5.0),
        module.maps.fourier(rows, numbers(5, D, seed=3), numbers(D, seed=4), 0.3),
    )


@recipe("nested.estimates", "nested.scores", "nested.level", "nested.learn_rows", "nested.learn", "nested.play")
def nested_models(module: Any) -> object:
    n, width, ends = module.nested, 40, np.array([8, 24, 40])
    prior = np.abs(numbers(width)) + 0.1
    factors, thetas, state = np.tile(np.diag(prior), (3, 1, 1)), np.zeros((3, 3, width)), np.zeros(21)
    model = (factors, thetas, ends, prior)
    n.learn_rows(*model, state, numbers(T, width), np.arange(T) % 3, numbers(T, seed=2))
    n.learn(*model, state, numbers(width, seed=3), 1, 0.7)
    X = numbers(1, width, seed=4)
    asked = n.estimates(*model, X, 1), n.scores(*model, state, X), n.level(state, 3, 3)
    contexts, rewards = numbers(T, 1, width, seed=5), numbers(T, 3, seed=6)
    return asked, n.play(*model, state, contexts, rewards, 0.3, 1.5, 0.1, rng()), factors, thetas, state
