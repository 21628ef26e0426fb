"""The contract: an agent chooses an arm and learns from its reward, now or later, in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from armwise.core import inputs, outcomes, policy_document, rounds, saving
from armwise.core.arguments import Context as Context
from armwise.core.arguments import Contexts as Contexts
from armwise.core.arguments import FilePath, short
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
from armwise.core.outcomes import check_choice, read_reward
from armwise.core.seeds import Seed as Seed
from armwise.core.seeds import stream
from armwise.native.choice import best_arms, draw, tied_probabilities


@dataclass(frozen=True)
class Theory:
    """Theory of an agent: its row in the survey's table, and its bound as a function.

    ``exponent`` is the power of T in the bound, logarithms apart; ``comparator`` is what regret is measured
    against; ``assumes`` is the world the bound needs; ``erratum`` says where the survey's print differs.
    ``hypotheses(agent, world, T)`` reads an agent's actual parameters and what a world states of itself: the letters
    that fill ``regret_bound``, or in one sentence why the theorem does not apply (see ``armwise.theory.hypotheses``).
    ``survey_row`` is its row in the survey's Table 2. ``call`` makes such an agent for T rounds, K arms, d features, N
    policies, noise R and norm S, in braces ("aw.UCB1(n_arms={K})"): tables, advice and benchmarks are built from it;
    ``call_if_linear`` takes its place where rewards are known to be linear.

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
    survey_row: str = ""
    call: str = ""
    call_if_linear: str = ""


class NoEstimate(ValueError):
    """The agent does not estimate the rewards of arms."""


class Agent(saving.Saved, ABC):
    """A learning algorithm. The public methods check their input once; the private ones are the algorithm.

    A new agent says how it sees a round (``sees``), defines ``_probabilities(context)`` (or ``_scores``, as an
    ``IndexAgent``; or ``_choose`` too, where it does not draw from that vector) and ``_learn(context, choice,
    reward)``, lists what learning changes in ``_learnt``, and has its row of ``theory``. What only some agents can do
    is a mixin of ``armwise.core.capabilities``; what is faster for many rounds at once goes through ``batches``.
    """

    theory: ClassVar[Theory]
    batches: ClassVar[rounds.Batches[Any] | None] = None  # many rounds at once, faster than the loop
    sees: Sees = "features"
    plain_input: bool = True  # whether contexts are the arrays of ``sees``: False where an agent reads them its own way
    keeps_sparse: bool = False  # whether the algorithm reads CSR rows itself; otherwise they are made dense for it
    dim: int | None = None  # columns of a features row, or length of a shared context; None takes any
    n_arms: int | None = None  # None: as many as the context says
    n_experts: int | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    needs_probability: bool = False
    n_costs: int = 0  # resources that a choice uses up and the agent keeps account of; 0: costs are checked and ignored
    negative_costs: bool = True  # whether a cost may be below zero
    _knows_probability = True  # False where every choice's probability is None: then nobody need work it out
    not_exported: ClassVar[tuple[str, str]] = ("its choice is no formula over linear estimates", "LinUCB or SquareCB")
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
    def compiled(self) -> bool:
        """Whether ``play`` runs in compiled code, and holds no GIL between its rounds.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2).compiled, aw.LinUCB(dim=2, window=100).compiled
        (True, False)
        """
        return self.batches is not None and self.batches.compiled(self)

    def choose(self, context: Context = None) -> Choice:
        """Choose an arm for this context.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=2, seed=1).choose(np.eye(2)).probability
        0.5
        """
        return self._choose(self._read(context))

    def learn(
        self, context: Context, choice: Choice, reward: float, cost: float | Sequence[float] | Floats | None = None
    ) -> None:
        """Learn the reward of a choice: its context, the choice itself, the reward, and the cost.

        ``cost`` is a number, or one number per resource. An agent that keeps account of costs (``n_costs`` > 0) needs
        it; any other checks it and ignores it.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.0, seed=1)
        >>> agent.learn(np.eye(2), Choice(arm=1, probability=0.5), 1.0)
        >>> agent.choose(np.eye(2)).arm
        1
        """
        context = self._read(context)
        check_choice(self, choice, self._count_arms(context))
        if cost is not None or self.n_costs:
            choice = choice._replace(cost=outcomes.read_cost(self, choice.cost if cost is None else cost))
        self._learn(context, choice, read_reward(self, reward))
        self._n_learnt += 1

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
        if self.sees == "nothing" and contexts is None:
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
        with rounds.all_or_nothing(self, read):
            return rounds.choose(self, read, rows)

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
        values = outcomes.read_rewards(self, rewards)
        if not isinstance(choices, Sequence) or len(choices) != len(values):
            came = f"{len(choices)}" if isinstance(choices, Sequence) else short(choices)
            raise ValueError(f"choices must be a Choice for each of the {len(values)} rewards, got {came}")
        read = inputs.read_each(self, contexts, len(values)) if len(values) else None
        checked = outcomes.check_choices(self, choices, read)
        if costs is not None or self.n_costs:
            given = checked.costs if costs is None else costs
            checked = checked.with_costs(outcomes.read_costs(self, given, len(values)))
        if len(values):
            with rounds.all_or_nothing(self, read, values):
                rounds.learn(self, read, checked, values)

    def play(self, contexts: Contexts, rewards: ArrayLike, costs: ArrayLike | None = None) -> Played:
        """Choose and learn over a block of rounds, with the arms that the loop would choose.

        ``contexts`` has one context per row, as the agent sees them (an agent that sees nothing takes None, or numbers
        that it ignores); ``rewards`` is (T, K), of which one entry per row is read; so are ``costs``, (T, K) or
        (T, K, n) for n resources.

        >>> import armwise as aw
        >>> agent = aw.LinUCB(dim=2, alpha=0.5, seed=3)
        >>> agent.play(np.tile(np.eye(2), (50, 1, 1)), np.tile([0.1, 0.9], (50, 1))).rewards[-3:]
        array([0.9, 0.9, 0.9])
        """
        table = outcomes.read_reward_table(self, rewards)
        block = self._read_block(contexts, len(table))
        n_arms = self._count_arms(rounds.row(block, 0))
        if n_arms != table.shape[1]:
            raise ValueError(f"rewards has {table.shape[1]} columns, but the contexts offer {n_arms} arms")
        paid = None if costs is None and not self.n_costs else outcomes.read_cost_table(self, costs, table.shape)
        with rounds.all_or_nothing(self, block, table):
            played = rounds.play(self, block, table, paid)
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
        """Write the agent to a file that ``armwise.load`` reads, in the format of ``armwise.core.saving``.

        >>> import armwise as aw, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "model.aw")
        >>> aw.UCB1(n_arms=2).save(path)
        >>> aw.load(path).n_arms
        2
        """
        saving.save(self, path)

    def export(
        self, path: FilePath, *, columns: Sequence[str] | None = None, arms: Sequence[str] | None = None
    ) -> policy_document.Policy:
        """Write the distribution that ``probabilities`` gives now as a JSON policy, which runs without armwise.

        ``columns`` name the columns of the context (x0, x1, ... unless said), ``arms`` the arms of an agent that has as
        many. ``armwise.export`` makes evaluators of the policy for other languages. ``CannotExport`` where the format
        does not have it exactly: then nothing is written, and the message names the nearest that it has.

        >>> import armwise as aw, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "policy.json")
        >>> aw.SquareCB(dim=2, n_arms=2).export(path, columns=["age", "visits"], arms=["old", "new"]).document["arms"]
        ['old', 'new']
        """
        policy = self.policy(columns=columns, arms=arms)
        policy.save(path)
        return policy

    def policy(
        self, *, columns: Sequence[str] | None = None, arms: Sequence[str] | None = None
    ) -> policy_document.Policy:
        """The document that ``export`` writes.

        >>> import armwise as aw
        >>> aw.UCB1(n_arms=2).policy(arms=["old", "new"]).document["rule"]
        {'kind': 'fixed', 'p': [0.5, 0.5]}
        """
        frozen = self.freeze()
        sees = "nothing" if frozen.rule["kind"] == "fixed" else self.sees
        encoder = None
        if sees != "nothing":
            encoder = {"kind": "columns", "columns": policy_document.column_names(self.dim, columns)}
        return policy_document.describe(
            frozen, agent=repr(self), sees=sees, encoder=encoder, arms=policy_document.arm_names(self.n_arms, arms),
            lessons=self._n_learnt,
        )  # fmt: skip

    def freeze(self) -> policy_document.FrozenAgent:
        """All that the distribution over arms depends on, as it is now; ``CannotExport`` where there is no formula.

        >>> import armwise as aw
        >>> aw.UCB1(n_arms=2).freeze().rule
        {'kind': 'fixed', 'p': [0.5, 0.5]}
        """
        if self.sees == "nothing":
            return policy_document.fixed(self._probabilities(None))
        why, nearest = self.not_exported
        raise policy_document.CannotExport(
            f"{type(self).__name__} cannot be exported exactly: {why}; the nearest that can be is {nearest}, "
            "taught from the same log (aw.fit_log)"
        )

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

        ``choice.cost`` is its cost, one number per resource, wherever ``n_costs`` is not 0.
        """

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        """The answer of ``estimate``, for an agent that estimates every arm's reward."""
        raise NoEstimate(f"{type(self).__name__} has no estimate to give: it weighs arms without estimating rewards")

    def _choose(self, context: Any) -> Choice:
        p = self._probabilities(context)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]))

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
        """The context in the algorithm's form, or a ValueError that names its fault."""
        return inputs.READERS[self.sees](self, context)

    def _read_block(self, contexts: Any, T: int) -> Any:
        """``T`` contexts for ``play``, all checked."""
        return inputs.read_block(self, contexts, T)

    def _count_arms(self, context: Any) -> int:
        if self.n_arms is not None:
            return self.n_arms
        return int(context.shape[0 if self.sees != "advice" else 1])


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
    """Load an agent that ``agent.save(path)`` wrote; it continues exactly where it stopped.

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
