"""Any agent as a ranker: slot by slot, without replacement, a fresh choice for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.ranking.examination import read_kappa
from armwise.agents.ranking.lists import OpenSlots, Ranking
from armwise.agents.ranking.ranker import Feedback, Ranker, first_click, last_click
from armwise.agents.wrappers.wrapper import expect_agent
from armwise.core.agent import Agent, Choice, IndexAgent, NoEstimate, Theory
from armwise.core.capabilities.noting import Noting
from armwise.core.capabilities.one_row import learns_one_row
from armwise.core.choices import Floats
from armwise.core.outcomes import read_rewards
from armwise.core.seeds import Seed, purpose_seed
from armwise.native.choice import draw, tied_probabilities

_EXAMINED = {"cascade": first_click, "several clicks": last_click}
_ROUNDING = 1e-9
_LEAST = 1e-4  # of a slot's clicks, where rewards may be negative
_DOUBT = 10.0  # clicks that a slot is taken to have had, as many as were to be expected, where kappa is learnt
_TRIES = 50  # draws of an agent that knows no probabilities, until one is of an arm that is left


class SlotBySlot(Ranker):
    """Let an agent choose the arm of each slot from those that are left, and learn each slot's outcome.

    Every slot is a choice of its own, so that its probability given the slots above is exactly the agent's, and the
    list's is their product. An agent of features without ``n_arms`` is asked about the rows that are left. One with
    arms of its own (it sees nothing, a shared context, a key or advice, or was made with ``n_arms``) is asked about all
    of them: its distribution is renormalised to those left, and where it prefers none of them the best estimate plays.

    ``feedback`` says what a list teaches: "semi-bandit" all slots, "cascade" those down to the first click, "several
    clicks" those down to the last (all, where there is none), "position-based" all, with the rows of a slot multiplied
    by ``kappa``: a click's mean is then kappa_slot x.theta. With ``kappa=None`` that is learnt: a slot's clicks over
    those that the agent expected of its arms, had they been examined.

    >>> import armwise as aw
    >>> ranker = SlotBySlot(aw.SquareCB(dim=3), seed=1)
    >>> for _ in range(100):
    ...     ranking = ranker.rank(np.eye(3), 2)
    ...     ranker.learn(np.eye(3), ranking, [arm == 1 for arm in ranking.arms])
    >>> ranking.arms[0], ranking.probabilities[0] > 0.8
    (1, True)
    """

    theory = Theory(
        section="rankings",
        regret="the agent's, for the first slot",
        comparator="the best arm of those left, slot by slot",
        assumes="what the agent inside assumes, of each slot",
        reference="greedy choice without replacement",
        call="aw.SlotBySlot(aw.SquareCB(dim={d}))",
    )

    def __init__(
        self, agent: Agent, feedback: Feedback = "semi-bandit", kappa: ArrayLike | None = None, *, seed: Seed = None
    ) -> None:
        self.agent = expect_agent("agent", agent)
        super().__init__(seed=seed if isinstance(seed, np.random.Generator) else purpose_seed(seed, "slots"))
        self.seed = seed
        name = type(agent).__name__
        if agent.n_costs:
            raise ValueError(f"agent must count no costs, which a list has none of: {name} does")
        self._by_rows = agent.sees == "features" and agent.n_arms is None
        if not self._by_rows and isinstance(agent, Noting):
            try:
                agent._check_note(Choice(0, 1.0), agent.n_arms or 1)
            except ValueError:
                raise ValueError(
                    f"agent must learn without a note of its choice, as slots draw: {name} does not"
                ) from None
        if feedback not in ("semi-bandit", "cascade", "several clicks", "position-based"):
            raise ValueError(
                f'feedback must be "semi-bandit", "cascade", "several clicks" or "position-based", got {feedback!r:.80}'
            )
        if kappa is not None and feedback != "position-based":
            raise ValueError('kappa is for feedback="position-based"')
        if feedback == "position-based" and not self._by_rows:
            raise ValueError(
                f'feedback="position-based" multiplies rows of features, and {name} has arms of its own: make it '
                "without n_arms, or see PositionUCB"
            )
        if feedback == "position-based" and kappa is None and type(agent)._estimates is Agent._estimates:
            raise ValueError(f"kappa must be given: it is learnt from the agent's estimates, and {name} has none")
        self.feedback, self.kappa = feedback, None if kappa is None else read_kappa(kappa)
        self._clicks, self._attracted = np.zeros((2, 0))  # of each slot, where kappa is learnt
        self.n_slots = None if self.kappa is None else len(self.kappa)
        self.sees, self.keeps_sparse, self.reward_range = agent.sees, False, agent.reward_range
        self.n_experts = agent.n_experts
        if seed is not None and agent.seed is None:
            agent._reseed(seed.spawn(1)[0] if isinstance(seed, np.random.Generator) else purpose_seed(seed, "inside"))

    @property
    def dim(self) -> int | None:  # type: ignore[override]
        """The number of features, once it is known."""
        return self.agent.dim

    @property
    def n_arms(self) -> int | None:  # type: ignore[override]
        """The number of arms of an agent that has arms of its own."""
        return self.agent.n_arms

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"agent": self.agent, "_clicks": self._clicks, "_attracted": self._attracted}

    def _rank(self, X: Any, slots: OpenSlots) -> tuple[list[int], list[float] | None, Any]:
        probabilities: list[float | None] = []
        notes: list[Any] = []
        while len(slots.shown) < slots.k:
            arm, choice = slots.pinned, Choice(0, 1.0)
            if arm is None:
                free = slots.free
                if self._by_rows:
                    choice = self.agent._choose(self._rows(X.take(free, axis=0), len(slots.shown)))
                    arm = int(free[choice.arm])
                else:
                    arm, choice = self._of_what_is_left(self._seen(X), free)
            probabilities.append(choice.probability)
            notes.append(choice.note)
            slots.take(arm)
        known = [p for p in probabilities if p is not None]
        note = None if all(each is None for each in notes) else notes
        return slots.shown, known if len(known) == len(probabilities) else None, note

    def _next(self, X: Any, slots: OpenSlots) -> Floats | None:
        if not self.agent._knows_probability:
            return None
        free, p = slots.free, np.zeros(self._count_arms(X))
        if self._by_rows:
            p[free] = self.agent._probabilities(self._rows(X.take(free, axis=0), len(slots.shown)))
        else:
            p[free] = self._left(self._seen(X), free)
        return p

    @property
    def examination(self) -> Floats:
        """How often each slot is examined, the most examined one 1: as given, or as learnt so far.

        >>> import armwise as aw
        >>> aw.SlotBySlot(aw.LinUCB(3), "position-based", [0.5, 0.25]).examination
        array([1. , 0.5])
        """
        kappa = np.maximum(self._clicks + _DOUBT, _LEAST) / (self._attracted + _DOUBT)
        kappa = kappa if self.kappa is None else self.kappa
        return np.asarray(kappa / kappa.max(initial=_LEAST))

    def _rows(self, X: Any, slot: int) -> Any:
        """Rows as the agent reads them in this slot."""
        if self.feedback == "position-based":
            kappa = self.examination if self.kappa is None else self.kappa
            X = kappa[slot] * X if slot < len(kappa) else X
        return self._seen(X)

    def _seen(self, X: Any) -> Any:
        return X if X is None or self.agent.plain_input else self.agent._read(X)

    def _follow(self, X: Any, ranking: Ranking, outcomes: Floats) -> None:
        """Count clicks by slot, and those that were to be expected of arms that are always examined."""
        k, more = len(outcomes), len(outcomes) - len(self._clicks)
        if more > 0:
            self._clicks, self._attracted = (
                np.append(each, np.zeros(more)) for each in (self._clicks, self._attracted)
            )
        self._clicks[:k] += outcomes
        self._attracted[:k] += np.maximum(self.agent._estimates(self._seen(X[list(ranking.arms)]))[0], 0.0)

    def _of_what_is_left(self, context: Any, free: np.ndarray) -> tuple[int, Choice]:
        """One of these arms, by the agent's own distribution over all of its arms."""
        if not self.agent._knows_probability:
            for _ in range(_TRIES):
                choice = self.agent._choose(context)
                if choice.arm in free:
                    return choice.arm, choice
        p = self._left(context, free)
        place = draw(p, self._rng.random())
        return int(free[place]), Choice(0, float(p[place]) if self.agent._knows_probability else None)

    def _left(self, context: Any, free: np.ndarray) -> Floats:
        """The agent's distribution over what is left of its arms.

        Where it prefers none of them (all have the same share, as next to a greedy choice), its even share stays even,
        and the rest goes to the best estimate.
        """
        m = len(free)
        if isinstance(self.agent, IndexAgent):
            return tied_probabilities(np.ascontiguousarray(self.agent._scores(context)[free]))
        whole = self.agent._probabilities(context)
        own = whole[free]
        if own.max() - own.min() > _ROUNDING:
            return np.asarray(own / own.sum())
        even = min(float(own.min()) * len(whole), 1.0)
        try:
            best = tied_probabilities(np.ascontiguousarray(self.agent._estimates(context)[0][free]))
        except NoEstimate:
            best = np.full(m, 1.0 / m)
        return np.asarray(even / m + (1.0 - even) * best)

    def _learn(self, X: Any, ranking: Ranking, outcomes: Floats) -> None:
        read_rewards(self.agent, outcomes)
        if self.feedback == "position-based" and self.kappa is None:
            self._follow(X, ranking, outcomes)
        slots = OpenSlots(self._count_arms(X), len(ranking.arms), ranking.offer)
        examined = _EXAMINED.get(self.feedback, len)(outcomes)
        for slot, (arm, outcome) in enumerate(zip(ranking.arms[:examined], outcomes.tolist())):
            p = None if ranking.probabilities is None else ranking.probabilities[slot]
            note = None if ranking.note is None else ranking.note[slot]
            if not self._by_rows:
                self._teach(self._seen(X), Choice(arm, p, note), outcome)
            elif slots.pinned is not None or learns_one_row(self.agent):
                self._teach(self._rows(X[[arm]], slot), Choice(0, p, note), outcome)
            else:
                free = slots.free
                self._teach(self._rows(X[free], slot), Choice(int(np.searchsorted(free, arm)), p, note), outcome)
            slots.take(arm)

    def _teach(self, X: Any, choice: Choice, outcome: float) -> None:
        self.agent._learn(X, choice, outcome)
        self.agent._n_learnt += 1

    def _estimates(self, X: Any) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(self._seen(X))

    def _check_ranking(self, ranking: Ranking, n_arms: int) -> Ranking:
        super()._check_ranking(ranking, n_arms)
        note, k = ranking.note, len(ranking.arms)
        if note is not None and (not isinstance(note, (list, tuple)) or len(note) != k):
            raise ValueError(f"ranking.note must have an entry for each of the {k} slots, got {str(note)[:80]}")
        if self.agent.needs_probability and ranking.probabilities is None:
            raise ValueError(f"ranking.probabilities must be known: {type(self.agent).__name__} weighs by them")
        return ranking

    def _read(self, X: Any) -> Any:
        X = super()._read(X)
        read = self.agent._read(X)  # which takes the width of the first rows, where it was left open
        return read if self.agent.plain_input else X
