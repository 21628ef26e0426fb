"""The staging, under SupLinUCB and SupLinREL, against the three rules written out over the full history."""

# mypy: disable-error-code="attr-defined, var-annotated"

import math

import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.core.agent import Choice
from tests.agents.linear.follow import follow, regret, same_future, ties, unit_rows


class NaiveStages:
    """Index sets Psi_s as lists; means and widths from explicit inverses or eigenvectors of all their rows."""

    def __init__(self, dim, horizon, delta, estimate, scale=1.0, pooled=False):
        self.dim, self.T, self.delta, self.estimate, self.scale = dim, horizon, delta, estimate, scale
        self.S = max(1, math.ceil(math.log(horizon)))
        self.psi, self.pooled = [[] for _ in range(self.S)], pooled

    def decide(self, X):
        K = len(X)
        alive = list(range(K))
        for s in range(1, self.S + 1):
            D = np.array([x for x, _ in self.psi[s - 1]]).reshape(-1, self.dim)
            c = np.array([r for _, r in self.psi[s - 1]])
            mean, w = self.estimate(X, D, c, self.T, K, self.delta)
            w = self.scale * w
            p = np.zeros(K)
            if all(w[a] <= 1 / math.sqrt(self.T) for a in alive):
                p[alive] = ties((mean + w)[alive])
                return p, None
            if all(w[a] <= 2.0**-s for a in alive):
                top = max(mean[a] + w[a] for a in alive)
                alive = [a for a in alive if mean[a] + w[a] >= top - 2.0 ** (1 - s)]
                continue
            p[alive] = ties(w[alive])
            return p, s

    def learn(self, x, note, reward):
        for psi in self.psi if self.pooled else () if note is None else (self.psi[note - 1],):
            psi.append((x, reward))


def naive_linucb(X, D, c, T, K, delta):
    A_inverse = np.linalg.inv(np.eye(X.shape[1]) + D.T @ D)
    alpha = math.sqrt(0.5 * math.log(2 * T * K / delta))
    return X @ A_inverse @ D.T @ c, (alpha + 1) * np.sqrt(np.einsum("ai,ij,aj->a", X, A_inverse, X))


def naive_linrel(X, D, c, T, K, delta):
    """Algorithm 2 arm by arm, with D and w themselves."""
    values, vectors = np.linalg.eigh(D.T @ D)
    means, widths = [], []
    for x in X:
        x_tilde = vectors.T @ x
        kept = values >= 1 - 1e-9
        inverse = np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)
        w = D @ vectors @ (inverse * np.where(kept, x_tilde, 0.0))
        v = np.where(kept, 0.0, x_tilde)
        means.append(w @ c)
        widths.append(np.linalg.norm(w) * math.sqrt(math.log(2 * T * K / delta)) + np.linalg.norm(v))
    return np.array(means), np.array(widths)


STAGED = {
    "SupLinUCB": (aw.SupLinUCB.theoretical, naive_linucb),
    "SupLinREL": (aw.SupLinREL.theoretical, naive_linrel),
}


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize(("dim", "horizon", "delta"), [(3, 400, 0.1), (1, 2, 0.5), (2, 20, 0.9)])
def test_every_round_as_the_three_rules_say(name, dim, horizon, delta):
    agent_class, estimate = STAGED[name]
    agent = agent_class(dim, horizon, delta, seed=1)
    follow(agent, NaiveStages(dim, horizon, delta, estimate), dim, rounds=400)


@pytest.mark.parametrize("name", STAGED)
def test_pooled_stages_all_know_every_reward(name):
    agent = getattr(aw, name)(3, 400, 0.1, seed=1)
    follow(agent, NaiveStages(3, 400, 0.1, STAGED[name][1], scale=0.05, pooled=True), 3, rounds=300)


@pytest.mark.parametrize("name", STAGED)
@pytest.mark.parametrize("horizon", [2, 400])  # with one stage, and with several
def test_pooled_blocks_are_the_loop(name, horizon):
    rng = np.random.default_rng(4)
    contexts, rewards = rng.normal(size=(150, 4, 3)) / 2, rng.random((150, 4))
    block, loop = (getattr(aw, name)(3, horizon, seed=2) for _ in range(2))
    played = block.play(contexts, rewards)
    for t in range(150):
        choice = loop.choose(contexts[t])
        assert (choice.arm, choice.probability) == (played.arms[t], played.probabilities[t])
        loop.learn(contexts[t], choice, rewards[t, choice.arm])
    assert saving.dumps(loop._models[0]) == saving.dumps(block._models[0])


def test_columns_that_all_but_vanish_do_no_harm():
    """Squares of these numbers are below the smallest double: Householder's vector had a length of 0 and was divided by
    it. Blocks ended with "scores must be numbers, got NaN"."""
    rng = np.random.default_rng(5)
    contexts = rng.normal(size=(60, 3, 5)) * np.array([1.0, 1e-81, 1.0, 1e-80, 1e-100])
    contexts[:, :, 1:] *= rng.random((60, 3, 4)) < 0.3
    played = aw.LinREL(5, 60, seed=1).play(contexts, rng.random((60, 3)))
    assert np.isfinite(played.rewards).all()


@pytest.mark.parametrize("name", STAGED)
def test_all_three_rules_come_into_play(name):
    """With widths that shrink quickly (d = 1, small horizon) rounds end at several stages and at none."""
    agent = STAGED[name][0](1, 50, 0.9, seed=2)
    notes, X = set(), np.array([[1.0], [0.3], [-1.0]])
    for _ in range(6000):
        choice = agent.choose(X)
        notes.add(choice.note)
        agent.learn(X, choice, float(X[choice.arm, 0]))
    assert notes == {None, 1, 2, 3}  # 2^-3 < 1/sqrt(50): what passes stage 3 is played by rule 1, never by stage 4
    assert agent.choose(X) == Choice(0, 1.0, None)


def test_a_late_reward_joins_the_stage_that_asked():
    agent = aw.SupLinUCB.theoretical(1, 50, 0.9, seed=2)
    X = np.ones((1, 1))
    first = agent.choose(X)
    for _ in range(200):
        agent.learn(X, agent.choose(X), 0.5)
    assert agent.choose(X).note != first.note == 1
    before = agent._models[0].log_det()
    agent.learn(X, first, 0.5)
    assert agent._models[0].log_det() > before


def test_an_unstaged_reward_teaches_nothing():
    agent = aw.SupLinREL(2, 50, pooled=False, seed=2)
    before = saving.dumps(agent._models[0])
    agent.learn(np.eye(2), Choice(0, 1.0, None), 0.5)
    assert saving.dumps(agent._models[0]) == before
    assert agent.t == 2


@pytest.mark.parametrize("note", [0, 8, -1, 1.0, True, "1", [1]])
def test_a_note_that_is_no_stage_is_refused(note):
    agent = aw.SupLinUCB(2, 1000, seed=2)
    before = saving.dumps(agent)
    with pytest.raises(ValueError, match=r"choice\.note must be the stage that chose, 1 to 7, or None"):
        agent.learn(np.eye(2), Choice(0, 1.0, note), 0.5)
    assert saving.dumps(agent) == before


@pytest.mark.parametrize("name", [*STAGED, "LinREL"])
@pytest.mark.parametrize(
    ("argument", "value"), [("dim", 0), ("horizon", 0), ("horizon", 1.5), ("delta", 0.0), ("delta", 1)]
)
def test_bad_parameters_are_named(name, argument, value):
    with pytest.raises(ValueError, match=f"^{argument} must be"):
        getattr(aw, name)(**({"dim": 2, "horizon": 9, "delta": 0.1} | {argument: value}))


@pytest.mark.parametrize("name", [*STAGED, "LinREL"])
def test_saved_and_loaded_it_goes_on_the_same(name):
    rng = np.random.default_rng(5)
    agent = getattr(aw, name)(3, 200, 0.1, seed=4)
    contexts, rewards = unit_rows(rng, 800, 3).reshape(200, 4, 3), rng.random((200, 4))
    contexts[:, 1] = contexts[:, 0]  # ties, so that the random stream matters
    agent.play(contexts[:100], rewards[:100])
    same_future(agent, saving.loads(saving.dumps(agent)), contexts[100:], rewards[100:])


class NaiveLinREL:
    def __init__(self, dim, horizon, delta):
        self.dim, self.T, self.delta, self.rows, self.rewards = dim, horizon, delta, [], []

    def decide(self, X):
        D = np.array(self.rows).reshape(-1, self.dim)
        means, widths = naive_linrel(X, D, np.array(self.rewards), self.T, len(X), self.delta)
        return ties(means + widths), None

    def learn(self, x, note, reward):
        self.rows.append(x)
        self.rewards.append(reward)


def test_linrel_every_round_as_algorithm_2_says():
    follow(aw.LinREL.theoretical(4, 300, 0.1, seed=1), NaiveLinREL(4, 300, 0.1), 4)


def test_an_eigenvalue_of_one_is_kept():
    """D'D = I after one unit row along each axis, up to rounding: all is kept, so the mean is that of least squares."""
    agent = aw.LinREL(2, 100, seed=1)
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    for arm, reward in enumerate([0.2, 0.8]):
        agent.learn(turn, Choice(arm, 1.0), reward)
    means, widths = agent._model.estimate(turn, scale=1.0)
    np.testing.assert_allclose(means, [0.2, 0.8])
    np.testing.assert_allclose(widths, 1.0)


@pytest.mark.parametrize("name", STAGED)
def test_regret_is_below_the_bound_and_below_uniform_play(name):
    """A failure would mean that elimination throws the best arm away, or never eliminates."""
    T, K, dim = 4000, 4, 2
    for seed in range(3):
        agent = STAGED[name][0](dim, T, 0.1, seed=seed)
        mine = regret(agent, seed, T=T, K=K, dim=dim)
        assert mine < agent.theory.regret_bound(T=T, K=K, d=dim, delta=0.1)
        uniform = regret(aw.LinUCB(dim, alpha=1e9, seed=seed), seed, T=T, K=K, dim=dim)
        assert mine < 0.9 * uniform


def test_pooled_stages_follow_the_three_rules():
    """Arm by arm from the rules in words; every stage and rule takes part."""
    from armwise.native import staged

    rng, seen = np.random.default_rng(3), set()
    for _ in range(600):
        K, horizon = int(rng.integers(1, 9)), int(rng.choice([10, 400, 20_000]))
        means, widths = rng.random(K), rng.random(K) * 2.0 ** -rng.integers(0, 9)
        widths[: K // 2] = widths[0]  # ties
        alive, s = list(range(K)), 1
        while True:
            top = max(means[a] + widths[a] for a in alive)
            if all(widths[a] <= 1 / np.sqrt(horizon) for a in alive):
                expected = [a for a in alive if means[a] + widths[a] >= top - 1e-12], 0
                break
            if any(widths[a] > 2.0**-s for a in alive):
                expected = [a for a in alive if widths[a] >= max(widths[b] for b in alive) - 1e-12], s
                break
            alive, s = [a for a in alive if means[a] + widths[a] >= top - 2.0 ** (1 - s)], s + 1
        arms, stage = staged.pooled(means, widths, horizon, int(np.ceil(np.log(horizon))))
        assert (arms.tolist(), stage) == expected
        seen.add(stage)
    assert seen >= {0, 1, 2, 3, 4, 5, 6, 7}
