"""Agents around agents: what they report is how they choose, and the agent inside learns what it should."""

# mypy: disable-error-code="arg-type, func-returns-value, misc, var-annotated"

import math

import numpy as np
import pytest

import armwise as aw
from armwise import Choice
from armwise.agents.wrappers.wrapper import expect_agent
from armwise.core.saving import dumps, loads
from tests.agents.wrappers.wrapped_agents import TABLE, Coin, Lookup, Recorder, lookups

CONTEXTS = np.random.default_rng(0).integers(3, size=(400, 1)).astype(float)
REWARDS = (np.random.default_rng(1).random((400, 3)) < [0.2, 0.5, 0.7]).astype(float)

WRAPPED = {
    "PerContext": (lambda seed=None: aw.PerContext(aw.BetaThompson(n_arms=3, draws=5, seed=0), seed=seed), "key"),
    "PolicyArms": (lambda seed=None: aw.PolicyArms(aw.Exp3(4, 0.2, seed=seed), lookups(), n_arms=3, seed=seed), "x"),
    "Doubling": (lambda seed=None: aw.Doubling("Exp3.theoretical", {"n_arms": 3}, seed=seed), None),
    "Explore": (lambda seed=None: aw.Explore(aw.UCB1(n_arms=3, seed=seed), 0.3, seed=seed), None),
    "Explore(PolicyArms)": (
        lambda seed=None: aw.Explore(
            aw.PolicyArms(aw.Exp3(4, 0.2, seed=seed), lookups(), n_arms=3, seed=seed), 0.3, seed=seed
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
    agent, reference, rng = aw.PerContext(aw.UCB1(n_arms=3), seed=1), {}, np.random.default_rng(4)
    keys = ["a", 1, 2.5, None, ("a", 1, (True, None))]
    waiting = []
    for _ in range(300):
        key = keys[rng.integers(5)]
        inner = reference.setdefault(key, aw.UCB1(n_arms=3))
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
    agent = aw.PerContext(aw.BetaThompson(n_arms=3, draws=9), seed=5)
    for key in range(20):
        before = dumps(agent)
        p = agent.probabilities(key)
        assert dumps(agent) == before
        choice = agent.choose(key)
        assert choice.probability == p[choice.arm]
        assert agent.choose(key + 1000).arm in range(3)  # and copies do not share a stream


def test_copies_have_different_streams():
    agent = aw.PerContext(aw.Exp3(n_arms=8, gamma=1.0), seed=5)
    first = [[agent.choose(key).arm for _ in range(20)] for key in range(3)]
    assert first[0] != first[1] != first[2]


def test_keys_that_no_file_can_hold_are_named():
    agent = aw.PerContext(aw.UCB1(n_arms=2))
    agent.choose(("fine", 1))
    agent.choose(("not", frozenset([1])))
    with pytest.raises(ValueError, match=r"frozenset.*expected a string, a number"):
        dumps(agent)
    with pytest.raises(ValueError, match="hashable"):
        agent.choose([1, 2])


def test_rewards_for_a_context_never_chosen_for_are_learnt():
    agent = aw.PerContext(aw.UCB1(n_arms=2))
    agent.learn("new", Choice(1, 0.5), 1.0)
    assert agent.probabilities("new").tolist() == [1.0, 0.0]  # arm 0 is the one still unknown


def test_per_context_regret_is_below_its_bound():
    """C = 3 contexts with different best arms; a shared agent would pay about T / 3."""
    T, K, C = 3_000, 3, 3
    rng = np.random.default_rng(1)
    keys = [int(k) for k in rng.integers(C, size=T)]
    rewards = np.array([[0.9 if arm == key else 0.2 for arm in range(K)] for key in keys])
    regrets = [
        0.9 * T - aw.PerContext(aw.Exp3.theoretical(K, T // C), seed=s).play(keys, rewards).rewards.sum()
        for s in range(10)
    ]
    assert 0 < np.mean(regrets) < aw.PerContext.theory.regret_bound(T=T, C=C, K=K)


# ------------------------------------------------------------------ PolicyArms


def test_policy_arms_follows_exp3_over_policies_round_by_round():
    agent, rng = aw.PolicyArms(aw.Exp3(4, 0.2, seed=1), lookups(), n_arms=3), np.random.default_rng(2)
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
    inner = aw.PolicyArms(recorder, policies, n_arms=3, seed=1)
    agent = aw.Explore(inner, 0.4, seed=1) if around else inner
    rewards, context, n = np.array([0.3, 1.0, 0.6]), np.zeros(1), 10_000
    for _ in range(n):
        choice = agent.choose(context)
        agent.learn(context, choice, rewards[choice.arm])
    estimates = np.zeros(3)
    for choice, reward in recorder.taught:
        estimates[choice.arm] += reward / choice.probability / n
    np.testing.assert_allclose(estimates, [0.3, 0.5 * 0.3 + 0.25 * 1.6, 0.3], atol=0.04)


def test_policy_arms_regret_is_below_its_bound():
    """Three contexts, policy 3 the best on each: 0.9 against 0.1."""
    T = 3_000
    contexts = np.random.default_rng(1).integers(3, size=(T, 1)).astype(float)
    rewards = np.full((T, 3), 0.1)
    rewards[np.arange(T), TABLE[3, contexts[:, 0].astype(int)]] = 0.9
    regrets = []
    for seed in range(5):
        agent = aw.PolicyArms(aw.Exp3.theoretical(4, T, seed=seed), lookups(), n_arms=3, seed=seed)
        regrets.append(0.9 * T - agent.play(contexts, rewards).rewards.sum())
    assert 0 < np.mean(regrets) < aw.PolicyArms.theory.regret_bound(T=T, N=4)


def test_a_choice_without_a_note_teaches_a_policy_that_recommends_its_arm():
    recorder = Recorder(seed=1)
    agent = aw.PolicyArms(recorder, [Lookup([0]), Lookup([1]), Lookup([1])], seed=1)
    for _ in range(20):
        agent.learn(np.zeros(1), Choice(1, 0.5), 1.0)
    assert {choice.arm for choice, _ in recorder.taught} == {1, 2}
    assert {choice.probability for choice, _ in recorder.taught} == {0.25}
    assert aw.PolicyArms(recorder, [Lookup([0])] * 3, n_arms=2).learn(np.zeros(1), Choice(1, 0.5), 1.0) is None
    assert len(recorder.taught) == 20  # no policy plays arm 1 there: nothing to learn


def test_thompson_over_policies_knows_no_probability():
    agent = aw.PolicyArms(aw.BetaThompson(n_arms=4, seed=1), lookups(), n_arms=3)
    choice = agent.choose(np.zeros(1))
    assert choice.probability is None
    agent.learn(np.zeros(1), choice, 1.0)
    assert agent.t == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: aw.PolicyArms(aw.Exp3(3), lookups()), "policies must be 3"),
        (lambda: aw.PolicyArms(aw.LinUCB(dim=2), lookups()), "agent must see nothing"),
        (lambda: aw.PolicyArms(aw.Exp3(2), [len, 3]), r"policies\[1\] must be a policy"),
        (lambda: aw.PolicyArms(aw.Exp3(4), lookups(), sees="advice"), "sees must be"),
        (
            lambda: aw.PolicyArms(aw.Exp3(4), lookups(), n_arms=2).choose(np.zeros(1)),
            r"\[1\] cannot recommend .* arm 2",
        ),
        (lambda: aw.PolicyArms(aw.Exp3(1), [Coin([0.5, 0.6])]).choose(np.zeros(1)), r"policies\[0\] cannot recommend"),
        (lambda: aw.PerContext(aw.LinUCB(dim=2)), "agent must see nothing"),
        (lambda: aw.PerContext(3), "agent must be an armwise agent"),
        (lambda: aw.Explore(aw.UCB1(n_arms=2), 1.5), "epsilon must be"),
        (lambda: aw.Explore("UCB1", 0.1), "agent must be an armwise agent"),
        (lambda: aw.Doubling("Exp33"), "make_agent must be callable, or the name of an agent"),
        (lambda: aw.Doubling("Exp3.toned"), "make_agent must be callable, or the name of an agent"),
        (lambda: aw.Doubling(3), "make_agent must be callable"),
        (lambda: aw.Doubling(lambda T: T), "what make_agent returns must be an armwise agent"),
        (lambda: aw.Doubling("Exp3.theoretical", {"n_arms": 0}), "n_arms must be"),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_agent_is_named():
    with pytest.raises(ValueError, match="agent must be an armwise agent, got int 3"):
        expect_agent("agent", 3)
