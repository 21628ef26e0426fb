"""The contract: an agent chooses an arm and learns from its reward, now or later, in any order."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise import persist
from armwise.arguments import LARGEST, FilePath, as_floats, refuse_masked, short, wanted_numbers
from armwise.arguments import Context as Context
from armwise.arguments import Contexts as Contexts
from armwise.arguments import Sees as Sees
from armwise.arguments import count as count
from armwise.arguments import fraction as fraction
from armwise.arguments import positive as positive
from armwise.numerics.choice import all_within, best_arms, draw, plain, tied_probabilities
from armwise.streams import Seed as Seed
from armwise.streams import stream

Floats = NDArray[np.float64]
UNUSUAL = 1e30  # a block with larger numbers is played with a copy of the agent at hand


class Choice(NamedTuple):
    """One decision: the arm, the probability with which it was drawn, what learning must remember, and what it cost.

    ``probability`` is None where the agent cannot know it; ``note`` is a small JSON-able value; ``cost`` (one number
    per resource, as a tuple) is None until it is known: ``learn(..., cost=...)`` fills it in.

    >>> Choice(arm=2, probability=0.5)
    Choice(arm=2, probability=0.5, note=None)
    >>> Choice(arm=2, probability=0.5, cost=(0.1,))
    Choice(arm=2, probability=0.5, note=None, cost=(0.1,))
    """

    arm: int
    probability: float | None
    note: Any = None
    cost: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f", cost={self.cost!r}"
        return f"Choice(arm={self.arm!r}, probability={self.probability!r}, note={self.note!r}{cost})"


# Calling the class costs twice as much, which shows in a decision of a few microseconds.
make_choice: Callable[[tuple[int, float | None, Any, None]], Choice] = partial(tuple.__new__, Choice)


class Played(NamedTuple):
    """A block of rounds: the arms, their probabilities (NaN where unknown), the rewards they brought and their costs.

    ``costs`` is (T,) or (T, n), as the table of costs was (T, K) or (T, K, n); None without one.

    >>> import armwise as aw
    >>> aw.UCB1(n_arms=2).play(None, np.ones((3, 2))).rewards
    array([1., 1., 1.])
    """

    arms: NDArray[np.int64]
    probabilities: Floats
    rewards: Floats
    costs: Floats | None = None


def joined(parts: Sequence[Played]) -> Played:
    """Blocks that were played one after the other, as one.

    >>> import armwise as aw
    >>> agent = aw.UCB1(n_arms=2)
    >>> joined([agent.play(None, np.ones((2, 2))), agent.play(None, np.zeros((1, 2)))]).rewards
    array([1., 1., 0.])
    """
    if len(parts) == 1:
        return parts[0]
    return Played(*(np.concatenate(column) for column in list(zip(*parts))[:3]))


@dataclass(frozen=True)
class Theory:
    """What is proved about an agent: its row in the survey's table, and its bound as a function.

    ``exponent`` is the power of T in the bound, logarithms apart; ``comparator`` is what regret is measured
    against; ``assumes`` is the world the bound needs; ``erratum`` says where the survey's print differs.
    ``hypotheses(agent, world, T)`` reads an agent's actual parameters and what a world states of itself: the letters
    that fill ``regret_bound``, or in one sentence why the theorem does not apply (see ``armwise.hypotheses``).

    >>> import armwise as aw
    >>> aw.LinUCB.theory.section
    '4.1.1'
    """

    section: str
    regret: str
    comparator: str
    assumes: str
    reference: str
    regret_bound: Callable[..., float] | None = None
    hypotheses: Callable[[Any, Mapping[str, Any], int], dict[str, Any] | str] | None = None
    exponent: float = 0.5
    high_probability: bool = False
    infinite_policies: bool = False
    needs_horizon: bool = False
    adversarial: bool = False
    erratum: str = ""


class Agent(persist.Saved, ABC):
    """A learning algorithm. The public methods check their input once; the private ones are the algorithm.

    A new agent defines ``_probabilities(context)`` (or ``_choose`` too, where drawing from that vector is not
    how it chooses) and ``_learn(context, choice, reward)``; it lists what learning changes in ``_learnt``.
    """

    theory: ClassVar[Theory]
    sees: Sees = "features"
    reward_range: tuple[float, float] = (0.0, 1.0)
    needs_probability: bool = False
    compiled: bool = False  # whether ``play`` runs in compiled code, without the interpreter's lock between its rounds
    plain_input: bool = True  # whether contexts are the arrays of ``sees``: False where an agent reads them its own way
    revises: bool = False  # whether ``revise`` can put another reward in the place of one that was learnt
    choosing_changes: bool = False  # whether ``choose`` moves more than the random stream (EpochGreedy counts rounds)
    dim: int | None = None  # columns of a features row, or length of a shared context; None takes any
    n_arms: int | None = None  # None: as many as the context says
    n_experts: int | None = None
    n_costs: int = 0  # resources that a choice uses up and the agent keeps account of; 0: costs are checked and ignored
    _knows_probability = True  # False where every choice's probability is None: then nobody need work it out
    _n_learnt = 0  # rewards learnt so far
    _rng: np.random.Generator

    def __init__(self, *, seed: Seed = None) -> None:
        self.seed = seed
        self._rng = stream(seed, "agent")

    def _reseed(self, seed: Seed) -> None:
        """Begin another random stream; what was learnt stays. An agent around another passes a stream on to it."""
        self.seed, self._rng = seed, stream(seed, "agent")

    # ------------------------------------------------------------------ the public contract

    def choose(self, context: Context = None) -> Choice:
        """Choose an arm for this context.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2, seed=1).choose(np.eye(2)).probability
        0.5
        """
        return self._choose(self._glance(context))

    def learn(
        self, context: Context, choice: Choice, reward: float, cost: float | Sequence[float] | Floats | None = None
    ) -> None:
        """Learn the reward of a choice: its context, the choice itself, what it brought, and what it cost.

        ``cost`` is a number, or one number per resource. An agent that keeps account of costs (``n_costs`` > 0) needs
        it; any other checks it and ignores it.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.0, seed=1)
        >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 1.0)
        >>> agent.choose(np.eye(2)).arm
        1
        """
        context = self._glance(context)
        self._check_choice(choice, self._count_arms(context))
        if cost is not None or self.n_costs:
            choice = choice._replace(cost=self._read_cost(choice.cost if cost is None else cost))
        self._learn(context, choice, self._read_reward(reward))
        self._n_learnt += 1

    def revise(self, context: Context, choice: Choice, before: float, after: float) -> None:
        """Put the reward ``after`` in the place of ``before``, which was learnt of this choice; if ``revises``.

        What is learnt is as if it had been ``after`` from the beginning, up to rounding.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.0, lam=1.0)
        >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 0.0)
        >>> agent.revise(np.eye(2), Choice(arm=1, probability=0.5), before=0.0, after=1.0)
        >>> agent.probabilities(np.eye(2))
        array([0., 1.])
        """
        if not self.revises:
            raise ValueError(f"{self!r:.200} cannot revise a reward that it has learnt: see its attribute revises")
        context = self._read(context)
        self._check_choice(choice, self._count_arms(context))
        self._revise(context, choice, self._read_reward(before), self._read_reward(after))

    def probabilities(self, context: Context = None) -> Floats:
        """The distribution that ``choose`` draws from; changes nothing, the random stream included.

        >>> import armwise as aw
        >>> aw.Exp3(n_arms=4, gamma=0.1).probabilities()
        array([0.25, 0.25, 0.25, 0.25])
        """
        return self._probabilities(self._read(context))

    def estimate(self, context: Any = None) -> tuple[Floats, Floats | None]:
        """Each arm's estimated reward, and how wide it is (a standard error; None where the agent keeps none).

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.5, lam=1.0, seed=1)
        >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 1.0)
        >>> agent.estimate(np.eye(2))
        (array([0. , 0.5]), array([1.        , 0.70710678]))
        """
        return self._estimates(self._read(context))

    def play(self, contexts: Contexts, rewards: ArrayLike, costs: ArrayLike | None = None) -> Played:
        """Choose and learn over a block of rounds, with the arms that the loop would choose.

        ``contexts`` has one context per row, as the agent sees them (None if it sees nothing); ``rewards`` is
        (T, K), of which one entry per row is read; so are ``costs``, (T, K) or (T, K, n) for n resources.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.5, seed=3)
        >>> agent.play(np.tile(np.eye(2), (50, 1, 1)), np.tile([0.1, 0.9], (50, 1))).rewards[-3:]
        array([0.9, 0.9, 0.9])
        """
        table = as_floats("rewards", rewards)
        if table.ndim != 2 or 0 in table.shape:
            raise ValueError(f"rewards must be a (T, K) array, got shape {table.shape}")
        low, high = max(self.reward_range[0], -LARGEST), min(self.reward_range[1], LARGEST)
        wrong = ~((table >= low) & (table <= high))
        if wrong.any():
            t, arm = np.argwhere(wrong)[0]
            raise ValueError(f"rewards[{t}, {arm}] is {table[t, arm]}; {self._expected_reward()}")
        block = self._read_block(contexts, len(table))
        if len(table) and self._count_arms(block[0] if block is not None else None) != table.shape[1]:
            raise ValueError(
                f"rewards has {table.shape[1]} columns, but the contexts offer "
                f"{self._count_arms(block[0] if block is not None else None)} arms"
            )
        paid = None if costs is None and not self.n_costs else self._read_costs(costs, table.shape)
        before = copy.deepcopy(vars(self)) if _may_overflow(block) or _may_overflow(table) else None
        try:
            played = self._loop(block, table, paid) if self.n_costs else self._play(block, table)
        except ValueError:
            if before is not None:  # a block that overflows in the middle leaves the agent as it was
                vars(self).clear()
                vars(self).update(before)
            raise
        return played if paid is None else played._replace(costs=paid[np.arange(len(table)), played.arms])

    def clone(self, seed: Seed = None) -> Self:
        """An agent with the same parameters that has learnt nothing.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=3, lam=2.0).clone(seed=8).lam
        2.0
        """
        params = {
            name: value.clone(seed) if isinstance(value, Agent) else value for name, value in self.params().items()
        }
        return type(self)(**params, seed=seed)

    def save(self, path: FilePath) -> None:
        """Write the agent to a file that ``armwise.load`` reads; see ``persist`` for the format.

        >>> import armwise as aw, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "model.aw")
        >>> aw.UCB1(n_arms=2).save(path)
        >>> aw.load(path).n_arms
        2
        """
        persist.save(self, path)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self.params().items())
        return f"{type(self).__name__}({shown})"

    # ------------------------------------------------------------------ what an algorithm defines

    @abstractmethod
    def _probabilities(self, context: Any) -> Floats:
        """The distribution over this context's arms; must not change the agent."""

    @abstractmethod
    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        """Learn one checked reward; ``_n_learnt`` counts the rewards before this one.

        ``choice.cost`` is what it cost, one number per resource, wherever ``n_costs`` is not 0.
        """

    def _revise(self, context: Any, choice: Choice, before: float, after: float) -> None:
        """Replace a reward that was learnt; all of it is checked."""
        raise NotImplementedError

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        """What ``estimate`` answers, for an agent that estimates every arm's reward."""
        raise ValueError(f"{type(self).__name__} has no estimate to give: it weighs arms without estimating rewards")

    def _choose(self, context: Any) -> Choice:
        p = self._probabilities(context)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]))

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        return self._loop(contexts, rewards, None)

    def _loop(self, contexts: Any, rewards: Floats, costs: Floats | None) -> Played:
        """A block, round by round; ``costs`` where the agent keeps account of them."""
        T = len(rewards)
        arms, probabilities, got = np.empty(T, np.int64), np.full(T, np.nan), np.empty(T)
        for t in range(T):
            context = None if contexts is None else contexts[t]
            choice = self._choose(context)
            arms[t] = choice.arm
            if choice.probability is not None:
                probabilities[t] = choice.probability
            got[t] = rewards[t, choice.arm]
            if costs is not None:
                choice = choice._replace(cost=tuple(np.atleast_1d(costs[t, choice.arm]).tolist()))
            self._learn(context, choice, float(got[t]))
            self._n_learnt += 1
        return Played(arms, probabilities, got)

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"_rng": self._rng, "_n_learnt": self._n_learnt}

    @property
    def t(self) -> int:
        """The round in every schedule: one more than the rewards learnt.

        >>> import armwise as aw
        >>> aw.UCB1(n_arms=2).t
        1
        """
        return self._n_learnt + 1

    # ------------------------------------------------------------------ input, checked once

    def _read(self, context: Any) -> Any:
        """The context as the algorithm wants it, or a ValueError that says what is wrong with it."""
        return _READERS[self.sees](self, context)

    def _glance(self, context: Any) -> Any:
        """``_read`` for choose and learn; an agent whose compiled step refuses NaN itself may look less closely."""
        return self._read(context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        if self.sees == "nothing":
            if contexts is not None:
                raise ValueError(f"contexts must be None: {type(self).__name__} sees nothing, got {short(contexts)}")
            return None
        if not hasattr(contexts, "__len__") or len(contexts) != T:
            came = f"{len(contexts)} rows" if hasattr(contexts, "__len__") else short(contexts)
            raise ValueError(f"contexts must have one row for each of the {T} rows of rewards, got {came}")
        if self.sees == "key":
            return [self._read(key) for key in contexts]
        block = as_floats("contexts", contexts)
        ndim = 2 if self.sees == "shared" else 3
        if block.ndim != ndim:
            raise ValueError(f"contexts must have {ndim} dimensions, got shape {block.shape}")
        if T:
            try:
                self._read(block[0])  # the shape of every row is the shape of the first
            except ValueError as error:
                raise ValueError(f"contexts, row 0: {error}") from None
        if not all_within(block):
            raise ValueError(f"contexts must be {wanted_numbers(block)}")
        if self.sees == "advice":
            for t in range(T):
                _read_advice(self, block[t])
        return block

    def _count_arms(self, context: Any) -> int:
        if self.n_arms is not None:
            return self.n_arms
        return len(context) if self.sees != "advice" else int(context.shape[1])

    def _read_reward(self, reward: Any) -> float:
        if type(reward) is float:
            value = reward
        else:
            refuse_masked("reward", reward)
            try:
                value = float("" if isinstance(reward, (str, bytes)) else reward)
            except (TypeError, ValueError):
                raise ValueError(f"reward must be a number, got {short(reward)}") from None
        low, high = self.reward_range
        if not (low <= value <= high and -LARGEST <= value <= LARGEST):  # False for NaN
            raise ValueError(f"reward is {value}; {self._expected_reward()}")
        return value

    def _expected_reward(self) -> str:
        low, high = self.reward_range
        if low == -np.inf and high == np.inf:
            return f"{type(self).__name__} expects a finite number of at most {LARGEST:g} in size"
        return f"{type(self).__name__} expects a number in [{low:g}, {high:g}]: rescale the rewards first"

    def _read_cost(self, cost: Any) -> tuple[float, ...]:
        """One number per resource, or a ValueError that says what is wrong with them."""
        if type(cost) is float:
            values = (cost,)
        elif cost is None:
            raise ValueError(f"cost is missing, and {type(self).__name__} counts it: learn(..., cost=...)")
        else:
            vector = as_floats("cost", cost)
            if vector.ndim > 1:
                raise ValueError(f"cost must be a number, or one number per resource, got shape {vector.shape}")
            values = tuple(np.atleast_1d(vector).tolist())
        if self.n_costs and len(values) != self.n_costs:
            raise ValueError(f"cost must have {self.n_costs} numbers, one per resource, got {len(values)}")
        if not all(-LARGEST <= value <= LARGEST for value in values):  # False for NaN
            raise ValueError(f"cost must be finite numbers of at most {LARGEST:g} in size, got {short(cost)}")
        return values

    def _read_costs(self, costs: Any, shape: tuple[int, ...]) -> Floats:
        """The table of a block's costs, checked."""
        if costs is None:
            raise ValueError(f"costs are missing, and {type(self).__name__} counts them: play(..., costs=...)")
        table = as_floats("costs", costs)
        if table.shape[:2] != shape or table.ndim not in (2, 3) or (table.ndim == 3 and table.shape[2] == 0):
            raise ValueError(f"costs must be a (T, K) or (T, K, n) array with T, K = {shape}, got shape {table.shape}")
        if self.n_costs and (table.shape[2] if table.ndim == 3 else 1) != self.n_costs:
            raise ValueError(f"costs must hold {self.n_costs} numbers per round and arm, got shape {table.shape}")
        if not all_within(table):
            raise ValueError(f"costs must be {wanted_numbers(table)}")
        return table

    def _check_choice(self, choice: Any, n_arms: int) -> None:
        if type(choice) is Choice:  # as choose makes them: one look is enough
            arm, p = choice.arm, choice.probability
            if type(arm) is int and 0 <= arm < n_arms and type(p) is float and 0.0 < p <= 1.0:
                return
        if not isinstance(choice, Choice):
            raise ValueError(f"choice must be the Choice that choose returned, got {short(choice)}")
        arm, p = choice.arm, choice.probability
        if type(arm) is not int and (isinstance(arm, bool) or not isinstance(arm, (int, np.integer))):
            raise ValueError(f"choice.arm must be an integer, got {short(arm)}")
        if not 0 <= arm < n_arms:
            raise ValueError(f"choice.arm is {arm}, but this round has arms 0 to {n_arms - 1}")
        if p is None:
            if self.needs_probability:
                raise ValueError(
                    f"choice.probability is None, but {type(self).__name__} learns with it: expected (0, 1]"
                )
        elif not (isinstance(p, (float, int, np.floating)) and 0.0 < p <= 1.0 + 1e-9):
            raise ValueError(f"choice.probability must lie in (0, 1], got {short(p)}")


class IndexAgent(Agent):
    """An agent that plays the largest score; ties (within 1e-12) are broken uniformly at random."""

    @abstractmethod
    def _scores(self, context: Any) -> Floats:
        """One score per arm; must not change the agent."""

    def _choose(self, context: Any) -> Choice:
        arms = best_arms(self._scores(context))
        if arms.size == 1:
            return Choice(int(arms[0]), 1.0)
        return Choice(int(arms[int(self._rng.random() * arms.size)]), 1.0 / arms.size)

    def _probabilities(self, context: Any) -> Floats:
        return tied_probabilities(self._scores(context))


def _may_overflow(block: Any) -> bool:
    """Whether numbers are so large that sums of their squares, over a small ridge, may be beyond all numbers."""
    return isinstance(block, np.ndarray) and block.size > 0 and bool(block.max() > UNUSUAL or block.min() < -UNUSUAL)


def _shown(value: Any) -> str:
    """A parameter's value as an agent shows it: an agent inside whole, anything else at most 60 characters."""
    text = repr(value)
    return text if isinstance(value, Agent) or len(text) <= 60 else f"{text[:57]}..."


def _read_nothing(agent: Agent, context: Any) -> None:
    if context is not None:
        raise ValueError(f"context must be None: {type(agent).__name__} sees nothing, got {short(context)}")


def _read_features(agent: Agent, context: Any) -> Floats:
    X = as_floats("X", context)
    if X.ndim != 2 or X.shape[0] == 0 or (X.shape[1] != agent.dim and agent.dim is not None):
        wanted = "d" if agent.dim is None else agent.dim
        raise ValueError(f"X must have shape (K, {wanted}), one row for each of K >= 1 arms, got shape {X.shape}")
    if not all_within(X):
        raise ValueError(f"X must be {wanted_numbers(X)}")
    if agent.n_arms is not None and agent.n_arms != X.shape[0]:
        raise ValueError(f"X must have {agent.n_arms} rows, one for each arm, got shape {X.shape}")
    return X


def _read_shared(agent: Agent, context: Any) -> Floats:
    x = as_floats("context", context)
    if x.ndim != 1 or (x.shape[0] != agent.dim and agent.dim is not None):
        wanted = "d" if agent.dim is None else agent.dim
        raise ValueError(f"context must have shape ({wanted},), got shape {x.shape}")
    if not all_within(x):
        raise ValueError(f"context must be {wanted_numbers(x)}")
    return x


def _read_key(agent: Agent, context: Any) -> Hashable:
    try:
        hash(context)
    except TypeError:
        raise ValueError(f"context must be hashable (a string, a number, a tuple), got {short(context)}") from None
    if isinstance(context, float) and context != context:
        raise ValueError("context must not be NaN: it never equals itself, so nothing could be learnt for it")
    return context  # type: ignore[no-any-return]


def _read_advice(agent: Agent, context: Any) -> Floats:
    advice = as_floats("advice", context)
    if advice.ndim != 2 or advice.shape != (agent.n_experts or advice.shape[0], agent.n_arms or advice.shape[1]):
        raise ValueError(
            f"advice must have shape ({agent.n_experts}, {agent.n_arms}), one distribution over the arms for "
            f"each expert, got shape {advice.shape}"
        )
    totals = advice.sum(axis=1)
    if not (np.all(advice >= 0.0) and np.all(np.abs(totals - 1.0) <= 1e-9)):  # False for NaN
        row = int(np.argmax(~((advice >= 0.0).all(axis=1) & (np.abs(totals - 1.0) <= 1e-9))))
        raise ValueError(
            f"advice row {row} must be a distribution: non-negative and summing to 1, got {advice[row]} "
            f"(sum {totals[row]})"
        )
    return advice


def glance(agent: Agent, context: Any) -> Floats:
    """Check type and shape of features or a shared context; its numbers are left to the compiled step.

    >>> import armwise as aw
    >>> glance(aw.LinUCB(dim=2), [[1, 2]])
    array([[1., 2.]])
    """
    ndim = 2 if agent.sees == "features" else 1
    if context is not None and plain(context, ndim, agent.dim):  # type: ignore[arg-type]
        return context  # type: ignore[no-any-return]
    return agent._read(context)  # type: ignore[no-any-return]


_READERS: dict[Sees, Callable[[Agent, Any], Any]] = {
    "nothing": _read_nothing,
    "features": _read_features,
    "shared": _read_shared,
    "key": _read_key,
    "advice": _read_advice,
}

SavedT = TypeVar("SavedT", bound=persist.Saved)


@overload
def load(path: FilePath) -> Agent: ...
@overload
def load(path: FilePath, kind: type[SavedT]) -> SavedT: ...
def load(path: FilePath, kind: type[Any] | None = None) -> Any:
    """What ``agent.save(path)`` wrote, ready to continue exactly where it stopped.

    ``kind`` is the class that the file should hold (``load(path, LinUCB)``): any other is refused, and a type checker
    knows what comes. Without it the checker takes an agent, which is what files hold most often.

    >>> load("/no/such/file.aw")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file.aw'
    """
    value = persist.load(path)
    if kind is not None and not isinstance(value, kind):
        raise persist.LoadError(f"{path}: holds a {type(value).__name__}, expected a {kind.__name__}")
    return value
