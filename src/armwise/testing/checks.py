"""The checks of the agent contract: every agent of the package passes them, and yours should too."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np

from armwise.core import saving
from armwise.core.agent import Agent, Choice, Choices, Floats, NoEstimate, Played, Sees, Theory
from armwise.core.capabilities.merging import Merging, can_merge
from armwise.core.capabilities.one_row import learns_one_row
from armwise.core.capabilities.per_arm import PerArm, has_arms
from armwise.core.capabilities.revising import can_revise, predicted
from armwise.testing.copies import copies

__all__ = ["CHECKS", "Case", "check_agent"]

# Default numbers of arms, features and experts, for agents that do not fix them.
K, D, N = 4, 3, 5


@dataclass(frozen=True)
class Case:
    """A factory of an agent (``make(seed)``), and the properties that the agent has by design.

    >>> import armwise as aw
    >>> case = Case("LinUCB", lambda seed: aw.LinUCB(dim=3, seed=seed))
    >>> CHECKS[0](case)
    """

    name: str
    make: Callable[[int], Agent]
    horizon: int = 600  # rounds after which it must beat uniform play
    symmetric: bool = True  # permuting the arms permutes the probabilities (not if an arm has a fixed meaning)
    saves: bool = True
    margin: float = 0.05  # by how much it beats uniform play, in reward per decision
    sampled: bool = False  # its probabilities are themselves frequencies of random draws

    @property
    def tolerance(self) -> float:
        """The tolerance between two probability vectors of the same state."""
        return 0.4 if self.sampled else 1e-9


def check_agent(
    agent_or_factory: Agent | Callable[[int], Agent],
    *,
    horizon: int = 600,
    symmetric: bool = True,
    saves: bool = True,
    margin: float = 0.05,
    sampled: bool = False,
) -> tuple[str, ...]:
    """Run every check on an agent, or on a factory of agents; an AssertionError names the check that fails.

    An agent is cloned for each check and does not change. Within ``horizon`` rounds it must earn ``margin`` more per
    decision than uniform play. Pass ``symmetric=False`` if its arms have a fixed meaning (it knows a graph, or policies
    that name arms), ``saves=False`` if it holds a function that no file can hold, ``sampled=True`` if its probabilities
    are frequencies of random draws. Returns the names of the checks.

    >>> import armwise as aw
    >>> class Stuck(aw.UCB1):
    ...     def _learn(self, context, choice, reward):
    ...         pass
    >>> try:
    ...     check_agent(lambda seed: Stuck(n_arms=3, seed=seed))
    ... except AssertionError as error:
    ...     print(error.__notes__[0])
    check_agent: Stuck(n_arms=3...) fails play_equals_the_loop
    """
    make = agent_or_factory.clone if isinstance(agent_or_factory, Agent) else agent_or_factory
    probe = make(0)
    if not isinstance(probe, Agent):
        raise ValueError(f"agent_or_factory must be an agent, or make one from a seed; it made {probe!r:.80}")
    case = Case(type(probe).__name__, make, horizon, symmetric, saves, margin, sampled)
    for check in CHECKS:
        try:
            check(case)
        except AssertionError as error:
            error.add_note(f"check_agent: {probe!r:.200} fails {check.__name__}")
            raise
    return tuple(check.__name__ for check in CHECKS)


# ---------------------------------------------------------------------- the rounds


@dataclass(frozen=True)
class CheckRounds:
    """Contexts as the agent sees them, and a reward for every arm; costs (T, K, n) if the agent has costs."""

    contexts: Any
    rewards: Floats
    costs: Floats | None = None

    def context(self, t: int) -> Any:
        return None if self.contexts is None else self.contexts[t]

    def teach(self, agent: Agent, t: int, choice: Choice, context: Any = None) -> None:
        """Let an agent learn round t, with its context or with a replacement."""
        cost = None if self.costs is None else self.costs[t, choice.arm]
        agent.learn(self.context(t) if context is None else context, choice, self.rewards[t, choice.arm], cost)

    def play(self, agent: Agent, start: int = 0, stop: int | None = None) -> Played:
        """Some of the rounds as one block."""
        now = slice(start, stop)
        contexts = None if self.contexts is None else self.contexts[now]
        return agent.play(contexts, self.rewards[now], None if self.costs is None else self.costs[now])


def rounds_for(agent: Agent, T: int, seed: int) -> CheckRounds:
    """Rounds with as many arms, features and experts as the agent expects."""
    return rounds(agent.sees, T, seed, arms_of(agent), agent.dim or D, agent.n_experts or N, agent.n_costs)


def arms_of(agent: Agent) -> int:
    """The number of arms in its rounds."""
    return agent.n_arms or K


def rounds(
    sees: Sees, T: int, seed: int, n_arms: int = K, dim: int = D, n_experts: int = N, n_costs: int = 0
) -> CheckRounds:
    """Rounds in which the best arm depends on the context (where there is one), rewards 0 or 1, costs in [0, 0.1]."""
    rng = np.random.default_rng(seed)
    means = np.full((T, n_arms), 0.1)
    contexts: Any = None
    if sees == "nothing":
        means[:] = np.linspace(0.1, 0.9, n_arms)
    elif sees == "features":
        contexts = rng.uniform(-1, 1, (T, n_arms, dim)) / np.sqrt(dim)
        if dim > 1:
            contexts[:, :, 0] = contexts[:, :1, 0]  # what the arms share comes first, as CGPUCB wants it
        theta = np.where(np.arange(dim) % 2 == 1, -1.0, 1.0)
        theta[0] = 0.2 if dim > 1 else 1.0
        means = 0.5 + 0.5 * contexts @ (theta / max(1.0, np.linalg.norm(theta) / np.sqrt(2.04)))
    elif sees == "shared":
        contexts = rng.uniform(-1, 1, (T, dim))
        means[np.arange(T), np.where(contexts[:, 0] > 0.0, 1 % n_arms, 2 % n_arms)] = 0.9
    elif sees == "key":
        contexts = [("morning", "evening")[i] for i in rng.integers(0, 2, T)]
        means[np.arange(T), [0 if c == "morning" else n_arms // 2 for c in contexts]] = 0.9
    else:
        contexts = rng.dirichlet(np.ones(n_arms), (T, n_experts))
        means = 0.1 + 0.8 * contexts[:, 0]  # the first expert knows
    rewards = (rng.random(means.shape) < means).astype(float)
    return CheckRounds(contexts, rewards, rng.uniform(0.0, 0.1, (T, n_arms, n_costs)) if n_costs else None)


def run(agent: Agent, data: CheckRounds, start: int = 0, stop: int | None = None) -> list[Choice]:
    choices = []
    for t in range(start, len(data.rewards) if stop is None else stop):
        choice = agent.choose(data.context(t))
        data.teach(agent, t, choice)
        choices.append(choice)
    return choices


def state(agent: Agent) -> bytes:
    """The state of an agent as bytes, to see whether it changed; of agents that cannot be saved, the attributes."""
    try:
        return saving.dumps(agent)
    except ValueError:
        return repr(sorted((k, repr(v)) for k, v in vars(agent).items())).encode()


# ---------------------------------------------------------------------- the checks


def carries_its_theory(case: Case) -> None:
    theory = getattr(case.make(0), "theory", None)
    assert isinstance(theory, Theory), "the class must say what is proved about it: theory = armwise.Theory(...)"
    assert theory.comparator and theory.reference and theory.assumes


def valid_probabilities(case: Case) -> None:
    agent = case.make(1)
    data = rounds_for(agent, 60, seed=1)
    n_arms = arms_of(agent)
    for t in range(60):
        p = agent.probabilities(data.context(t))
        assert p.shape == (n_arms,) and p.dtype == np.float64
        assert np.all(p >= 0.0) and abs(p.sum() - 1.0) < 1e-9
        choice = agent.choose(data.context(t))
        assert type(choice) is Choice and type(choice.arm) is int and 0 <= choice.arm < n_arms
        if choice.probability is not None:
            assert type(choice.probability) is float and 0.0 < choice.probability <= 1.0 + 1e-12
        data.teach(agent, t, choice)


def choose_and_probabilities_agree(case: Case) -> None:
    """The reported probability equals that of the vector and, over many draws, the observed frequency."""
    agent = case.make(2)
    data = rounds_for(agent, 40, seed=2)
    for t in range(40):
        p = agent.probabilities(data.context(t))
        choice = agent.choose(data.context(t))
        assert p[choice.arm] > 0.0 or choice.probability is None, "an arm with probability 0 was played"
        if choice.probability is not None:
            assert abs(p[choice.arm] - choice.probability) < 1e-9
        data.teach(agent, t, choice)
    context, draws = data.context(0), 600
    p, counts = np.zeros(arms_of(agent)), np.zeros(arms_of(agent))
    for twin in islice(copies(agent), draws):  # a fresh stream, and the same state: an agent may count its choices
        p += twin.probabilities(context) / draws
        counts[twin.choose(context).arm] += 1
    slack = 5 * np.sqrt(np.clip(p * (1 - p), 0, 1) / draws) + 0.01
    assert np.all(np.abs(counts / draws - p) < slack), (counts / draws, p)


def same_seed_same_arms(case: Case) -> None:
    a, b = case.make(3), case.make(3)
    data = rounds_for(a, 80, seed=3)
    # The test comes before learning, when choices are most random: two learners may later settle on the same arm.
    unlearnt = [[agent.choose(data.context(t)) for t in range(40)] for agent in (a, b)]
    assert unlearnt[0] == unlearnt[1]
    assert run(a, data) == run(b, data)


def play_equals_the_loop(case: Case) -> None:
    looped, blocked = case.make(4), case.make(4)
    data = rounds_for(looped, 150, seed=4)
    choices = run(looped, data)
    first, second = data.play(blocked, 0, 70), data.play(blocked, 70)
    arms = np.concatenate([first.arms, second.arms])
    assert arms.tolist() == [c.arm for c in choices]
    p = np.concatenate([first.probabilities, second.probabilities])
    expected = [np.nan if c.probability is None else c.probability for c in choices]
    np.testing.assert_allclose(p, expected, atol=1e-9)
    np.testing.assert_array_equal(np.concatenate([first.rewards, second.rewards]), data.rewards[np.arange(150), arms])
    probe = data.context(0)
    np.testing.assert_allclose(looped.probabilities(probe), blocked.probabilities(probe), atol=1e-9)


def many_at_once_equal_the_loop(case: Case) -> None:
    """choose_many and learn_many equal a loop of choose and learn, to the bit, in several batches."""
    looped = case.make(12)
    batched = copy.deepcopy(looped)
    data = rounds_for(looped, 90, seed=12)
    for start in range(0, 90, 30):
        now = range(start, start + 30)
        contexts = None if data.contexts is None else data.contexts[start : start + 30]
        one_by_one = [looped.choose(data.context(t)) for t in now]
        at_once = batched.choose_many(contexts, n=30)
        assert list(at_once) == one_by_one
        rewards = data.rewards[now, at_once.arms]
        for t, choice in zip(now, one_by_one, strict=True):
            data.teach(looped, t, choice)
        batched.learn_many(contexts, at_once, rewards, None if data.costs is None else data.costs[now, at_once.arms])
        assert state(looped) == state(batched), "learn_many reaches another state than learn"
    if looped.sees == "features" and looped.n_arms is None and not looped.n_costs:
        varied = [np.array(data.context(t)[: 1 + t % arms_of(looped)]) for t in range(20)]
        one_by_one = [looped.choose(X) for X in varied]
        at_once = batched.choose_many(varied)
        assert list(at_once) == one_by_one
        for X, choice in zip(varied, one_by_one, strict=True):
            looped.learn(X, choice, 1.0)
        batched.learn_many(varied, one_by_one, np.ones(20))
        assert state(looped) == state(batched), "learn_many reaches another state than learn"


def estimates_have_one_number_per_arm(case: Case) -> None:
    agent = case.make(13)
    data = rounds_for(agent, 60, seed=13)
    run(agent, data)
    before, K_now = state(agent), arms_of(agent)
    try:
        means, widths = agent.estimate(data.context(0))
    except NoEstimate:
        pass
    else:
        assert means.shape == (K_now,) and np.isfinite(means).all()
        assert widths is None or (widths.shape == (K_now,) and np.all(widths >= 0.0))
    assert state(agent) == before, "estimate changed the agent"


def merged_parts_equal_one_pass(case: Case) -> None:
    """Merging agents that learnt two halves equals one agent that learnt both; or merging is refused."""
    whole, first, second = case.make(14), case.make(14), case.make(15)
    data = rounds_for(whole, 120, seed=14)
    if not can_merge(first):
        if isinstance(whole, Merging):
            _expect_refusal(partial(whole.merge, first), whole)  # type: ignore[arg-type]
        return
    logged = case.make(16).choose_many(data.contexts, n=120)  # of an agent that has learnt nothing
    rewards = data.rewards[np.arange(120), logged.arms]
    costs = None if data.costs is None else data.costs[np.arange(120), logged.arms]

    def part(start: int, stop: int) -> tuple[Any, Any, Floats, Floats | None]:
        now = slice(start, stop)
        contexts = None if data.contexts is None else data.contexts[now]
        return contexts, logged[now], rewards[now], None if costs is None else costs[now]

    whole.learn_many(*part(0, 120))
    first.learn_many(*part(0, 70))
    second.learn_many(*part(70, 120))
    untouched = state(second)
    assert first.merge(second) is first  # type: ignore[arg-type]
    assert state(second) == untouched, "merging changed the other agent"
    assert first.t == whole.t
    for t in range(10):
        for mine, expected in zip(_estimates(first, data.context(t)), _estimates(whole, data.context(t)), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-9)
    run(first, data, 0, 20)  # it goes on


def _estimates(agent: Agent, context: Any) -> tuple[Floats, ...]:
    try:
        return tuple(part for part in agent.estimate(context) if part is not None)
    except ValueError:  # it weighs arms: then its probabilities say what it has learnt
        return (agent.probabilities(context),)


def arms_come_and_go(case: Case) -> None:
    """An added arm is played and learnt, and a removed arm is gone, also after saving and cloning."""
    agent = case.make(17)
    if not has_arms(agent):
        if isinstance(agent, PerArm):
            _expect_refusal(agent.add_arm, agent)
            _expect_refusal(partial(agent.remove_arm, 0), agent)
        return
    n_arms = arms_of(agent)
    run(agent, rounds_for(agent, 40, seed=17))
    longer = rounds(agent.sees, 1, 17, n_arms + 1, agent.dim or D, agent.n_experts or N).context(0)

    def offer(*without: int) -> Any:
        """One context for the arms at hand."""
        return np.delete(longer, without, axis=0) if agent.sees == "features" else longer

    before = _estimates(agent, offer(n_arms))
    assert agent.add_arm() == n_arms and agent.n_arms == n_arms + 1
    if len(before) == 2:  # estimates of the others stay; an agent of weights shares its probability out
        for mine, expected in zip(_estimates(agent, offer()), before, strict=True):
            np.testing.assert_allclose(mine[:-1], expected, rtol=1e-12)
    agent.learn(offer(), Choice(n_arms, 0.5), 1.0, np.zeros(agent.n_costs) if agent.n_costs else None)
    rounds_for(agent, 40, seed=18).play(agent)
    last = tuple(np.delete(part, 1) for part in _estimates(agent, offer()))
    for bad in (-1, n_arms + 1, 0.5, True, None):
        _expect_refusal(partial(agent.remove_arm, bad), agent)  # type: ignore[arg-type]
    agent.remove_arm(1)
    assert agent.n_arms == n_arms
    if len(last) == 2:
        for mine, expected in zip(_estimates(agent, offer(1)), last, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-12)
    data = rounds_for(agent, 40, seed=19)
    if case.saves:
        again = saving.loads(saving.dumps(agent))
        assert saving.dumps(again) == saving.dumps(agent)
        assert run(again, data) == run(agent, data)
    assert agent.clone(seed=1).n_arms == n_arms
    data.play(agent)


def prior_mean_is_where_estimates_begin(case: Case) -> None:
    agent = case.make(18)
    if "prior_mean" not in agent.params():
        return
    dim = agent.dim or D
    mean = np.linspace(-0.4, 0.5, dim)
    towards = type(agent)(**agent.params() | {"prior_mean": mean}, seed=1)
    data = rounds_for(towards, 30, seed=18)
    scores = data.context(0) @ mean
    begun = _estimates(towards, data.context(0))
    if len(begun) == 2:
        linked = (scores, 1.0 / (1.0 + np.exp(-scores)))  # a linear estimate, or a logistic one
        assert any(np.allclose(begun[0], expected, rtol=0.0, atol=1e-12) for expected in linked), begun
    run(towards, data)
    if len(begun) == 2:
        ended = _estimates(towards, data.context(0))[0]
        assert np.abs(ended - begun[0]).max() > 1e-3, "it does not leave the prior mean"
    _expect_refusal(lambda: type(agent)(**agent.params() | {"prior_mean": np.ones(dim + 2)}, seed=1), agent)


def sparse_rows_equal_dense_ones(case: Case) -> None:
    """SciPy CSR rows give the same choices, the same learning and the same play as dense rows."""
    agent = case.make(19)
    twin, played = copy.deepcopy(agent), copy.deepcopy(agent)
    if agent.sees not in ("features", "shared") or not (agent.plain_input or agent.keeps_sparse):
        return
    if find_spec("scipy") is None:  # then nobody has sparse rows
        return
    from scipy.sparse import csr_array

    data = rounds_for(agent, 60, seed=19)
    thin = data.contexts.copy()
    thin[np.random.default_rng(19).random(len(thin)) < 0.4, ..., -1] = 0.0
    thin[np.random.default_rng(20).random(len(thin)) < 0.4, ..., 0] = 0.0
    rows = [csr_array(np.atleast_2d(X)) for X in thin]
    chosen = []
    for t, X in enumerate(rows):
        choice = agent.choose(X)
        assert choice == twin.choose(thin[t])
        np.testing.assert_allclose(agent.probabilities(X), twin.probabilities(thin[t]), atol=case.tolerance)
        data.teach(agent, t, choice, X)
        data.teach(twin, t, choice, thin[t])
        chosen.append(choice.arm)
    assert state(agent) == state(twin), "what is learnt of sparse rows differs"
    assert played.play(rows, data.rewards, data.costs).arms.tolist() == chosen  # type: ignore[arg-type]
    assert list(agent.choose_many(rows)) == list(twin.choose_many(thin))  # type: ignore[arg-type]


def one_row_is_enough(case: Case) -> None:
    """If an agent declares that it learns from the chosen row only, the other rows change nothing."""
    agent = case.make(23)
    if agent.sees != "features":
        assert not learns_one_row(agent), "there are no rows of which one could be enough"
        return
    twin, data = copy.deepcopy(agent), rounds_for(agent, 40, seed=23)
    for t in range(40):
        X, (choice, same) = data.context(t), (agent.choose(data.context(t)), twin.choose(data.context(t)))
        assert choice == same, "what is learnt depends on the rows of other arms: see its attribute one_row"
        if not learns_one_row(agent):
            data.teach(agent, t, choice)
            data.teach(twin, t, choice)
            continue
        alone, first = X[choice.arm : choice.arm + 1].copy(), choice._replace(arm=0)
        assert predicted(agent, X, choice.arm) == predicted(twin, alone, 0), "it predicts from the rows of other arms"
        data.teach(agent, t, choice)
        twin.learn(alone, first, data.rewards[t, choice.arm], None if data.costs is None else data.costs[t, choice.arm])
        if can_revise(agent) and can_revise(twin):
            agent.revise(X, choice, data.rewards[t, choice.arm], 0.5)
            twin.revise(alone, first, data.rewards[t, choice.arm], 0.5)
    assert state(agent) == state(twin), "what is learnt depends on the rows of other arms: see its attribute one_row"


def _expect_refusal(call: Callable[[], object], agent: Agent) -> None:
    before = state(agent)
    try:
        call()
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"{call} was not refused")
    assert len(message) > 15, f"the message says too little: {message}"
    assert state(agent) == before, f"{call} was refused, and changed the agent"


def saved_and_loaded_continues(case: Case) -> None:
    agent = case.make(5)
    data = rounds_for(agent, 120, seed=5)
    run(agent, data, 0, 60)
    if not case.saves:
        try:
            saving.dumps(agent)
        except saving.CannotSave:
            return
        raise AssertionError("saves=False, but saving.dumps did not raise CannotSave")
    pending = agent.choose(data.context(60))
    again = saving.loads(saving.dumps(agent))
    assert saving.dumps(again) == saving.dumps(agent)
    for each in (agent, again):
        data.teach(each, 60, pending)
    assert run(agent, data, 61) == run(again, data, 61)
    assert saving.dumps(again) == saving.dumps(agent)


def clone_forgets(case: Case) -> None:
    agent, fresh = case.make(6), case.make(6)
    data = rounds_for(agent, 60, seed=6)
    before = fresh.probabilities(data.context(0))
    run(agent, data)
    clone = agent.clone(seed=9)
    assert type(clone) is type(agent) and clone.t == 1
    np.testing.assert_allclose(clone.probabilities(data.context(0)), before, atol=case.tolerance)
    other = agent.clone(seed=9)
    assert run(clone, data) == run(other, data)


BAD_ARMS: list[Any] = [-1, 1.5, None, "0", True]
BAD_PROBABILITIES: list[Any] = [0.0, -0.5, 1.5, np.nan, "1"]
BAD_REWARDS: list[Any] = [np.nan, np.inf, -np.inf, None, "1", [1.0, 2.0]]


def bad_input_is_refused_and_changes_nothing(case: Case) -> None:
    agent = case.make(7)
    data = rounds_for(agent, 30, seed=7)
    run(agent, data)
    context = data.context(0)
    choice = agent.choose(context)
    before = state(agent)
    n_arms = arms_of(agent)
    cost = np.zeros(agent.n_costs) if agent.n_costs else None  # so that a missing one is not what is refused
    learn = partial(agent.learn, cost=cost)
    refuse: list[Callable[[], object]] = []
    for bad in bad_contexts(agent):
        refuse += [
            partial(agent.choose, bad),
            partial(agent.probabilities, bad),
            partial(learn, bad, choice, 1.0),
            partial(agent.play, None if bad is None else [bad], np.ones((1, n_arms)), _costs(agent, 1)),
        ]
    bad_choices: list[Any] = [choice._replace(arm=arm) for arm in [*BAD_ARMS, n_arms]]
    bad_choices += [choice._replace(probability=p) for p in BAD_PROBABILITIES]
    refuse += [partial(learn, context, bad, 1.0) for bad in [*bad_choices, None, 1, (1, 0.5)]]
    refuse += [partial(learn, context, choice, reward) for reward in BAD_REWARDS]
    if agent.reward_range == (0.0, 1.0):
        refuse += [partial(learn, context, choice, reward) for reward in (1.01, -0.01)]
    block = data.contexts if data.contexts is None else data.contexts[:2]
    too_many = np.ones((3, n_arms)) if block is not None else np.ones(3)
    for rewards in (np.full((2, n_arms), np.nan), too_many, np.ones((2, n_arms + 1)), "x"):
        refuse.append(partial(agent.play, block, rewards, _costs(agent, 2)))
    for i, call in enumerate(refuse):
        try:
            call()
        except ValueError as error:
            caught = error
        else:
            raise AssertionError(f"bad input {i} was accepted")
        assert len(str(caught)) > 15, f"bad input {i}: the message says too little: {caught}"
        assert state(agent) == before, f"bad input {i} changed the agent"


def _costs(agent: Agent, T: int) -> Floats | None:
    return np.zeros((T, arms_of(agent), agent.n_costs)) if agent.n_costs else None


def bad_contexts(agent: Agent) -> list[Any]:
    sees, n_arms, dim = agent.sees, arms_of(agent), agent.dim or D
    if sees == "nothing":
        return ["context", ["a", "b"], {}]  # numbers are taken, and not used
    if sees == "key":
        return [["unhashable"], {}, float("nan")]
    if sees == "advice":
        uniform = np.full((agent.n_experts or N, n_arms), 1 / n_arms)
        return [None, "advice", uniform[:, :-1], uniform[:-1], 2 * uniform, -uniform, uniform * np.nan, np.ones(n_arms)]
    shape = (n_arms, dim) if sees == "features" else (dim,)
    good = np.ones(shape)
    spoilt = [good.copy() for _ in range(3)]
    for bad, value in zip(spoilt, (np.nan, np.inf, -np.inf), strict=True):
        bad.flat[-1] = value
    wrong_width = [np.ones((*shape[:-1], dim + 1))] if agent.dim is not None else []
    return [
        None,
        "x",
        *spoilt,
        *wrong_width,
        good[None],
        np.ones(shape, complex),
        np.empty((0, dim)),
        [["a"] * dim] * n_arms,
    ]


BAD_COSTS: list[Any] = [np.nan, np.inf, "1", [[1.0]], [None]]


def blocks_that_overflow_change_nothing(case: Case) -> None:
    """Numbers that pass the input checks but overflow when learnt after tiny ones: learnt whole or refused whole."""
    probe = case.make(20)
    if probe.sees not in ("features", "shared"):
        return
    data = rounds_for(probe, 60, seed=20)
    data.contexts[:] *= 1e-12
    data.contexts[45:] = 1e149 * np.sign(data.contexts[45:])
    rewards, now = data.rewards[:, 0], slice(20, 60)
    taught = copy.deepcopy(probe)
    run(taught, data, 0, 20)
    logged = probe.choose_many(data.contexts[:45])
    logged = Choices.of([*logged[20:], *(logged[t]._replace(arm=0) for t in range(15))])
    costs = None if data.costs is None else data.costs[now, 0]
    for call in (
        lambda agent: data.play(agent, 20),
        lambda agent: agent.choose_many(data.contexts[now]),
        lambda agent: agent.learn_many(data.contexts[now], logged, rewards[now], costs),
        lambda agent: agent.learn_many(list(data.contexts[now]), logged, rewards[now], costs),
    ):
        agent = copy.deepcopy(taught)
        before = state(agent)
        try:
            with np.errstate(all="ignore"):
                call(agent)
        except ValueError:
            assert state(agent) == before, "a block that was refused in the middle changed the agent"
        else:
            p = agent.probabilities(data.context(0))
            assert np.isfinite(p).all() and abs(p.sum() - 1.0) < 1e-9, "a block that overflows was learnt"


def costs_are_counted_or_ignored(case: Case) -> None:
    """Every agent validates costs; an agent without costs learns the same with and without them."""
    agent, twin = case.make(12), case.make(12)
    n_costs = agent.n_costs
    data = rounds_for(agent, 30, seed=12)
    costs = rounds(agent.sees, 30, 12, arms_of(agent), agent.dim or D, agent.n_experts or N, n_costs or 2).costs
    assert costs is not None
    choices = run(agent, CheckRounds(data.contexts, data.rewards, costs), 0, 20)
    if not n_costs:
        same = choices == run(twin, data, 0, 20) and agent.choose(data.context(20)) == twin.choose(data.context(20))
        assert same, "n_costs is 0, but a cost changes what is learnt"
    context, choice = data.context(20), agent.choose(data.context(20))
    before = state(agent)
    bad_costs = [*BAD_COSTS, *([None, np.zeros(n_costs + 1)] if n_costs else [])]
    for bad in bad_costs:
        try:
            agent.learn(context, choice, data.rewards[20, choice.arm], cost=bad)
        except ValueError as error:
            caught = error
        else:
            raise AssertionError(f"cost={bad!r} was accepted")
        assert "cost" in str(caught), f"cost={bad!r}: the message does not name it: {caught}"
        assert state(agent) == before, f"cost={bad!r} changed the agent"
    block = None if data.contexts is None else data.contexts[20:]
    played = agent.play(block, data.rewards[20:], costs=costs[20:])
    assert played.costs is not None
    np.testing.assert_array_equal(played.costs, costs[20:][np.arange(10), played.arms])


def inputs_are_neither_kept_nor_modified(case: Case) -> None:
    agent, twin = case.make(8), case.make(8)
    data = rounds_for(agent, 50, seed=8)
    for t in range(50):
        context = copy.deepcopy(data.context(t))
        if isinstance(context, np.ndarray):
            context.flags.writeable = False  # choosing and learning only read
        choice = agent.choose(context)
        data.teach(agent, t, choice, context)
        if isinstance(context, np.ndarray):
            assert np.array_equal(context, data.context(t))
            context.flags.writeable = True
            context[:] = 1 / arms_of(agent)  # the caller may overwrite its array afterwards
    run(twin, data)
    probe = data.context(0)
    np.testing.assert_allclose(agent.probabilities(probe), twin.probabilities(probe), atol=1e-12)


def renaming_arms_renames_probabilities(case: Case) -> None:
    if not case.symmetric:
        return
    a, b = case.make(9), case.make(9)
    data = rounds_for(a, 60, seed=9)
    n_arms = arms_of(a)
    order = np.roll(np.arange(n_arms), 1)  # arm i of b is arm order[i] of a
    place = np.argsort(order)

    def renamed(context: Any) -> Any:
        if a.sees == "features":
            return context[order]
        return context[:, order] if a.sees == "advice" else context

    for t in range(60):  # the same history, told with other names
        context = data.context(t)
        choice = a.choose(context)
        note = choice.note
        if isinstance(note, list) and len(note) == n_arms:
            note = [note[i] for i in order]
        cost = None if data.costs is None else data.costs[t, choice.arm]
        a.learn(context, choice, data.rewards[t, choice.arm], cost)
        b.choose(renamed(context))
        twin = choice._replace(arm=int(place[choice.arm]), note=note)
        b.learn(renamed(context), twin, data.rewards[t, choice.arm], cost)
    probe = data.context(3)
    np.testing.assert_allclose(a.probabilities(probe)[order], b.probabilities(renamed(probe)), atol=case.tolerance)


def delayed_and_shuffled_rewards_are_learnt(case: Case) -> None:
    agent = case.make(10)
    data = rounds_for(agent, 200, seed=10)
    rng = np.random.default_rng(10)
    for start in range(0, 200, 50):
        waiting = [(t, agent.choose(data.context(t))) for t in range(start, start + 50)]
        for i in rng.permutation(50):
            t, choice = waiting[i]
            data.teach(agent, t, choice)
    assert agent.t == 201
    p = agent.probabilities(data.context(0))
    assert np.all(np.isfinite(p)) and abs(p.sum() - 1.0) < 1e-9


def number_of_arms_may_change(case: Case) -> None:
    agent = case.make(11)
    if agent.sees != "features" or agent.n_arms is not None:
        return
    for n_arms in (1, 3, 7, 2, 5):
        data = rounds("features", 10, seed=11, n_arms=n_arms, dim=agent.dim or D, n_costs=agent.n_costs)
        assert agent.probabilities(data.context(0)).shape == (n_arms,)
        run(agent, data)


def beats_uniform_play(case: Case) -> None:
    """Compare the mean reward over five seeds with the mean of all arms: an agent that fails does not learn."""
    gains = []
    for seed in range(5):
        agent = case.make(100 + seed)
        data = rounds_for(agent, case.horizon, seed=100 + seed)
        played = data.play(agent)
        gains.append(played.rewards[case.horizon // 2 :].mean() - data.rewards[case.horizon // 2 :].mean())
    assert np.mean(gains) > case.margin, gains


CHECKS = [
    carries_its_theory,
    valid_probabilities,
    choose_and_probabilities_agree,
    same_seed_same_arms,
    play_equals_the_loop,
    many_at_once_equal_the_loop,
    estimates_have_one_number_per_arm,
    merged_parts_equal_one_pass,
    arms_come_and_go,
    prior_mean_is_where_estimates_begin,
    sparse_rows_equal_dense_ones,
    one_row_is_enough,
    saved_and_loaded_continues,
    clone_forgets,
    bad_input_is_refused_and_changes_nothing,
    blocks_that_overflow_change_nothing,
    costs_are_counted_or_ignored,
    inputs_are_neither_kept_nor_modified,
    renaming_arms_renames_probabilities,
    delayed_and_shuffled_rewards_are_learnt,
    number_of_arms_may_change,
    beats_uniform_play,
]
