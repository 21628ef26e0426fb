"""Agents around agents: what they report is how they choose, and the agent inside learns what it should."""

import math
from collections import Counter

import numpy as np
import pytest

import noregret as nr
from noregret import Choice
from noregret.agent import Agent
from noregret.persist import Saved, dumps, loads

TABLE = np.array([[0, 1, 2], [2, 2, 0], [1, 0, 0], [2, 1, 2]])  # arm of each policy on contexts 0, 1, 2


class Lookup(Saved):
    """A policy that can be saved: the arm for context [i] is arms[i]."""

    def __init__(self, arms):
        self.arms = arms

    def __call__(self, context):
        return int(self.arms[int(context[0])])


class Coin(Saved):
    """A randomised policy: the same distribution whatever the context."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def __call__(self, context):
        return self.probabilities


class Recorder(Agent):
    """A three-armed agent that remembers how it was taught; uneven probabilities, and a note."""

    sees = "nothing"
    n_arms = 3
    q = np.array([0.7, 0.2, 0.1])

    def __init__(self, *, seed=None):
        super().__init__(seed=seed)
        self.taught = []

    def _probabilities(self, context):
        return self.q

    def _choose(self, context):
        return super()._choose(context)._replace(note="mine")

    def _learn(self, context, choice, reward):
        self.taught.append((choice, reward))


def lookups():
    return [Lookup([int(a) for a in row]) for row in TABLE]


CONTEXTS = np.random.default_rng(0).integers(3, size=(400, 1)).astype(float)
REWARDS = (np.random.default_rng(1).random((400, 3)) < [0.2, 0.5, 0.7]).astype(float)

WRAPPED = {
    "PerContext": (lambda seed=None: nr.PerContext(nr.BetaThompson(n_arms=3, draws=5, seed=0), seed=seed), "key"),
    "PolicyArms": (lambda seed=None: nr.PolicyArms(nr.Exp3(4, 0.2, seed=seed), lookups(), n_arms=3, seed=seed), "x"),
    "Doubling": (lambda seed=None: nr.Doubling("Exp3.tuned", {"n_arms": 3}, seed=seed), None),
    "Explore": (lambda seed=None: nr.Explore(nr.UCB1(n_arms=3, seed=seed), 0.3, seed=seed), None),
    "Explore(PolicyArms)": (
        lambda seed=None: nr.Explore(
            nr.PolicyArms(nr.Exp3(4, 0.2, seed=seed), lookups(), n_arms=3, seed=seed), 0.3, seed=seed
        ),
        "x",
    ),
}


def contexts_for(kind):
    return {"key": [int(c) for c in CONTEXTS[:, 0]], "x": CONTEXTS, None: None}[kind]


@pytest.mark.parametrize("name", WRAPPED)
def test_play_is_the_loop_and_a_saved_agent_continues_exactly(name):
    make, kind = WRAPPED[name]
    contexts = contexts_for(kind)
    looped, played = make(seed=3), make(seed=3)
    arms, probabilities = [], []
    for t in range(400):
        context = None if contexts is None else contexts[t]
        p = looped.probabilities(context)
        choice = looped.choose(context)
        assert choice.probability == pytest.approx(p[choice.arm], rel=1e-12)
        arms.append(choice.arm)
        probabilities.append(choice.probability)
        looped.learn(context, choice, REWARDS[t, choice.arm])
        if t == 150:
            looped = loads(dumps(looped))
    block = played.play(contexts, REWARDS)
    np.testing.assert_array_equal(block.arms, arms)
    np.testing.assert_allclose(block.probabilities, probabilities, rtol=1e-12)
    assert dumps(played) == dumps(looped)
    assert dumps(played.clone(seed=11)) == dumps(make().clone(seed=11))  # a clone has learnt nothing


@pytest.mark.parametrize("name", WRAPPED)
def test_late_and_shuffled_rewards_are_accepted_and_bad_ones_change_nothing(name):
    make, kind = WRAPPED[name]
    agent, contexts, rng = make(seed=1), contexts_for(kind), np.random.default_rng(2)
    waiting = []
    for t in range(100):
        context = None if contexts is None else contexts[t]
        waiting.append((context, agent.choose(context)))
    for i in rng.permutation(100):
        context, choice = waiting[i]
        agent.learn(context, choice, REWARDS[i, choice.arm])
    assert agent.t == 101
    before = dumps(agent)
    context, choice = waiting[-1]
    for wrong in (choice._replace(arm=3), choice._replace(probability=0.0), "arm 1"):
        with pytest.raises(ValueError, match="choice"):
            agent.learn(context, wrong, 0.5)
    for reward in (2.0, math.nan, "high"):
        with pytest.raises(ValueError, match="reward"):
            agent.learn(context, choice, reward)
    assert dumps(agent) == before


# ------------------------------------------------------------------ PerContext


def test_per_context_is_one_independent_agent_for_each_key():
    agent, reference, rng = nr.PerContext(nr.UCB1(n_arms=3), seed=1), {}, np.random.default_rng(4)
    keys = ["a", 1, 2.5, None, ("a", 1, (True, None))]
    waiting = []
    for _ in range(300):
        key = keys[rng.integers(5)]
        inner = reference.setdefault(key, nr.UCB1(n_arms=3))
        np.testing.assert_array_equal(agent.probabilities(key), inner.probabilities())
        waiting.append((key, agent.choose(key)))
        if len(waiting) > 4:  # a delay
            late, choice = waiting.pop(rng.integers(5))
            reward = rng.random()
            agent.learn(late, choice, reward)
            reference[late].learn(None, choice, reward)
    again = loads(dumps(agent))
    assert again.contexts == agent.contexts
    assert set(again.contexts) == set(keys)
    for key in keys:
        assert again.choose(key) == agent.choose(key)
        assert type(again.contexts[agent.contexts.index(key)]) is type(key)


def test_probabilities_of_an_unseen_context_are_those_of_the_choice_that_follows():
    agent = nr.PerContext(nr.BetaThompson(n_arms=3, draws=9), seed=5)
    for key in range(20):
        before = dumps(agent)
        p = agent.probabilities(key)
        assert dumps(agent) == before
        choice = agent.choose(key)
        assert choice.probability == p[choice.arm]
        assert agent.choose(key + 1000).arm in range(3)  # and copies do not share a stream


def test_copies_have_different_streams():
    agent = nr.PerContext(nr.Exp3(n_arms=8, gamma=1.0), seed=5)
    first = [[agent.choose(key).arm for _ in range(20)] for key in range(3)]
    assert first[0] != first[1] != first[2]


def test_keys_that_no_file_can_hold_are_named():
    agent = nr.PerContext(nr.UCB1(n_arms=2))
    agent.choose(("fine", 1))
    agent.choose(("not", frozenset([1])))
    with pytest.raises(ValueError, match=r"frozenset.*expected a string, a number"):
        dumps(agent)
    with pytest.raises(ValueError, match="hashable"):
        agent.choose([1, 2])


def test_rewards_for_a_context_never_chosen_for_are_learnt():
    agent = nr.PerContext(nr.UCB1(n_arms=2))
    agent.learn("new", Choice(1, 0.5), 1.0)
    assert agent.probabilities("new").tolist() == [1.0, 0.0]  # arm 0 is the one still unknown


def test_per_context_regret_is_below_its_bound():
    """C = 3 contexts with different best arms; a shared agent would pay about T / 3."""
    T, K, C = 3_000, 3, 3
    rng = np.random.default_rng(1)
    keys = [int(k) for k in rng.integers(C, size=T)]
    rewards = np.array([[0.9 if arm == key else 0.2 for arm in range(K)] for key in keys])
    regrets = [
        0.9 * T - nr.PerContext(nr.Exp3.tuned(K, T // C), seed=s).play(keys, rewards).rewards.sum() for s in range(10)
    ]
    assert 0 < np.mean(regrets) < nr.PerContext.theory.regret_bound(T=T, C=C, K=K)


# ------------------------------------------------------------------ PolicyArms


def test_policy_arms_follows_exp3_over_policies_round_by_round():
    agent, rng = nr.PolicyArms(nr.Exp3(4, 0.2, seed=1), lookups(), n_arms=3), np.random.default_rng(2)
    log_weights, waiting = np.zeros(4), []
    for _ in range(200):
        context = rng.integers(3, size=1).astype(float)
        w = np.exp(log_weights)
        q = 0.8 * w / w.sum() + 0.2 / 4
        expected = np.array([q[TABLE[:, int(context[0])] == arm].sum() for arm in range(3)])
        np.testing.assert_allclose(agent.probabilities(context), expected, rtol=1e-9)
        choice = agent.choose(context)
        assert choice.probability == pytest.approx(expected[choice.arm])
        assert TABLE[choice.note[0], int(context[0])] == choice.arm
        waiting.append((context, choice, q[choice.note[0]]))
        rng.shuffle(waiting)
        if len(waiting) > 5:
            context, choice, drawn_with = waiting.pop()
            reward = rng.random()
            agent.learn(context, choice, reward)
            log_weights[choice.note[0]] += 0.2 / 4 * reward / drawn_with


@pytest.mark.parametrize("around", [False, True])
def test_every_policy_gets_an_unbiased_estimate_of_its_reward(around):
    """Average 1{J = i} r / p over many rounds: policy i's expected reward. A failure means a wrong importance weight.

    With Explore around it arms are replaced, by ones that the drawn policy may not recommend.
    """
    recorder = Recorder(seed=1)
    policies = [Lookup([0]), Coin([0.5, 0.25, 0.25]), Lookup([0])]
    inner = nr.PolicyArms(recorder, policies, n_arms=3, seed=1)
    agent = nr.Explore(inner, 0.4, seed=1) if around else inner
    rewards, context, n = np.array([0.3, 1.0, 0.6]), np.zeros(1), 20_000
    for _ in range(n):
        choice = agent.choose(context)
        agent.learn(context, choice, rewards[choice.arm])
    estimates = np.zeros(3)
    for choice, reward in recorder.taught:
        estimates[choice.arm] += reward / choice.probability / n
    np.testing.assert_allclose(estimates, [0.3, 0.5 * 0.3 + 0.25 * 1.6, 0.3], atol=0.03)


def test_policy_arms_regret_is_below_its_bound():
    """Three contexts, policy 3 the best on each: 0.9 against 0.1."""
    T = 3_000
    contexts = np.random.default_rng(1).integers(3, size=(T, 1)).astype(float)
    rewards = np.full((T, 3), 0.1)
    rewards[np.arange(T), TABLE[3, contexts[:, 0].astype(int)]] = 0.9
    regrets = []
    for seed in range(5):
        agent = nr.PolicyArms(nr.Exp3.tuned(4, T, seed=seed), lookups(), n_arms=3, seed=seed)
        regrets.append(0.9 * T - agent.play(contexts, rewards).rewards.sum())
    assert 0 < np.mean(regrets) < nr.PolicyArms.theory.regret_bound(T=T, N=4)


def test_a_choice_without_a_note_teaches_a_policy_that_recommends_its_arm():
    recorder = Recorder(seed=1)
    agent = nr.PolicyArms(recorder, [Lookup([0]), Lookup([1]), Lookup([1])], seed=1)
    for _ in range(20):
        agent.learn(np.zeros(1), Choice(1, 0.5), 1.0)
    assert {choice.arm for choice, _ in recorder.taught} == {1, 2}
    assert {choice.probability for choice, _ in recorder.taught} == {0.25}
    assert nr.PolicyArms(recorder, [Lookup([0])] * 3, n_arms=2).learn(np.zeros(1), Choice(1, 0.5), 1.0) is None
    assert len(recorder.taught) == 20  # no policy plays arm 1 there: nothing to learn


def test_thompson_over_policies_knows_no_probability():
    agent = nr.PolicyArms(nr.BetaThompson(n_arms=4, seed=1), lookups(), n_arms=3)
    choice = agent.choose(np.zeros(1))
    assert choice.probability is None
    agent.learn(np.zeros(1), choice, 1.0)
    assert agent.t == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.PolicyArms(nr.Exp3(3), lookups()), "policies must be 3"),
        (lambda: nr.PolicyArms(nr.LinUCB(dim=2), lookups()), "agent must see nothing"),
        (lambda: nr.PolicyArms(nr.Exp3(2), [len, 3]), r"policies\[1\] must be a policy"),
        (lambda: nr.PolicyArms(nr.Exp3(4), lookups(), sees="advice"), "sees must be"),
        (
            lambda: nr.PolicyArms(nr.Exp3(4), lookups(), n_arms=2).choose(np.zeros(1)),
            r"\[1\] cannot recommend .* arm 2",
        ),
        (lambda: nr.PolicyArms(nr.Exp3(1), [Coin([0.5, 0.6])]).choose(np.zeros(1)), r"policies\[0\] cannot recommend"),
        (lambda: nr.PerContext(nr.LinUCB(dim=2)), "agent must see nothing"),
        (lambda: nr.PerContext(3), "agent must be a noregret agent"),
        (lambda: nr.Explore(nr.UCB1(n_arms=2), 1.5), "epsilon must be"),
        (lambda: nr.Explore("UCB1", 0.1), "agent must be a noregret agent"),
        (lambda: nr.Doubling("Exp33"), "make_agent must be callable, or the name of an agent"),
        (lambda: nr.Doubling("Exp3.toned"), "make_agent must be callable, or the name of an agent"),
        (lambda: nr.Doubling(3), "make_agent must be callable"),
        (lambda: nr.Doubling(lambda T: T), "what make_agent returns must be a noregret agent"),
        (lambda: nr.Doubling("Exp3.tuned", {"n_arms": 0}), "n_arms must be"),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ------------------------------------------------------------------ Doubling


@pytest.mark.parametrize("maker", ["Exp3.tuned", nr.Exp3.tuned, "function"])
def test_doubling_is_a_fresh_tuned_agent_at_1_2_4(maker):
    make = (lambda T: nr.Exp3.tuned(3, T)) if maker == "function" else maker
    agent = nr.Doubling(make, None if maker == "function" else {"n_arms": 3}, seed=1)
    starts = []
    for t in range(70):
        if agent.horizon != (starts[-1][1] if starts else None):
            starts.append((t, agent.horizon))
            np.testing.assert_allclose(agent.probabilities(), 1 / 3)
        choice = agent.choose()
        assert choice.note == [len(starts) - 1, None]
        gamma = nr.Exp3.tuned(3, agent.horizon).gamma
        assert agent.probabilities().min() >= gamma / 3 - 1e-12
        agent.learn(None, choice, REWARDS[t, choice.arm])
    assert starts == [(0, 1), (1, 2), (3, 4), (7, 8), (15, 16), (31, 32), (63, 64)]


def test_rewards_of_an_earlier_run_count_but_teach_nothing():
    agent = nr.Doubling("Exp3.tuned", {"n_arms": 3}, seed=1)
    early = [agent.choose() for _ in range(6)]
    agent.learn(None, early[0], 1.0)  # ends the run of horizon 1
    assert agent.horizon == 2
    for choice in early[1:]:
        agent.learn(None, choice, 1.0)
        np.testing.assert_allclose(agent.probabilities(), 1 / 3)
    assert (agent.t, agent.horizon) == (7, 4)
    fresh = agent.choose()
    agent.learn(None, fresh, 1.0)  # the seventh reward ends the run of horizon 4
    assert agent.horizon == 8


def test_a_function_that_makes_agents_cannot_be_saved_but_its_name_can(tmp_path):
    agent = nr.Doubling(lambda T: nr.Exp3.tuned(3, T))
    with pytest.raises(ValueError, match="name it instead"):
        agent.save(tmp_path / "model.nr")
    with pytest.raises(ValueError, match="make_agent cannot be saved"):
        dumps(agent)
    nr.Doubling(nr.Exp3.tuned, {"n_arms": 3}).save(tmp_path / "model.nr")
    assert nr.load(tmp_path / "model.nr").make_agent == "Exp3.tuned"


def test_horizons_that_the_agent_refuses_are_skipped():
    def picky(T):
        if T < 5:
            raise ValueError("horizon too short")
        return nr.Exp3.tuned(3, T)

    agent = nr.Doubling(picky, seed=1)
    horizons = Counter()
    for t in range(8 + 16 + 5):
        horizons[agent.horizon] += 1
        agent.learn(None, agent.choose(), REWARDS[t, 0])
    assert horizons == {8: 8, 16: 16, 32: 5}


def test_doubling_regret_is_below_its_bound():
    T, K = 3_000, 3
    rewards = np.tile([0.1, 0.3, 0.9], (T, 1))
    regrets = [
        0.9 * T - nr.Doubling("Exp3.tuned", {"n_arms": K}, seed=s).play(None, rewards).rewards.sum() for s in range(10)
    ]
    assert 0 < np.mean(regrets) < nr.bounds.doubling(T=T, bound=nr.bounds.exp3, K=K)


# ------------------------------------------------------------------ Explore


@pytest.mark.parametrize(
    "inner",
    [
        lambda: Recorder(seed=1),
        lambda: nr.Exp3(n_arms=3, gamma=0.1, seed=1),
        lambda: nr.EpsilonGreedy(n_arms=3, epsilon=0.2, seed=1),
    ],
)
def test_explore_reports_the_probabilities_with_which_it_plays(inner):
    """Frequencies over 20,000 choices; the standard error is below 0.0036. The seeds are equal on purpose: streams
    that were the same would make the agent's draw depend on whether the round explores."""
    agent = nr.Explore(inner(), 0.3, seed=1)
    q = inner().probabilities()
    expected = 0.7 * q + 0.1
    np.testing.assert_allclose(agent.probabilities(), expected)
    choices = [agent.choose() for _ in range(20_000)]
    frequencies = np.bincount([c.arm for c in choices], minlength=3) / len(choices)
    np.testing.assert_allclose(frequencies, expected, atol=0.013)
    assert all(c.probability == pytest.approx(expected[c.arm]) for c in choices)


def test_the_agent_inside_learns_every_round_with_the_actual_probability_and_its_own_note():
    recorder = Recorder(seed=1)
    agent = nr.Explore(recorder, 0.3, seed=1)
    choices = [agent.choose() for _ in range(50)]
    for choice in choices:
        agent.learn(None, choice, 0.5)
    assert [choice for choice, _ in recorder.taught] == choices
    assert {choice.note for choice in choices} == {"mine"}
    assert recorder.t == agent.t == 51


def test_an_unknown_probability_stays_unknown():
    agent = nr.Explore(nr.BetaThompson(n_arms=3, seed=1), 0.5, seed=1)
    assert {agent.choose().probability for _ in range(50)} == {None}


def test_a_probability_that_the_agent_inside_needs_is_asked_for():
    for agent in (
        nr.Explore(nr.Exp3(n_arms=2), 0.1),
        nr.PerContext(nr.Exp3(n_arms=2)),
        nr.Doubling("Exp3.tuned", {"n_arms": 2}),
    ):
        context = "key" if agent.sees == "key" else None
        with pytest.raises(ValueError, match=r"probability is None, but Exp3 learns with it"):
            agent.learn(context, Choice(0, None), 1.0)


def test_explore_over_features_and_a_changing_number_of_arms():
    agent, rng = nr.Explore(nr.LinUCB(dim=3, lam=0.5, seed=1), 0.2, seed=1), np.random.default_rng(3)
    plain = nr.LinUCB(dim=3, lam=0.5, seed=1)
    for _ in range(100):
        K = int(rng.integers(1, 6))
        X = rng.normal(size=(K, 3))
        np.testing.assert_allclose(agent.probabilities(X), 0.8 * plain.probabilities(X) + 0.2 / K)
        choice, reward = agent.choose(X), rng.normal()
        agent.learn(X, choice, reward)
        plain.learn(X, choice, reward)
