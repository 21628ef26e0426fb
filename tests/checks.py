"""One list of checks that every agent must pass, and one case or more for every agent.

A case says how to make the agent and what kind of rounds it meets; a check is a function of a case that fails with
an AssertionError. ``test_every_agent.py`` runs all checks over all cases, and fails if a public agent has no case.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise import persist

K, D, N = 4, 3, 5  # arms, features, experts or policies


@dataclass(frozen=True)
class Case:
    """``make(seed)`` gives a fresh agent; the flags say what holds for it by design."""

    name: str
    make: Callable[[int], aw.Agent]
    horizon: int = 600  # rounds after which it must beat uniform play
    symmetric: bool = True  # renaming the arms renames the probabilities (not if arms have a meaning of their own)
    saves: bool = True
    margin: float = 0.05  # by how much it beats uniform play
    sampled: bool = False  # its probabilities are themselves frequencies of random draws

    @property
    def tolerance(self) -> float:
        """How far two probability vectors of the same state may lie apart."""
        return 0.4 if self.sampled else 1e-9


@dataclass(frozen=True)
class Rounds:
    """Contexts as the agent sees them, a reward for every arm, and the same contexts with the arms renamed."""

    contexts: Any
    rewards: np.ndarray

    def context(self, t: int) -> Any:
        return None if self.contexts is None else self.contexts[t]


def rounds(sees: str, T: int, seed: int, n_arms: int = K) -> Rounds:
    """Rounds in which the best arm depends on the context (where there is one), rewards 0 or 1."""
    rng = np.random.default_rng(seed)
    if sees == "nothing":
        means = np.tile(np.linspace(0.1, 0.9, n_arms), (T, 1))
        contexts: Any = None
    elif sees == "features":
        contexts = rng.uniform(-1, 1, (T, n_arms, D)) / np.sqrt(D)
        contexts[:, :, 0] = contexts[:, :1, 0]  # what the arms share comes first, as CGPUCB wants it
        means = 0.5 + 0.5 * contexts @ np.array([0.2, -1.0, 1.0])
    elif sees == "shared":
        contexts = rng.uniform(-1, 1, (T, D))
        best = np.where(contexts[:, 0] > 0.0, 1, 2)
        means = np.full((T, n_arms), 0.1)
        means[np.arange(T), best] = 0.9
    elif sees == "key":
        contexts = [("morning", "evening")[i] for i in rng.integers(0, 2, T)]
        means = np.full((T, n_arms), 0.1)
        means[np.arange(T), [0 if c == "morning" else 2 for c in contexts]] = 0.9
    elif sees == "advice":
        contexts = rng.dirichlet(np.ones(n_arms), (T, N))
        means = 0.1 + 0.8 * contexts[:, 0]  # the first expert knows
    else:
        raise AssertionError(f"a view without rounds: {sees!r}")
    return Rounds(contexts, (rng.random(means.shape) < means).astype(float))


def run(agent: aw.Agent, data: Rounds, start: int = 0, stop: int | None = None) -> list[aw.Choice]:
    choices = []
    for t in range(start, len(data.rewards) if stop is None else stop):
        choice = agent.choose(data.context(t))
        agent.learn(data.context(t), choice, data.rewards[t, choice.arm])
        choices.append(choice)
    return choices


def state(agent: aw.Agent) -> bytes:
    """Everything the agent is, as bytes; for agents that cannot be saved, what they would do next."""
    try:
        return persist.dumps(agent)
    except ValueError:
        return repr(sorted((k, repr(v)) for k, v in vars(agent).items())).encode()


# ---------------------------------------------------------------------- the checks


def carries_its_theory(case: Case) -> None:
    theory = type(case.make(0)).theory
    assert isinstance(theory, aw.Theory)
    assert theory.comparator and theory.reference and theory.assumes


def valid_probabilities(case: Case) -> None:
    agent = case.make(1)
    data = rounds(agent.sees, 60, seed=1)
    for t in range(60):
        p = agent.probabilities(data.context(t))
        assert p.shape == (K,) and p.dtype == np.float64
        assert np.all(p >= 0.0) and abs(p.sum() - 1.0) < 1e-9
        choice = agent.choose(data.context(t))
        assert type(choice) is aw.Choice and type(choice.arm) is int and 0 <= choice.arm < K
        if choice.probability is not None:
            assert type(choice.probability) is float and 0.0 < choice.probability <= 1.0 + 1e-12
        agent.learn(data.context(t), choice, data.rewards[t, choice.arm])


def choose_and_probabilities_agree(case: Case) -> None:
    """The reported probability is the one in the vector; and, over many draws, the one of the frequencies."""
    agent = case.make(2)
    data = rounds(agent.sees, 40, seed=2)
    for t in range(40):
        p = agent.probabilities(data.context(t))
        choice = agent.choose(data.context(t))
        assert p[choice.arm] > 0.0 or choice.probability is None, "an arm with probability 0 was played"
        if choice.probability is not None:
            assert abs(p[choice.arm] - choice.probability) < 1e-9
        agent.learn(data.context(t), choice, data.rewards[t, choice.arm])
    context, draws = data.context(0), 600
    p, counts = np.zeros(K), np.zeros(K)
    for i in range(draws):  # a fresh stream for each draw, and the same state: an agent may count its choices
        twin = _reseed(copy.deepcopy(agent), i)
        p += twin.probabilities(context) / draws
        counts[twin.choose(context).arm] += 1
    slack = 5 * np.sqrt(np.clip(p * (1 - p), 0, 1) / draws) + 0.01
    assert np.all(np.abs(counts / draws - p) < slack), (counts / draws, p)


def _reseed(agent: aw.Agent, i: int) -> aw.Agent:
    """Give every generator inside a copied agent a new stream."""
    seen, queue = set(), [agent]
    while queue:
        thing = queue.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, aw.Agent):
            thing._rng = np.random.default_rng([11, i, len(seen)])
        if isinstance(thing, (aw.Agent, persist.Saved)):
            queue.extend(vars(thing).values())
        elif isinstance(thing, dict):
            queue.extend(thing.values())
        elif isinstance(thing, (list, tuple)):
            queue.extend(thing)
    return agent


def same_seed_same_arms(case: Case) -> None:
    a, b = case.make(3), case.make(3)
    data = rounds(a.sees, 80, seed=3)
    assert run(a, data) == run(b, data)


def play_equals_the_loop(case: Case) -> None:
    looped, blocked = case.make(4), case.make(4)
    data = rounds(looped.sees, 150, seed=4)
    choices = run(looped, data)
    first = blocked.play(data.contexts if data.contexts is None else data.contexts[:70], data.rewards[:70])
    second = blocked.play(data.contexts if data.contexts is None else data.contexts[70:], data.rewards[70:])
    arms = np.concatenate([first.arms, second.arms])
    assert arms.tolist() == [c.arm for c in choices]
    p = np.concatenate([first.probabilities, second.probabilities])
    expected = [np.nan if c.probability is None else c.probability for c in choices]
    np.testing.assert_allclose(p, expected, atol=1e-9)
    np.testing.assert_array_equal(np.concatenate([first.rewards, second.rewards]), data.rewards[np.arange(150), arms])
    probe = data.context(0)
    np.testing.assert_allclose(looped.probabilities(probe), blocked.probabilities(probe), atol=1e-9)


def saved_and_loaded_continues(case: Case) -> None:
    agent = case.make(5)
    data = rounds(agent.sees, 120, seed=5)
    run(agent, data, 0, 60)
    if not case.saves:
        with pytest.raises(ValueError, match="cannot be saved"):
            persist.dumps(agent)
        return
    pending = agent.choose(data.context(60))
    again = persist.loads(persist.dumps(agent))
    assert persist.dumps(again) == persist.dumps(agent)
    for each in (agent, again):
        each.learn(data.context(60), pending, 1.0)
    assert run(agent, data, 61) == run(again, data, 61)
    assert persist.dumps(again) == persist.dumps(agent)


def clone_forgets(case: Case) -> None:
    agent, fresh = case.make(6), case.make(6)
    data = rounds(agent.sees, 60, seed=6)
    before = fresh.probabilities(data.context(0))
    run(agent, data)
    clone = agent.clone(seed=9)
    assert type(clone) is type(agent) and clone.t == 1
    np.testing.assert_allclose(clone.probabilities(data.context(0)), before, atol=case.tolerance)
    other = agent.clone(seed=9)
    assert run(clone, data) == run(other, data)


BAD_ARMS: list[Any] = [-1, K, 1.5, None, "0", True]
BAD_PROBABILITIES: list[Any] = [0.0, -0.5, 1.5, np.nan, "1"]
BAD_REWARDS: list[Any] = [np.nan, np.inf, -np.inf, None, "1", [1.0, 2.0]]


def bad_input_is_refused_and_changes_nothing(case: Case) -> None:
    agent = case.make(7)
    data = rounds(agent.sees, 30, seed=7)
    run(agent, data)
    context = data.context(0)
    choice = agent.choose(context)
    before = state(agent)
    refuse: list[Callable[[], object]] = []
    for bad in bad_contexts(agent):
        refuse += [
            partial(agent.choose, bad),
            partial(agent.probabilities, bad),
            partial(agent.learn, bad, choice, 1.0),
            partial(agent.play, None if bad is None else [bad], np.ones((1, K))),
        ]
    bad_choices: list[Any] = [choice._replace(arm=arm) for arm in BAD_ARMS]
    bad_choices += [choice._replace(probability=p) for p in BAD_PROBABILITIES]
    refuse += [partial(agent.learn, context, bad, 1.0) for bad in [*bad_choices, None, 1, (1, 0.5)]]
    refuse += [partial(agent.learn, context, choice, reward) for reward in BAD_REWARDS]
    if agent.reward_range == (0.0, 1.0):
        refuse += [partial(agent.learn, context, choice, reward) for reward in (1.01, -0.01)]
    block = data.contexts if data.contexts is None else data.contexts[:2]
    too_many = np.ones((3, K)) if block is not None else np.ones(3)
    for rewards in (np.full((2, K), np.nan), too_many, np.ones((2, K + 1)), "x"):
        refuse.append(partial(agent.play, block, rewards))
    for i, call in enumerate(refuse):
        try:
            call()
        except ValueError as error:
            caught = error
        else:
            raise AssertionError(f"bad input {i} was accepted")
        assert len(str(caught)) > 15, f"bad input {i}: the message says too little: {caught}"
        assert state(agent) == before, f"bad input {i} changed the agent"


def bad_contexts(agent: aw.Agent) -> list[Any]:
    sees = agent.sees
    if sees == "nothing":
        return [np.ones(3), "context", 3]
    if sees == "key":
        return [["unhashable"], {}, float("nan")]
    if sees == "advice":
        uniform = np.full((N, K), 1 / K)
        return [None, "advice", uniform[:, :-1], uniform[:-1], 2 * uniform, -uniform, uniform * np.nan, np.ones(K)]
    shape = (K, D) if sees == "features" else (D,)
    good = np.ones(shape)
    spoilt = [good.copy() for _ in range(3)]
    for bad, value in zip(spoilt, (np.nan, np.inf, -np.inf), strict=True):
        bad.flat[-1] = value
    wrong_width = [np.ones((K, D + 1)) if sees == "features" else np.ones(D + 1)] if agent.dim is not None else []
    return [None, "x", *spoilt, *wrong_width, good[None], np.ones(shape, complex), np.empty((0, D)), [["a"] * D] * K]


def inputs_are_neither_kept_nor_modified(case: Case) -> None:
    agent, twin = case.make(8), case.make(8)
    data = rounds(agent.sees, 50, seed=8)
    for t in range(50):
        context = copy.deepcopy(data.context(t))
        if isinstance(context, np.ndarray):
            context.flags.writeable = False  # choosing and learning only read
        choice = agent.choose(context)
        agent.learn(context, choice, data.rewards[t, choice.arm])
        if isinstance(context, np.ndarray):
            assert np.array_equal(context, data.context(t))
            context.flags.writeable = True
            context[:] = 1 / K  # what the caller does with it later is no business of the agent's
    run(twin, data)
    probe = data.context(0)
    np.testing.assert_allclose(agent.probabilities(probe), twin.probabilities(probe), atol=1e-12)


def renaming_arms_renames_probabilities(case: Case) -> None:
    if not case.symmetric:
        return
    a, b = case.make(9), case.make(9)
    data = rounds(a.sees, 60, seed=9)
    order = np.array([2, 0, 3, 1])  # arm i of b is arm order[i] of a
    place = np.argsort(order)

    def renamed(context: Any) -> Any:
        if a.sees == "features":
            return context[order]
        return context[:, order] if a.sees == "advice" else context

    for t in range(60):  # the same history, told with other names
        context = data.context(t)
        choice = a.choose(context)
        note = choice.note
        if isinstance(note, list) and len(note) == K:
            note = [note[i] for i in order]
        a.learn(context, choice, data.rewards[t, choice.arm])
        b.choose(renamed(context))
        b.learn(renamed(context), choice._replace(arm=int(place[choice.arm]), note=note), data.rewards[t, choice.arm])
    probe = data.context(3)
    np.testing.assert_allclose(a.probabilities(probe)[order], b.probabilities(renamed(probe)), atol=case.tolerance)


def delayed_and_shuffled_rewards_are_learnt(case: Case) -> None:
    agent = case.make(10)
    data = rounds(agent.sees, 200, seed=10)
    rng = np.random.default_rng(10)
    for start in range(0, 200, 50):
        waiting = [(t, agent.choose(data.context(t))) for t in range(start, start + 50)]
        for i in rng.permutation(50):
            t, choice = waiting[i]
            agent.learn(data.context(t), choice, data.rewards[t, choice.arm])
    assert agent.t == 201
    p = agent.probabilities(data.context(0))
    assert np.all(np.isfinite(p)) and abs(p.sum() - 1.0) < 1e-9


def number_of_arms_may_change(case: Case) -> None:
    agent = case.make(11)
    if agent.sees != "features" or agent.n_arms is not None:
        return
    for n_arms in (1, 3, 7, 2, 5):
        data = rounds("features", 10, seed=11, n_arms=n_arms)
        assert agent.probabilities(data.context(0)).shape == (n_arms,)
        run(agent, data)


def beats_uniform_play(case: Case) -> None:
    """Mean reward over five seeds against the mean of all arms: a learner that fails this does not learn."""
    gains = []
    for seed in range(5):
        agent = case.make(100 + seed)
        data = rounds(agent.sees, case.horizon, seed=100 + seed)
        played = agent.play(data.contexts, data.rewards)
        gains.append(played.rewards[case.horizon // 2 :].mean() - data.rewards[case.horizon // 2 :].mean())
    assert np.mean(gains) > case.margin, gains


CHECKS = [
    carries_its_theory,
    valid_probabilities,
    choose_and_probabilities_agree,
    same_seed_same_arms,
    play_equals_the_loop,
    saved_and_loaded_continues,
    clone_forgets,
    bad_input_is_refused_and_changes_nothing,
    inputs_are_neither_kept_nor_modified,
    renaming_arms_renames_probabilities,
    delayed_and_shuffled_rewards_are_learnt,
    number_of_arms_may_change,
    beats_uniform_play,
]
