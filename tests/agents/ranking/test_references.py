"""Each ranker against its paper, written out naively over the whole history."""

import copy
import math
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.agents.ranking.cascade import kl_upper
from armwise.agents.ranking.examination import draw_rates, read_kappa
from armwise.agents.ranking.ranker import last_click

L, K, T = 7, 3, 150
THETA = np.linspace(0.1, 0.7, L)


def kl(p: float, q: float) -> float:
    first = 0.0 if p == 0 else p * math.log(p / q)
    return first + (math.inf if q >= 1 and p < 1 else 0.0 if p == 1 else (1 - p) * math.log((1 - p) / (1 - q)))


def bisected(p: float, level: float) -> float:
    low, high = p, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(p, middle) <= level else (low, middle)
    return low


def test_the_kl_index_is_the_root_that_bisection_finds() -> None:
    rng = np.random.default_rng(0)
    means, levels = np.append([0.0, 1.0], rng.random(100)), 10 ** rng.uniform(-5, 1.5, 102)
    assert np.allclose(kl_upper(means, levels), [bisected(*pair) for pair in zip(means, levels)], atol=1e-8)


def cascade_scores(history: Any, scores) -> np.ndarray:
    """What arms were examined and clicked, from the lists and their clicks."""
    seen, clicked = np.zeros(L), np.zeros(L)
    for arms, clicks in history:
        for arm, click in zip(arms, clicks):
            seen[arm] += 1
            clicked[arm] += click
            if click:
                break
    return np.array([math.inf if not n else scores(s / n, n, len(history) + 1) for s, n in zip(clicked, seen)])


def ucb1(mean: float, n: float, t: int) -> float:
    return mean + math.sqrt(1.5 * math.log(t) / n)


def klucb(mean: float, n: float, t: int) -> float:
    return bisected(mean, (math.log(t) + 3 * math.log(max(math.log(t), 1.0))) / n)


@pytest.mark.parametrize(("make", "scores"), [(aw.CascadeUCB1, ucb1), (aw.CascadeKLUCB, klucb)])
def test_cascades_show_the_largest_indices(make, scores) -> None:
    ranker, rng = make(L, seed=1), np.random.default_rng(1)
    history: Any = []
    for _ in range(T):
        ranking, naive = ranker.rank(None, K), cascade_scores(history, scores)
        order = np.sort(naive)[::-1]
        assert np.allclose(np.minimum(naive[list(ranking.arms)], 9), np.minimum(order[:K], 9), atol=1e-7)
        clicks = (rng.random(K) < THETA[list(ranking.arms)]).astype(float)
        history.append((ranking.arms, clicks))  # clicks below the first are never read
        ranker.learn(None, ranking, clicks)


@pytest.mark.parametrize("make", [aw.CascadeLinUCB, aw.C2UCB])
def test_linear_rankers_are_ridges_of_what_was_examined(make) -> None:
    ranker, rng = make(3, alpha=0.7, lam=0.4, seed=1), np.random.default_rng(2)
    A, b = 0.4 * np.eye(3), np.zeros(3)
    for _ in range(60):
        X = rng.uniform(0, 1, (L, 3))
        ranking = ranker.rank(X, K)
        inverse = np.linalg.inv(A)
        scores = X @ inverse @ b + 0.7 * np.sqrt(np.einsum("ad,de,ae->a", X, inverse, X))
        assert list(ranking.arms) == np.argsort(-scores)[:K].tolist()
        clicks = (rng.random(K) < 0.3).astype(float)
        ranker.learn(X, ranking, clicks)
        for arm, click in zip(ranking.arms, clicks):
            A, b = A + np.outer(X[arm], X[arm]), b + click * X[arm]
            if click and make is aw.CascadeLinUCB:
                break


def test_linear_thompson_draws_from_the_posterior_of_what_was_examined() -> None:
    """N(A^-1 b, v^2 A^-1) with A and b of the slots down to the first click, drawn with the ranker's own normals."""
    ranker, rng = aw.CascadeLinThompson(3, v=0.6, lam=0.4, seed=1), np.random.default_rng(6)
    A, b = 0.4 * np.eye(3), np.zeros(3)
    for _ in range(60):
        X, z = rng.uniform(0, 1, (L, 3)), copy.deepcopy(ranker._rng).standard_normal(3)
        drawn = np.linalg.solve(A, b) + 0.6 * np.linalg.solve(np.linalg.cholesky(A).T, z)
        ranking = ranker.rank(X, K)
        assert list(ranking.arms) == np.argsort(-(X @ drawn))[:K].tolist()
        clicks = (rng.random(K) < 0.3).astype(float)
        ranker.learn(X, ranking, clicks)
        for arm, click in zip(ranking.arms, clicks):
            A, b = A + np.outer(X[arm], X[arm]), b + click * X[arm]
            if click:
                break


def test_c2ucb_adds_what_is_new_about_an_arm() -> None:
    """Each slot takes the arm that adds most to the sum of scores and diversity / 2 ln det(I + X_S X_S')."""
    rng, ranker = np.random.default_rng(3), aw.C2UCB(4, alpha=0.5, lam=0.3, diversity=0.8, seed=1)
    for _ in range(30):
        X = rng.normal(size=(L, 4))
        means, widths = ranker.estimate(X)
        assert widths is not None
        scores = means + 0.5 * widths
        shown: list[int] = []
        for _ in range(K):
            values = np.full(L, -np.inf)
            for arm in set(range(L)) - set(shown):
                rows = X[[*shown, arm]]
                gram = np.eye(len(rows)) + rows @ rows.T
                values[arm] = scores[[*shown, arm]].sum() + 0.4 * np.linalg.slogdet(gram)[1]
            shown.append(int(values.argmax()))
        ranking = ranker.rank(X, K)
        assert list(ranking.arms) == shown
        ranker.learn(X, ranking, rng.random(K))


@pytest.mark.parametrize("size", [1e-300, 1e100, 1e149])
def test_c2ucb_ranks_rows_of_any_size(size: float) -> None:
    X = size * np.random.default_rng(4).uniform(-1, 1, (6, 3))
    ranker = aw.C2UCB(3, seed=1, diversity=1.0)
    for _ in range(3):
        with np.errstate(over="raise", invalid="raise"):
            ranking = ranker.rank(X, 5)
        ranker.learn(X, ranking, [1.0, 0.0, 0.0, 1.0, 0.0])
    assert len(set(ranking.arms)) == 5


def test_position_ucb_counts_examinations() -> None:
    kappa = np.array([1.0, 0.6, 0.3])
    ranker, rng = aw.PositionUCB(L, kappa=kappa, seed=1), np.random.default_rng(1)
    history: Any = []
    for _ in range(T):
        ranking, t = ranker.rank(None, K), len(history) + 1
        naive = np.full(L, math.inf)
        for arm in range(L):
            own = [(slot, clicks[slot]) for arms, clicks in history for slot in range(K) if arms[slot] == arm]
            if own:
                n, examined, clicked = len(own), sum(kappa[slot] for slot, _ in own), sum(c for _, c in own)
                naive[arm] = clicked / examined + math.sqrt(n / examined) * math.sqrt(math.log(t) / (2 * examined))
        assert np.allclose(np.minimum(naive[list(ranking.arms)], 99), np.minimum(np.sort(naive)[::-1][:K], 99))
        clicks = (rng.random(K) < kappa * THETA[list(ranking.arms)]).astype(float)
        history.append((ranking.arms, clicks))
        ranker.learn(None, ranking, clicks)


def test_posterior_draws_have_the_posteriors_mean_and_deviation() -> None:
    """Against integration on a fine grid, from no data to 100,000 lists. Wrong if clicks or slots are mixed up."""
    kappa, rng = np.array([1.0, 0.5]), np.random.default_rng(0)
    for clicks, missed in ((0, (0, 0)), (3, (10, 20)), (0, (500, 3)), (30_000, (60_000, 10_000)), (50, (0, 0))):
        grid = (np.arange(400_000) + 0.5) / 400_000
        log = clicks * np.log(grid) + sum(m * np.log1p(-k * grid) for m, k in zip(missed, kappa))
        weight = np.exp(log - log.max())
        mean = float(np.average(grid, weights=weight))
        sd = math.sqrt(np.average((grid - mean) ** 2, weights=weight))
        n = 4000
        drawn = draw_rates(np.full(n, float(clicks)), np.tile(np.array(missed, float), (n, 1)), kappa, rng)
        assert abs(drawn.mean() - mean) < 5 * sd / math.sqrt(n) and 0.9 < drawn.std() / sd < 1.1, (clicks, missed)


@pytest.mark.parametrize("make", [aw.PositionUCB, aw.PositionThompson])
def test_kappa_is_learnt(make) -> None:
    """The answer "the second position is worth .6 of the first": 1,500 lists know it to .1."""
    kappa, rng = np.array([1.0, 0.6, 0.3]), np.random.default_rng(4)
    ranker = make(L, 3, seed=1)
    for _ in range(1500):
        ranking = ranker.rank(None, K)
        ranker.learn(None, ranking, rng.random(K) < kappa * THETA[list(ranking.arms)])
    fitted = ranker.examination if make is aw.PositionUCB else _mean_examination(ranker)
    assert np.abs(fitted - kappa).max() < 0.1


def _mean_examination(ranker: Any) -> Any:
    drawn = []
    for _ in range(100):
        ranker.rank(None, K)
        drawn.append(ranker.examination)
    return np.mean(drawn, axis=0)


def test_thompson_with_kappa_learnt_draws_from_the_joint_posterior() -> None:
    """Lists after 150 observations, beside 400,000 draws of the uniform prior weighted by their likelihood: what each
    arm's clicks in each slot are worth, and how often each arm is shown first. Wrong if the sweeps do not mix, or if
    attractions and kappa are not drawn given each other."""
    rng, shape = np.random.default_rng(3), (3, 2)
    shown = np.array([[40.0, 30.0], [30.0, 20.0], [5.0, 25.0]])
    clicks = np.array([[14.0, 5.0], [9.0, 2.0], [2.0, 6.0]])
    theta, kappa = rng.random((400_000, shape[0])), rng.random((400_000, shape[1]))
    log = np.zeros(len(theta))
    for arm, slot in np.ndindex(shape):
        p = theta[:, arm] * kappa[:, slot]
        log += clicks[arm, slot] * np.log(p) + (shown - clicks)[arm, slot] * np.log1p(-p)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 2000  # effective draws
    worth = np.einsum("n,na,nl->al", weight, theta, kappa)
    top = np.argmax(theta, axis=1)
    swapped = kappa[:, 1] > kappa[:, 0]  # the best arm then goes to the second slot
    second = np.argsort(-theta, axis=1)[:, 1]
    first = np.bincount(np.where(swapped, second, top), weights=weight, minlength=3)
    ranker = aw.PositionThompson(3, 2, seed=5)
    for arm, slot in np.ndindex(shape):
        ranker._shown[arm, slot], ranker._clicks[arm, slot] = shown[arm, slot], clicks[arm, slot]
    found, seen, n = np.zeros(shape), np.zeros(3), 6000
    for _ in range(n):
        seen[ranker.rank(None, 2).arms[0]] += 1
        found += np.outer(ranker._theta, ranker._kappa)
    assert np.abs(found / n - worth).max() < 0.008  # posterior deviations are .03 to .07
    assert np.abs(seen / n - first).max() < 0.03


def test_toprank_orders_by_the_pairs_that_differ() -> None:
    """Algorithm 1 with sets and sums over the whole history."""
    n, theta, horizon = 4, np.array([0.9, 0.02, 0.5, 0.2]), 2000
    ranker, rng = aw.TopRank(n, horizon, seed=1), np.random.default_rng(1)
    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    S, N, worse = np.zeros((n, n)), np.zeros((n, n)), set()  # (i, j) of worse: j is better than i
    for t in range(horizon):
        blocks: list[list[int]] = []
        remaining = set(range(n))
        while remaining:
            block = {i for i in remaining if not any((i, j) in worse for j in remaining)}
            blocks.append(sorted(block))
            remaining -= block
        if t % 100 == 0:
            assert ranker.blocks() == blocks
        ranking = ranker.rank(None, 2)
        assert set(ranking.arms[:1]) <= set(blocks[0])
        clicks = dict(zip(ranking.arms, (rng.random(2) < theta[list(ranking.arms)]).astype(float)))
        for some in blocks:
            for i in some:
                for j in some:
                    U = clicks.get(i, 0.0) - clicks.get(j, 0.0)
                    S[i, j] += U
                    N[i, j] += abs(U)
                    if N[i, j] and S[i, j] >= math.sqrt(2 * N[i, j] * math.log(c * horizon * math.sqrt(N[i, j]))):
                        worse.add((j, i))
        ranker.learn(None, ranking, clicks)
    assert ranker.blocks()[0] == [0] and len(worse) >= 3


def test_slot_by_slot_is_the_agent_on_what_is_left() -> None:
    """Each slot's probability is what the agent answers for the rows left, and learning is the agent's own."""
    rng, D = np.random.default_rng(1), 4
    ranker, twin = aw.SlotBySlot(aw.SquareCB(D), seed=1), aw.SquareCB(D)
    for _ in range(50):
        X = rng.uniform(0, 1, (L, D))
        ranking, left = ranker.rank(X, K), list(range(L))
        assert ranking.probabilities is not None
        outcomes = rng.random(K)
        lessons = []
        for arm, p, outcome in zip(ranking.arms, ranking.probabilities, outcomes):
            assert p == pytest.approx(twin.probabilities(X[left])[left.index(arm)], abs=1e-12)
            lessons.append((X[left], aw.Choice(left.index(arm), p), outcome))
            left.remove(arm)
        ranker.learn(X, ranking, outcomes)
        for lesson in lessons:
            twin.learn(*lesson)


def test_slot_by_slot_learns_how_often_slots_are_examined() -> None:
    """Clicks over expected clicks, each with 10 more, written out beside a twin; 2,000 lists know kappa."""
    rng, D, kappa = np.random.default_rng(2), 4, np.array([1.0, 0.6, 0.3])
    theta = np.array([0.7, 0.1, 0.3, 0.5]) / 1.6
    ranker, twin = aw.SlotBySlot(aw.LinUCB(D, 0.5, 1.0), "position-based", seed=1), aw.LinUCB(D, 0.5, 1.0)
    clicks, expected = np.full(K, 10.0), np.full(K, 10.0)
    for t in range(2000):
        X = rng.uniform(0, 1, (L, D))
        ranking = ranker.rank(X, K)
        rows = X[list(ranking.arms)]
        outcomes = (rng.random(K) < kappa * (rows @ theta)).astype(float)
        ranker.learn(X, ranking, outcomes)
        if t < 100:
            clicks, expected = clicks + outcomes, expected + np.maximum(twin.estimate(rows)[0], 0.0)
            examined = clicks / expected / (clicks / expected).max()
            assert np.allclose(ranker.examination, examined, atol=1e-12)
            for row, share, outcome in zip(rows, examined, outcomes):
                twin.learn(share * row[None], aw.Choice(0, 1.0), outcome)
    assert np.abs(ranker.examination - kappa).max() < 0.08


def test_cascade_feedback_teaches_down_to_the_first_click() -> None:
    X = np.eye(3)
    cases: list[tuple[Any, list[int]]] = [
        ("cascade", [1, 1, 0]),
        ("several clicks", [1, 1, 0]),
        ("semi-bandit", [1, 1, 1]),
    ]
    for feedback, taught in cases:
        ranker = aw.SlotBySlot(aw.LinUCB(3, 0.5, 1.0), feedback, seed=1)
        ranking = aw.Ranking((0, 1, 2), (1.0, 1.0, 1.0))
        ranker.learn(X, ranking, [0.0, 1.0, 0.0])
        widths = ranker.estimate(X)[1]
        assert widths is not None
        assert [int(width < 0.99) for width in widths] == taught


def test_an_agent_with_arms_of_its_own_fills_lower_slots_with_the_next_best() -> None:
    """EpsilonGreedy's rule on the arms left, and SquareCB's probabilities renormalised to them."""
    ranker, rng = aw.SlotBySlot(aw.EpsilonGreedy(L, epsilon=0.3), seed=1), np.random.default_rng(1)
    for _ in range(300):
        ranking = ranker.rank(None, K)
        ranker.learn(None, ranking, (rng.random(K) < THETA[list(ranking.arms)]).astype(float))
    best, second, third = np.argsort(-ranker.estimate()[0])[:3]
    p = ranker.probabilities(None, [best])
    assert p[second] == pytest.approx(0.7 + 0.3 / (L - 1)) and p[third] == pytest.approx(0.3 / (L - 1))
    agent = aw.SquareCB(2, n_arms=L, gamma=20.0)
    ranker = aw.SlotBySlot(agent, seed=1)
    for _ in range(50):
        ranking = ranker.rank(np.ones(2), K)
        ranker.learn(np.ones(2), ranking, (rng.random(K) < THETA[list(ranking.arms)]).astype(float))
    whole, below = agent.probabilities(np.ones(2)), ranker.probabilities(np.ones(2), [3])
    assert below == pytest.approx(np.where(np.arange(L) == 3, 0.0, whole / (1.0 - whole[3])))


def test_without_a_click_all_slots_were_examined():
    assert last_click(np.array([1.0, 1.0, 0.0])) == 2
    assert last_click(np.zeros(3)) == 3


def test_kappa_is_read_as_numbers():
    assert read_kappa([1, 0.6]) == pytest.approx([1.0, 0.6])
