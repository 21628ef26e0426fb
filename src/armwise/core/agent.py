"""The contract: an agent chooses an arm and learns from its reward, now or later, in any order."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import inputs, saving
from armwise.core.arguments import LARGEST, FilePath, as_floats, refuse_masked, short, wanted_numbers
from armwise.core.arguments import Context as Context
from armwise.core.arguments import Contexts as Contexts
from armwise.core.arguments import Sees as Sees
from armwise.core.arguments import count as count
from armwise.core.arguments import fraction as fraction
from armwise.core.arguments import positive as positive
from armwise.core.choices import Choice as Choice
from armwise.core.choices import Choices as Choices
from armwise.core.choices import Floats as Floats
from armwise.core.choices import Played as Played
from armwise.core.choices import joined as joined
from armwise.core.choices import make_choice as make_choice
from armwise.core.inputs import glance as glance
from armwise.core.seeds import Seed as Seed
from armwise.core.seeds import stream
from armwise.native.choice import all_within, best_arms, draw, tied_probabilities

UNUSUAL = 1e30  # a block with larger numbers is played with a copy of the agent at hand


@dataclass(frozen=True)
class Theory:
    """What is proved about an agent: its row in the survey's table, and its bound as a function.

    ``exponent`` is the power of T in the bound, logarithms apart; ``comparator`` is what regret is measured
    against; ``assumes`` is the world the bound needs; ``erratum`` says where the survey's print differs.
    ``hypotheses(agent, world, T)`` reads an agent's actual parameters and what a world states of itself: the letters
    that fill ``regret_bound``, or in one sentence why the theorem does not apply (see ``armwise.theory.hypotheses``).

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


class Agent(saving.Saved, ABC):
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
    fades: bool = False  # whether what was learnt can be made to count less, all of it at once (``_fade``)
    merges: bool = False  # whether ``merge`` works: what is learnt is a sum over the rewards
    per_arm: bool = False  # whether each arm has a model of its own, so that ``add_arm`` and ``remove_arm`` work
    keeps_sparse: bool = False  # whether the algorithm reads CSR rows itself; otherwise they are made dense for it
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

    @property
    def one_row(self) -> bool:
        """Whether all that it learns, revises or predicts of a choice now is read from that arm's row of the features,
        to the bit: then the others need not be made again for it.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2, lam=1.0).one_row, aw.UCB1(n_arms=2).one_row
        (True, False)
        """
        return False

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

    def choose_many(self, contexts: Contexts = None, *, n: int | None = None) -> Choices:
        """Choose for many contexts, without learning in between: the choices that ``choose`` would make, one by one.

        ``contexts`` as in ``play``, or a list of contexts whose numbers of arms differ; an agent that sees nothing
        takes ``n``, how many to choose. Rewards may come later and in any order: see ``learn_many``.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.5, seed=3)
        >>> choices = agent.choose_many(np.tile(np.eye(2), (4, 1, 1)))
        >>> choices.arms.shape, choices[0].probability
        ((4,), 0.5)
        """
        if self.sees == "nothing":
            if n is None:
                raise ValueError(f"n must say how many to choose: {type(self).__name__} sees no contexts to count")
            rows = count("n", n, least=0)
        elif isinstance(contexts, str) or not isinstance(contexts, Sized):
            raise ValueError(f"contexts must be a list or an array, one context per row, got {short(contexts)}")
        else:
            rows = len(contexts)
            if n is not None and n != rows:
                raise ValueError(f"n is {n!r:.80}, but contexts has {rows} rows: leave n out")
        read = inputs.read_each(self, contexts, rows) if rows else None
        with self._all_or_nothing(read):
            return self._choose_many(read, rows)

    def learn_many(
        self, contexts: Contexts, choices: Sequence[Choice], rewards: ArrayLike, costs: ArrayLike | None = None
    ) -> None:
        """Learn the rewards of many choices, in this order: the state that ``learn`` would reach, to the bit.

        ``costs`` has a number per choice, or a row with one per resource. Everything is checked before anything is
        learnt. The rows may be those of one ``choose_many``, of several, or
        of decisions whose rewards came late.

        >>> import armwise as aw
        >>> agent, X = aw.LinUCB(dim=2, alpha=0.0, lam=1.0, seed=3), np.tile(np.eye(2), (4, 1, 1))
        >>> agent.learn_many(X, aw.Choices(arms=[0, 1, 0, 1]), [0.0, 1.0, 0.0, 1.0])
        >>> agent.estimate(X[0])[0].round(3)
        array([0.   , 0.667])
        """
        values = self._read_rewards(rewards)
        if not isinstance(choices, Sequence) or len(choices) != len(values):
            came = f"{len(choices)}" if isinstance(choices, Sequence) else short(choices)
            raise ValueError(f"choices must be a Choice for each of the {len(values)} rewards, got {came}")
        read = inputs.read_each(self, contexts, len(values)) if len(values) else None
        checked = self._check_choices(choices, read)
        if costs is not None or self.n_costs:
            checked = checked.with_costs(self._read_many_costs(checked.costs if costs is None else costs, len(values)))
        if len(values):
            with self._all_or_nothing(read, values):
                self._learn_many(read, checked, values)

    def merge(self, other: Self) -> Self:
        """Add what ``other`` has learnt to what this agent has, if ``merges``: as if one had learnt all of it.

        Both are made with the same settings; the prior counts once. Parts of a log can so be learnt side by side and
        joined (see ``armwise.fit_log``). ``other`` stays as it is; this agent is returned.

        >>> import armwise as aw
        >>> half, rest = aw.UCB1(n_arms=2), aw.UCB1(n_arms=2)
        >>> half.learn(None, Choice(0, 1.0), 1.0)
        >>> rest.learn(None, Choice(0, 1.0), 0.0)
        >>> half.merge(rest).estimate()[0]
        array([0.5, 0. ])
        """
        if not self.merges:
            raise ValueError(f"{self!r:.200} cannot be merged: {self._why_not_merged()}")
        if type(other) is not type(self):
            raise ValueError(f"other must be a {type(self).__name__}, as this agent is, got {short(other)}")
        if differences := saving.differences(self.params(), other.params()):
            raise ValueError(f"other must be made as this agent is, but differs: {'; '.join(differences)}")
        if other.dim is not None or self.dim is None:  # without a dim it has seen nothing yet
            if self.dim is None and other.dim is not None:
                self._take_dim(other.dim)
            self._merge(other)
            self._n_learnt += other._n_learnt
        return self

    def add_arm(self) -> int:
        """One more arm, of which nothing is known, if ``per_arm``; its number, which is the largest, is returned.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=3, n_arms=2)
        >>> agent.add_arm(), agent.n_arms
        (2, 3)
        """
        self._expect_per_arm()
        self._add_arm()
        self.n_arms = self._count() + 1
        return self.n_arms - 1

    def remove_arm(self, arm: int) -> None:
        """Forget an arm, if ``per_arm``; the arms after it move down by one, as in a list.

        A choice made before is learnt with its number of now: learn what is due, or renumber it, first.

        >>> import armwise as aw
        >>> agent = aw.UCB1(n_arms=3)
        >>> agent.learn(None, Choice(2, 1.0), 1.0)
        >>> agent.remove_arm(0)
        >>> agent.n_arms, agent.estimate()[0]
        (2, array([0., 1.]))
        """
        self._expect_per_arm()
        if isinstance(arm, bool) or not isinstance(arm, (int, np.integer)) or not 0 <= arm < self._count():
            raise ValueError(f"arm must be one of 0 to {self._count() - 1}, got {short(arm)}")
        if self._count() == 1:
            raise ValueError("arm 0 is the only one: an agent needs at least one arm")
        self._remove_arm(int(arm))
        self.n_arms = self._count() - 1

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
        with self._all_or_nothing(block, table):
            played = self._play_block(block, table, paid)
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
        saving.save(self, path)

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

    def _fade(self, keep: float) -> None:
        """Let what was learnt so far count ``keep`` times as much as before; if ``fades``."""
        raise NotImplementedError

    def _predicted(self, context: Any, arm: int) -> float | None:
        """The reward that the agent expects of one arm, where it can say so at little cost."""
        return None

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        """What ``estimate`` answers, for an agent that estimates every arm's reward."""
        raise ValueError(f"{type(self).__name__} has no estimate to give: it weighs arms without estimating rewards")

    def _choose(self, context: Any) -> Choice:
        p = self._probabilities(context)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]))

    def _play_block(self, block: Any, rewards: Floats, costs: Floats | None) -> Played:
        if isinstance(block, inputs.MixedBlock):
            parts = [(rows, rewards[part], None if costs is None else costs[part]) for part, rows in block.pieces()]
            return joined([self._play_block(*part) for part in parts])
        return self._loop(block, rewards, costs) if self.n_costs else self._play(block, rewards)

    def _chose(self, context: Any, choice: Choice) -> None:
        """Count a choice that a copy of this agent made, where ``choosing_changes``: as ``choose`` would have."""
        self.choose(context)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        return self._loop(contexts, rewards, None)

    def _loop(self, contexts: Any, rewards: Floats, costs: Floats | None) -> Played:
        """A block, round by round; ``costs`` where the agent keeps account of them."""
        T = len(rewards)
        arms, probabilities, got = np.empty(T, np.int64), np.full(T, np.nan), np.empty(T)
        paid = None if costs is None else costs.reshape(*rewards.shape, -1)
        for t in range(T):
            context = None if contexts is None else contexts[t]
            choice = self._choose(context)
            arms[t] = arm = choice.arm
            if choice.probability is not None:
                probabilities[t] = choice.probability
            got[t] = reward = rewards.item(t, arm)
            if paid is not None:
                choice = choice._replace(cost=tuple(paid[t, arm].tolist()))
            self._learn(context, choice, reward)
            self._n_learnt += 1
        return Played(arms, probabilities, got)

    def _choose_many(self, contexts: Any, n: int) -> Choices:
        """Choices for ``n`` checked contexts: an array, a list, or None where the agent sees nothing."""
        return Choices.of(self._choose(None if contexts is None else contexts[t]) for t in range(n))

    def _learn_many(self, contexts: Any, choices: Choices, rewards: Floats) -> None:
        """Learn checked rewards in order, and count them."""
        for t, (choice, reward) in enumerate(zip(choices, rewards.tolist())):
            try:
                self._learn(None if contexts is None else contexts[t], choice, reward)
            except ValueError as error:  # what only learning itself can see
                error.add_note(f"row {t} was refused")
                raise
            self._n_learnt += 1

    @contextmanager
    def _all_or_nothing(self, *numbers: Any) -> Iterator[None]:
        """A block that overflows in the middle leaves the agent as it was: a copy is at hand where numbers are huge."""
        before, learnt = copy.deepcopy(vars(self)) if any(map(_may_overflow, numbers)) else None, self._n_learnt
        try:
            yield
        except ValueError as error:
            if before is not None:
                vars(self).clear()
                vars(self).update(before)
            elif self._n_learnt > learnt:
                error.add_note(f"the first {self._n_learnt - learnt} rows of the block are learnt")
            raise

    def _merge(self, other: Self) -> None:
        """Add what ``other``, made with the same settings, has learnt."""
        raise NotImplementedError

    def _why_not_merged(self) -> str:
        return "what it learns is not a sum over the rewards, so that two agents cannot be added"

    def _renew(self) -> None:
        """Bring estimates up to date that learning renews only now and then, as merging does."""

    def _add_arm(self) -> None:
        """A model for arm ``n_arms``."""
        raise NotImplementedError

    def _remove_arm(self, arm: int) -> None:
        """Drop the model of an arm."""
        raise NotImplementedError

    def _expect_per_arm(self) -> None:
        if not self.per_arm:
            raise ValueError(
                f"{self!r:.200} has no model per arm to add or remove"
                + ("" if self.n_arms is not None else ": the number of arms may change with every context")
            )

    def _count(self) -> int:
        assert self.n_arms is not None
        return self.n_arms

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
        return inputs.read(self, context)

    def _glance(self, context: Any) -> Any:
        """``_read`` for choose and learn; an agent whose compiled step refuses NaN itself may look less closely."""
        return self._read(context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        """``T`` contexts for ``play``, all checked."""
        return inputs.read_block(self, contexts, T)

    def _take_dim(self, dim: int) -> None:
        """The first context came to an agent made without ``dim``; one that takes any number of columns keeps none."""

    def _count_arms(self, context: Any) -> int:
        if self.n_arms is not None:
            return self.n_arms
        return int(context.shape[0 if self.sees != "advice" else 1])

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

    def _read_rewards(self, rewards: Any) -> Floats:
        values = as_floats("rewards", rewards)
        if values.ndim != 1:
            raise ValueError(f"rewards must be one number per choice, got shape {values.shape}")
        low, high = max(self.reward_range[0], -LARGEST), min(self.reward_range[1], LARGEST)
        wrong = ~((values >= low) & (values <= high))
        if wrong.any():
            t = int(wrong.argmax())
            raise ValueError(f"rewards[{t}] is {values[t]}; {self._expected_reward()}")
        return values

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

    def _read_many_costs(self, costs: Any, n: int) -> Floats:
        """One row of costs per choice, checked."""
        if costs is None or not hasattr(costs, "__len__") or len(costs) != n:
            came = short(costs) if not hasattr(costs, "__len__") else f"{len(costs)} rows"
            raise ValueError(f"costs must have a number, or a row of numbers, for each of the {n} rewards, got {came}")
        rows = []
        for t, cost in enumerate(costs):
            try:
                rows.append(self._read_cost(cost))
            except ValueError as error:
                raise ValueError(f"costs, row {t}: {error}") from None
        return np.array(rows).reshape(n, -1)

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

    def _check_choices(self, choices: Sequence[Choice], contexts: Any) -> Choices:
        """The choices of checked contexts, each of them checked, as columns."""
        varied = isinstance(contexts, list) and self.n_arms is None
        n_arms = 0 if varied or not len(choices) else self._count_arms(contexts if contexts is None else contexts[0])
        if isinstance(choices, Choices) and not varied and type(self)._check_choice is Agent._check_choice:
            p = choices.probabilities
            unknown = np.isnan(p)
            fine = (choices.arms >= 0) & (choices.arms < n_arms) & (unknown | ((p > 0.0) & (p <= 1.0 + 1e-9)))
            if fine.all() and not (self.needs_probability and unknown.any()):
                return choices
        for t, choice in enumerate(choices):
            try:
                self._check_choice(choice, self._count_arms(contexts[t]) if varied else n_arms)
            except ValueError as error:
                raise ValueError(f"choices, row {t}: {error}") from None
        return choices if isinstance(choices, Choices) else Choices.of(choices)


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
    if isinstance(block, np.ndarray):
        return block.dtype.kind == "f" and block.size > 0 and bool(block.max() > UNUSUAL or block.min() < -UNUSUAL)
    if inputs.is_sparse(block):
        return _may_overflow(block.data)
    parts = getattr(block, "contexts", block)  # rows in a form of their own (MixedBlock, SparseBlock)
    return isinstance(parts, (list, tuple)) and any(map(_may_overflow, parts))


def _shown(value: Any) -> str:
    """A parameter's value as an agent shows it: an agent inside whole, anything else at most 60 characters."""
    text = repr(value)
    return text if isinstance(value, Agent) or len(text) <= 60 else f"{text[:57]}..."


SavedT = TypeVar("SavedT", bound=saving.Saved)


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
    value = saving.load(path)
    if kind is not None and not isinstance(value, kind):
        raise saving.LoadError(f"{path}: holds a {type(value).__name__}, expected a {kind.__name__}")
    return value
