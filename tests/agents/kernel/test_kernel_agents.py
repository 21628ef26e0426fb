"""The four agents against naive ones that keep every reward and solve with the whole matrix every round."""

# mypy: disable-error-code="assignment, attr-defined, misc"

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import armwise as aw
from armwise.core import saving
from armwise.core.agent import joined
from armwise.core.tools.threads import thread_pools
from armwise.models import kernels
from tests.agents.kernel.kernel_worlds import gp_world, rkhs_world

RBF = kernels.RBF(0.5)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """The naive matrices are small: on a busy machine threads would only wait for each other."""
    with thread_pools().limit(limits=1):
        yield


class Naive:
    """mean + width(K, t, gain) * deviation over the whole history, by solving with its whole matrix."""

    def __init__(self, kernel, noise, width):
        self.kernel, self.noise, self.width = kernel, noise, width
        self.points, self.rewards, self.gram = [], [], np.empty((0, 0))

    def estimate(self, X):
        if not self.points:
            return np.zeros(len(X)), np.sqrt(np.diag(self.kernel(X)))
        cross = self.kernel(X, np.array(self.points))
        noisy = self.gram + self.noise * np.eye(len(self.gram))
        solved = np.linalg.solve(noisy, np.column_stack([self.rewards, cross.T]))
        return cross @ solved[:, 0], np.sqrt(np.diag(self.kernel(X) - cross @ solved[:, 1:]).clip(0.0))

    def gain(self):
        return 0.5 * np.linalg.slogdet(np.eye(len(self.gram)) + self.gram / self.noise)[1]

    def scores(self, X):
        mean, deviation = self.estimate(X)
        return mean + self.width(len(X), len(self.points) + 1, self.gain) * deviation

    def learn(self, x, reward):
        self.points.append(x)
        self.rewards.append(reward)
        row = self.kernel(x[None], np.array(self.points))
        self.gram = np.block([[self.gram, row[:, :-1].T], [row]])


PRODUCT = kernels.Columns(kernels.RBF(0.8), 0, 2) * kernels.Columns(kernels.Matern(1.0, nu=1.5) + 0.5, 2)
CASES = {
    "GPUCB, a number": (
        lambda: aw.GPUCB(RBF, noise=0.3, beta=4.0, seed=1),
        lambda: Naive(RBF, 0.09, lambda K, t, gain: 2.0),
    ),
    "GPUCB, finite arms": (
        lambda: aw.GPUCB(kernels.Matern(0.5, nu=2.5), noise=0.3, beta=aw.FiniteArmsBeta(delta=0.1), seed=1),
        lambda: Naive(
            kernels.Matern(0.5, nu=2.5), 0.09,
            lambda K, t, gain: math.sqrt(2 * math.log(K * t**2 * math.pi**2 / (6 * 0.1))),
        ),
    ),
    "GPUCB, agnostic": (
        lambda: aw.GPUCB(2.0 * RBF + kernels.Linear(), noise=0.7, beta=aw.AgnosticBeta(norm=2.0, delta=0.2), seed=1),
        lambda: Naive(
            2.0 * RBF + kernels.Linear(), 0.49,
            lambda K, t, gain: math.sqrt(2 * 2.0 + 300 * gain() * math.log(t / 0.2) ** 3),
        ),
    ),
    "GPUCB, scikit-learn's kernel": (
        lambda: aw.GPUCB(sk.RationalQuadratic(0.7), noise=0.3, beta=1.0, seed=1),
        lambda: Naive(kernels.as_kernel(sk.RationalQuadratic(0.7)), 0.09, lambda K, t, gain: 1.0),
    ),
    "CGPUCB": (
        lambda: aw.CGPUCB(
            kernels.RBF(0.8), kernels.Matern(1.0, nu=1.5) + 0.5, context_dim=2, noise=0.3, beta=1.0, seed=1
        ),
        lambda: Naive(PRODUCT, 0.09, lambda K, t, gain: 1.0),
    ),
    "KernelUCB": (
        lambda: aw.KernelUCB(kernels.Polynomial(2, offset=0.5), gamma=0.4, eta=1.3, seed=1),
        lambda: Naive(kernels.Polynomial(2, offset=0.5), 0.4, lambda K, t, gain: 1.3 / math.sqrt(0.4)),
    ),
}  # fmt: skip


def rows(rng, K, dim=4, context_dim=2):
    X = rng.random((K, dim))
    X[:, :context_dim] = X[0, :context_dim]  # as CGPUCB wants it; nothing to the others
    return X


def f(x):
    return math.sin(4 * x[0]) + x[2] * x[1]


def follow(agent, naive, rounds, *, fixed=False, delay=0.4, seed=3, tolerance=1e-8):
    """Scores equal to the tolerance and the naive argmax played, every round; rewards late and shuffled."""
    rng = np.random.default_rng(seed)
    X, waiting = rows(rng, 7), []
    for _ in range(rounds):
        if not fixed:
            X = rows(rng, int(rng.integers(1, 9)))
        expected = naive.scores(X)
        assert agent._scores(X) == pytest.approx(expected, rel=0, abs=tolerance)
        choice = agent.choose(X)
        assert expected[choice.arm] >= expected.max() - 2 * tolerance
        waiting.append((X, choice, f(X[choice.arm]) + 0.3 * rng.standard_normal()))
        while waiting and rng.random() > delay:
            seen, choice, reward = waiting.pop(int(rng.integers(len(waiting))))
            agent.learn(seen, choice, reward)
            naive.learn(seen[choice.arm], reward)


@pytest.mark.parametrize("fixed", [False, True], ids=["changing arms", "fixed arms"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_full_matrix_formulas(name, fixed):
    make, reference = CASES[name]
    follow(make(), reference(), 120, fixed=fixed)


@pytest.mark.parametrize("fixed", [False, True], ids=["changing arms", "fixed arms"])
def test_equals_the_full_matrix_formulas_over_500_rounds(fixed):
    make, reference = CASES["GPUCB, finite arms"]
    follow(make(), reference(), 500, fixed=fixed, delay=0.1)


def test_linear_kernel_plays_the_arms_of_linucb():
    rng = np.random.default_rng(11)
    theta = rng.normal(size=5)
    kernelised = aw.KernelUCB(kernels.Linear(), gamma=0.7, eta=0.9, seed=5)
    linear = aw.LinUCB(dim=5, alpha=0.9, lam=0.7, seed=5)
    for _ in range(500):
        X = rng.normal(size=(int(rng.integers(1, 9)), 5))
        one, two = kernelised.choose(X), linear.choose(X)
        assert (one.arm, one.probability) == (two.arm, two.probability)
        reward = float(X[one.arm] @ theta + rng.normal())
        kernelised.learn(X, one, reward)
        linear.learn(X, two, reward)


class NaiveSup:
    """SupKernelUCB in the words of ALGORITHMS: stages of naive kernel ridge."""

    def __init__(self, kernel, T, delta, gamma):
        self.T, self.delta, self.gamma = T, delta, gamma
        self.stages = [Naive(kernel, gamma, None) for _ in range(max(1, math.ceil(math.log(T))))]

    def decide(self, X):
        alive = list(range(len(X)))
        eta = math.sqrt(2 * math.log(2 * self.T * len(X) / self.delta))
        for s, stage in enumerate(self.stages, start=1):
            mean, deviation = stage.estimate(X[alive])
            w = eta * deviation / math.sqrt(self.gamma)
            if np.all(w <= 1 / math.sqrt(self.T)):
                best = mean + w >= (mean + w).max() - 1e-9
                return {a for a, b in zip(alive, best) if b}, None
            if np.all(w <= 2.0**-s):
                keep = mean + w >= (mean + w).max() - 2.0 ** (1 - s)
                alive = [a for a, k in zip(alive, keep) if k]
            else:
                return {a for a, width in zip(alive, w) if width >= w.max() - 1e-9}, s
        raise AssertionError


@pytest.mark.parametrize("kernel", [kernels.RBF(2.0), kernels.Linear()])
def test_sup_kernel_ucb_equals_its_naive_form(kernel):
    rng = np.random.default_rng(12)
    agent = aw.SupKernelUCB.theoretical(kernel, horizon=400, delta=0.1, gamma=0.5, seed=1)
    naive, waiting, notes = NaiveSup(kernel, 400, 0.1, 0.5), [], set()
    for _ in range(300):
        X = rng.normal(size=(4, 2))[: int(rng.integers(1, 5))] * 0.2
        best, stage = naive.decide(X)
        choice = agent.choose(X)
        assert choice.arm in best
        assert choice.note == stage
        notes.add(stage)
        waiting.append((X, choice, rng.random()))
        while waiting and rng.random() > 0.3:
            seen, choice, reward = waiting.pop(int(rng.integers(len(waiting))))
            agent.learn(seen, choice, reward)
            if choice.note is not None:
                naive.stages[choice.note - 1].learn(seen[choice.arm], reward)
    assert {1, 2} <= notes  # more than one stage took part


def agents(seed=1):
    made = {name: make() for name, (make, _) in CASES.items()}
    made["budget"] = aw.GPUCB(RBF, noise=0.3, budget=15, seed=seed)
    made["KernelUCB, budget"] = aw.KernelUCB(RBF, gamma=0.3, eta=0.5, budget=15, seed=seed)
    made["fitted"] = aw.GPUCB(RBF, noise=0.3, fit_at=(10, 25), seed=seed)
    made["fitted, budget"] = aw.GPUCB(RBF, noise=0.3, fit_at=(10, 25), budget=15, seed=seed)
    made["SupKernelUCB"] = aw.SupKernelUCB(kernels.RBF(2.0), horizon=200, delta=0.1, seed=seed)
    made["SupKernelUCB, budget"] = aw.SupKernelUCB(kernels.RBF(2.0), horizon=200, delta=0.1, budget=9, seed=seed)
    return made


def block(kind, T=60, seed=4):
    rng = np.random.default_rng(seed)
    X = np.array([rows(rng, 5) for _ in range(T)])
    if kind == "fixed arms":
        X[:] = X[0]
    elif kind == "fixed, then changing":
        X[: T // 2] = X[0]
    elif kind == "ties":
        X[:, 1:3] = X[:, :1]
    return X, np.apply_along_axis(f, 2, X) + 0.3 * rng.standard_normal((T, 5))


KINDS = ["changing arms", "fixed arms", "fixed, then changing", "ties"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", agents())
def test_play_equals_the_loop(name, kind):
    contexts, rewards = block(kind)
    fast, slow = agents()[name], agents()[name]
    parts = [fast.play(contexts[:7], rewards[:7]), fast.play(contexts[7:], rewards[7:])]
    for t, (X, r) in enumerate(zip(contexts, rewards)):
        choice = slow.choose(X)
        played = parts[0] if t < 7 else parts[1]
        i = t if t < 7 else t - 7
        assert (choice.arm, choice.probability) == (played.arms[i], played.probabilities[i])
        assert played.rewards[i] == r[choice.arm]
        slow.learn(X, choice, r[choice.arm])
    assert fast.t == slow.t
    assert fast.probabilities(contexts[0]) == pytest.approx(slow.probabilities(contexts[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", agents())
def test_saved_agents_continue_exactly_and_clones_forget(name, kind):
    contexts, rewards = block(kind)
    agent, fresh = agents()[name], agents()[name]
    agent.play(contexts[:22], rewards[:22])
    again = saving.loads(saving.dumps(agent))
    one, two = agent.play(contexts[22:], rewards[22:]), again.play(contexts[22:], rewards[22:])
    assert np.array_equal(one.arms, two.arms)
    assert saving.dumps(agent) == saving.dumps(again)
    assert np.array_equal(agent.clone(seed=1).play(contexts, rewards).arms, fresh.play(contexts, rewards).arms)


@pytest.mark.parametrize("name", agents())
def test_input_is_neither_kept_nor_changed(name):
    contexts, rewards = block("changing arms")
    agent, twin = agents()[name], agents()[name]
    X = contexts[0].copy()
    for t in range(10):
        X[:] = contexts[t]
        choice = agent.choose(X)
        agent.learn(X, choice, rewards[t, choice.arm])
        assert np.array_equal(X, contexts[t])
        twin.learn(contexts[t], twin.choose(contexts[t]), rewards[t, choice.arm])
    X[:] = 0.0
    assert np.array_equal(agent.probabilities(contexts[11]), twin.probabilities(contexts[11]))


@pytest.mark.parametrize("name", ["GPUCB, a number", "budget", "SupKernelUCB"])
def test_wrong_dimensions_are_refused_and_change_nothing(name):
    agent = agents()[name]
    contexts, rewards = block("changing arms")
    agent.play(contexts[:5], rewards[:5])
    before = saving.dumps(agent)
    for wrong in (np.ones((5, 3)), np.ones(4), np.full((5, 4), np.nan)):
        with pytest.raises(ValueError, match="X must"):
            agent.choose(wrong)
        with pytest.raises(ValueError, match="X must"):
            agent.learn(wrong, aw.Choice(0, 1.0), 0.5)
    with pytest.raises(ValueError, match="4 columns"):
        agent.play(contexts[:, :, :3], rewards)
    with pytest.raises(ValueError, match="reward"):
        agent.learn(contexts[0], aw.Choice(0, 1.0), np.nan)
    assert saving.dumps(agent) == before


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: aw.GPUCB(RBF, noise=0.0), "noise must be a finite number > 0"),
        (lambda: aw.GPUCB(RBF, noise=-1.0), "noise must be a finite number > 0"),
        (lambda: aw.GPUCB(RBF, beta=-1.0), "beta must be a finite number >= 0"),
        (lambda: aw.GPUCB(RBF, budget=0), "budget must be a whole number >= 1"),
        (lambda: aw.GPUCB(RBF, dim=0), "dim must be a whole number >= 1"),
        (lambda: aw.GPUCB(RBF, fit_at=(1,)), "fit_at must be a whole number >= 2"),
        (lambda: aw.GPUCB("rbf"), "kernel must be one of armwise.kernels"),  # type: ignore[arg-type]
        (lambda: aw.KernelUCB(RBF, gamma=0.0), "gamma must be a finite number > 0"),
        (lambda: aw.KernelUCB(RBF, eta=-0.1), "eta must be a finite number >= 0"),
        (lambda: aw.KernelUCB(RBF, budget=0), "budget must be a whole number >= 1"),
        (lambda: aw.SupKernelUCB(RBF, horizon=10, budget=0), "budget must be a whole number >= 1"),
        (lambda: aw.SupKernelUCB(RBF, horizon=10, delta=1.5), "delta"),
        (lambda: aw.CGPUCB(RBF, RBF, context_dim=0), "context_dim must be a whole number >= 1"),
        (lambda: aw.FiniteArmsBeta(delta=0.0), "delta"),
        (lambda: aw.AgnosticBeta(norm=0.0, delta=0.1), "norm"),
    ],
)
def test_bad_parameters_are_refused(make, reason):
    with pytest.raises(ValueError, match=reason):
        make()


def test_cgpucb_wants_one_context_and_arm_features():
    agent = aw.CGPUCB(RBF, RBF, context_dim=2)
    X = aw.CGPUCB.rows([0.1, 0.2], [[1.0], [2.0]])
    agent.learn(X, agent.choose(X), 1.0)
    with pytest.raises(ValueError, match="same context in its first 2 columns"):
        agent.choose(np.array([[0.1, 0.2, 1.0], [0.1, 0.3, 2.0]]))
    with pytest.raises(ValueError, match="same context"):
        agent.play(np.stack([X, X + np.eye(2, 3)]), np.ones((2, 2)))
    with pytest.raises(ValueError, match="2 columns of the context"):
        aw.CGPUCB(RBF, RBF, context_dim=2).choose(np.ones((3, 2)))
    with pytest.raises(ValueError, match="arms"):
        aw.CGPUCB.rows([0.1], [1.0, 2.0])


def test_a_kernel_that_is_not_positive_definite_is_refused_by_the_agent():
    class Distance(sk.RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            Y = X if Y is None else Y
            return 1.0 + np.linalg.norm(X[:, None] - Y[None], axis=2)

    agent = aw.GPUCB(Distance(), noise=0.1)
    X = np.random.default_rng(0).random((5, 2))
    with pytest.raises(ValueError, match="kernel is not positive definite"):
        agent.learn(X, agent.choose(X), 1.0)
    assert agent.t == 1


@pytest.mark.parametrize("budget", [None, 20])
def test_marginal_likelihood_finds_the_length_scale_and_the_noise(budget):
    """A draw at length-scale 0.2 and noise 0.1, started at 2 and 1: within a factor 2 after 150 rewards."""
    world = gp_world(kernels.RBF(0.2), dim=1, noise=0.1, seed=3)
    agent = aw.GPUCB(kernels.RBF(2.0), noise=1.0, beta=2.0, budget=budget, fit_at=(40, 150), seed=1)
    X, _, rewards = world.rounds(200, 5)
    agent.play(X, rewards)
    kernel, variance = agent.fitted
    assert 0.1 < kernel.length_scale < 0.4
    assert 0.05 < math.sqrt(variance) < 0.2
    assert agent._rewards == []  # nothing is kept after the last fit
    assert agent.clone().fitted[0].length_scale == 2.0


def test_fitting_is_off_by_default():
    world = gp_world(kernels.RBF(0.2), dim=1, noise=0.1, seed=3)
    agent = aw.GPUCB(kernels.RBF(2.0), noise=1.0, seed=1)
    X, _, rewards = world.rounds(100, 5)
    agent.play(X, rewards)
    assert agent.fitted == (agent.kernel, 1.0)
    assert agent._rewards == []


def regret(agent, X, values, rewards):
    arms = agent.play(X, rewards).arms
    return float((values.max(axis=1) - values[np.arange(len(arms)), arms]).sum())


@pytest.mark.parametrize("budget", [None, 60])
def test_regret_under_its_bound_and_sublinear_on_a_gaussian_process(budget):
    """10 draws; the bound (delta = 0.1, gain measured) holds in all, and the second half costs less than the first."""
    kernel, T, K = kernels.RBF(0.3), 600, 10
    totals, halves, uniform = [], [], []
    for seed in range(10):
        X, values, rewards = gp_world(kernel, dim=2, noise=0.2, seed=seed).rounds(T, K)
        agent = aw.GPUCB(kernel, noise=0.2, beta=aw.FiniteArmsBeta(delta=0.1), budget=budget, seed=seed)
        first = regret(agent, X[:300], values[:300], rewards[:300])
        second = regret(agent, X[300:], values[300:], rewards[300:])
        bound = aw.bounds.gp_ucb(T=T, K=K, gamma_T=agent.information_gain, sigma=0.2, delta=0.1)
        assert first + second < bound
        totals.append(first + second)
        halves.append((first, second))
        uniform.append((values.max(axis=1) - values.mean(axis=1)).sum())
    assert np.mean(totals) < 0.5 * np.mean(uniform)
    assert np.mean([s for _, s in halves]) < 0.6 * np.mean([first for first, _ in halves])


def test_kernel_ucb_beats_uniform_where_the_norm_is_known():
    """f with <f, f> = 1: half the regret of uniform play or less, in each of 3 worlds."""
    for seed in range(3):
        X, values, rewards = rkhs_world(RBF, dim=2, noise=0.1, norm=1.0, seed=seed).rounds(500, 8)
        total = regret(aw.KernelUCB(RBF, gamma=0.1, eta=0.3, seed=seed), X, values, rewards)
        assert total < 0.5 * (values.max(axis=1) - values.mean(axis=1)).sum()


def test_agnostic_gpucb_stays_under_its_bound():
    for seed in range(3):
        X, values, rewards = rkhs_world(RBF, dim=2, noise=0.1, norm=1.0, seed=seed).rounds(400, 8)
        agent = aw.GPUCB(RBF, noise=0.1, beta=aw.AgnosticBeta(norm=1.0, delta=0.1), seed=seed)
        total = regret(agent, X, values, rewards)
        assert total < aw.bounds.gp_ucb_agnostic(T=400, B=1.0, gamma_T=agent.information_gain, sigma=0.1, delta=0.1)


def test_sup_kernel_ucb_eliminates_the_worse_arms():
    """2 fixed arms worth 0.1 and 0.9: under a third of uniform's regret at T = 5000, and under the bound."""
    T, X = 5000, np.array([[0.0], [2.0]])
    values = np.tile([0.1, 0.9], (T, 1))
    rewards = values + 0.1 * np.random.default_rng(0).uniform(-1, 1, size=(T, 2))
    agent = aw.SupKernelUCB(kernels.RBF(1.0), horizon=T, delta=0.1, budget=2, seed=1)
    total = regret(agent, np.tile(X, (T, 1, 1)), values, rewards)
    assert total < (values.max(axis=1) - values.mean(axis=1)).sum() / 3
    d = kernels.effective_dimension(kernels.RBF(1.0), np.tile(X, (500, 1)), gamma=1.0, T=T)
    assert total < aw.bounds.sup_kernel_ucb(T=T, N=2, d_tilde=d, gamma=1.0, delta=0.1)


def repeating(kind, T=400, seed=6):
    """Blocks in which the same rows come back: 20 arms in shuffled order, or 20 contexts by 5 arms."""
    rng = np.random.default_rng(seed)
    if kind == "shuffled":
        shop = rng.random((20, 4))
        X = np.array([shop[rng.permutation(20)] for _ in range(T)])
    else:
        contexts, arms = rng.random((20, 2)), rng.random((5, 2))
        X = np.array([aw.CGPUCB.rows(contexts[rng.integers(20)], arms[rng.permutation(5)]) for _ in range(T)])
    return X, np.apply_along_axis(f, 2, X) + 0.3 * rng.standard_normal(X.shape[:2])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("GPUCB, finite arms", "shuffled"),
        ("GPUCB, scikit-learn's kernel", "shuffled"),
        ("SupKernelUCB", "shuffled"),
        ("GPUCB, finite arms", "contexts by arms"),
        ("CGPUCB", "contexts by arms"),
        ("SupKernelUCB", "contexts by arms"),
    ],
)
def test_rows_that_come_back_in_any_order_play_as_the_loop_does(name, kind):
    contexts, rewards = repeating(kind, T=120 if "scikit" in name else 400)
    fast, slow = agents()[name], agents()[name]
    played = fast.play(contexts, rewards)
    for t, (X, r) in enumerate(zip(contexts, rewards)):
        choice = slow.choose(X)
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t])
        slow.learn(X, choice, r[choice.arm])
    models = fast._models if name == "SupKernelUCB" else [fast._posterior]
    rows = len(np.unique(contexts.reshape(-1, 4), axis=0))
    assert all(model.joint is None or len(model.joint) <= rows for model in models)
    assert any(model.joint is not None for model in models)


@pytest.mark.parametrize("budget", [None, 15])
@pytest.mark.parametrize(("kernel", "scale"), [(kernels.RBF(2.0), 0.1), (kernels.Polynomial(2), 0.05)])
def test_pooled_stages_play_as_the_loop_does_whatever_form_the_posterior_has(monkeypatch, kernel, scale, budget):
    """Every rule of the staging takes part; the posterior grows with new rows, and is joint where they come back."""
    monkeypatch.setattr(
        "armwise.models.kernel_posterior.MAX_EXTENSION", 0.0
    )  # new rows are not worth a larger joint posterior
    contexts, rewards = repeating("shuffled", T=150)
    contexts, rewards = contexts[:, :6].copy(), rewards[:, :6]
    contexts[10:20] += np.random.default_rng(2).normal(size=(10, 6, 4))
    fast, slow = (aw.SupKernelUCB(kernel, horizon=60, scale=scale, budget=budget, seed=1) for _ in range(2))
    blocks = slice(15), slice(15, 150)  # the second begins in the middle of the new rows
    played = joined([fast.play(contexts[now], rewards[now]) for now in blocks])
    notes, forms = set(), set()
    for t, (X, r) in enumerate(zip(contexts, rewards)):
        choice = slow.choose(X)
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t])
        slow.learn(X, choice, r[choice.arm])
        notes.add(choice.note)
        forms.add(type(slow._models[0]._form).__name__)
    assert saving.dumps(fast) == saving.dumps(slow)
    assert {None} < notes and len(notes) > 2
    assert forms == ({"Joint", "Growing"} if budget is None else {"BudgetedPosterior"})


OVERFLOWING = {
    "GPUCB": lambda: aw.GPUCB(kernels.Polynomial(3), seed=1),
    "GPUCB, budget": lambda: aw.GPUCB(kernels.Polynomial(3), budget=5, seed=1),
    "CGPUCB": lambda: aw.CGPUCB(kernels.Polynomial(2), kernels.Polynomial(2), context_dim=1, seed=1),
    "KernelUCB": lambda: aw.KernelUCB(kernels.Polynomial(3) + kernels.RBF(), seed=1),
    "SupKernelUCB": lambda: aw.SupKernelUCB(kernels.Polynomial(3), horizon=100, seed=1),
}


@pytest.mark.parametrize("name", OVERFLOWING)
def test_rows_that_overflow_are_refused_and_change_nothing(name):
    """k(x, x) of 1e60 under a cubic kernel is infinite; in the middle of a block too it is refused before round 1."""
    agent = OVERFLOWING[name]()
    X = np.ones((50, 2, 2))
    X[:, :, 1] = np.arange(2)
    agent.play(X[:5], np.ones((5, 2)))
    before = saving.dumps(agent)
    X[30] = 1e60
    with pytest.raises(ValueError, match="X is too large for the kernel"):
        agent.play(X, np.ones((50, 2)))
    with pytest.raises(ValueError, match="X is too large for the kernel"):
        agent.choose(X[30])
    with pytest.raises(ValueError, match="X is too large for the kernel"):
        agent.learn(X[30], aw.Choice(0, 1.0, 1 if name == "SupKernelUCB" else None), 1.0)
    assert saving.dumps(agent) == before
