"""HardStop: a budget that no path overspends, around any agent."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.budget.accounting import Accounting
from armwise.agents.budget.accounts import BudgetSpent, ExactSums, amounts, offered, plain, refuse_negative
from armwise.agents.wrappers.wrapper import teach
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, positive
from armwise.core.arguments import as_floats
from armwise.native.choice import draw


class HardStop(Accounting):
    """Follow ``agent`` among the arms whose largest cost the rest of ``budget`` covers.

    ``max_cost`` is the most that a decision can cost: one number for every arm but ``fallback``, which is then free
    (the null arm); or one per arm, (K,) or (K, m) for m resources. Where the fallback is not free, its cost is set
    aside for each of the ``horizon`` decisions that are still to come, so that it can always be played. With
    ``fallback=None`` there is none: a decision that the rest of the budget does not cover is refused (``BudgetSpent``),
    as a router refuses a prompt that it cannot pay for.

    A choice sets its largest cost aside until its true cost is learnt, so the budget holds under delayed costs too; a
    choice whose cost never comes stays paid in full, and one whose cost is delivered again is paid once. Arms that
    cannot be afforded have probability 0, the others share their mass in the agent's proportions (the fallback where
    nothing is left).

    The promise: spend <= budget on every path, in any order of choices and costs, if no cost is above ``max_cost``. One
    that is above has been paid: it is counted in full, with a warning, and spend <= budget + the sum of what was above.
    Sums are exact, so that what fits to the last bit is allowed: ten decisions of 1.0 in a budget of 10.0. (Ten of 0.1
    do not fit in 1.0, because the double 0.1 is a little above a tenth: count in cents or tokens where that matters.)
    In a service all decisions of one process are counted as they are drawn, before they are journaled; those of other
    processes on the same journal (PostgreSQL) before the next one is journaled, which is drawn again if it missed any.

    >>> import armwise as aw
    >>> agent = HardStop(aw.UCB1(n_arms=3, seed=1), budget=10.0, max_cost=1.0, fallback=0, seed=1)
    >>> played = agent.play(None, np.tile([0.0, 0.5, 1.0], (100, 1)), np.tile([0.0, 0.7, 1.0], (100, 1)))
    >>> bool(9.0 < played.costs.sum() <= 10.0)
    True
    """

    theory = Theory(
        section="beyond the survey",
        regret="the agent's own, plus one per decision after the budget is spent",
        comparator="what the agent inside competes with",
        assumes="costs at most max_cost; then spend <= budget on every path",
        reference="Badanidiyuru, Kleinberg, Slivkins 2013 (stopping); Slivkins, Sankararaman, Foster 2023",
        exponent=1.0,
        call="aw.HardStop(aw.UCB1(n_arms={K}), budget=0.5 * {T}, max_cost=1.0, fallback=0)",
    )
    _learnt = ("_paid", "_held", "_n_chosen", "_open")

    def __init__(
        self,
        agent: Agent,
        budget: float | Sequence[float],
        max_cost: float | ArrayLike,
        fallback: int | None = None,
        *,
        horizon: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(agent, seed=seed)
        limits = amounts("budget", budget)
        if agent.n_costs not in (0, len(limits)):
            raise ValueError(f"budget must have {agent.n_costs} numbers, as many as the agent counts, got {budget!r}")
        self.budget, self.n_costs = plain(limits), len(limits)
        self.fallback = None if fallback is None else count("fallback", fallback, least=0)
        if agent.n_arms is not None and (self.fallback or 0) >= agent.n_arms:
            raise ValueError(f"fallback is {fallback}, but the arms are 0 to {agent.n_arms - 1}")
        most = as_floats("max_cost", max_cost) if np.ndim(max_cost) else np.asarray(positive("max_cost", max_cost))
        refuse_negative("max_cost", most)
        self.max_cost: Any = float(most) if most.ndim == 0 else most
        if most.ndim == 1:
            most = most[:, None]
        if most.ndim and (most.ndim != 2 or most.shape[1] not in (1, self.n_costs) or len(most) <= (self.fallback or 0)
                          or agent.n_arms not in (None, len(most))):  # fmt: skip
            raise ValueError(f"max_cost must be a number, one per arm, or (K, {self.n_costs}), got shape {most.shape}")
        self._most = None if most.ndim == 0 else np.broadcast_to(most, (len(most), self.n_costs)).copy()
        self._limits = limits
        self.horizon = None if horizon is None else count("horizon", horizon)
        if self.fallback is None and horizon is not None:
            raise ValueError(f"horizon is {horizon!r:.80}, and without a fallback nothing is kept for later decisions")
        set_aside = self._kept(self._largest((self.fallback or 0) + 1))
        if set_aside.any():
            if self.horizon is None:
                raise ValueError(f"horizon is needed: the fallback may cost {set_aside} per decision")
            needed = ExactSums(self.n_costs)
            needed.add(set_aside, times=self.horizon)
            if not needed.fits(limits):
                raise ValueError(
                    f"budget {budget!r:.80} cannot be promised: {self.horizon} decisions of the fallback may cost "
                    f"{self.horizon * set_aside}"
                )
        self._paid, self._held, self._n_chosen = ExactSums(self.n_costs), ExactSums(self.n_costs), 0
        self._open: dict[int, int] = {}  # choices whose cost is not learnt yet, by number; copies of one may share it

    @property
    def spent(self) -> Floats:
        """The cost of the learnt decisions, per resource.

        >>> import armwise as aw
        >>> HardStop(aw.UCB1(2), budget=1.0, max_cost=0.1, fallback=0).spent
        array([0.])
        """
        return self._paid.rounded

    @property
    def set_aside(self) -> Floats:
        """The reserve for decisions of unknown cost, per resource.

        >>> import armwise as aw
        >>> agent = HardStop(aw.UCB1(2), budget=1.0, max_cost=0.25)
        >>> _ = agent.choose(), agent.choose(); agent.set_aside
        array([0.5])
        """
        return self._held.rounded

    def _largest(self, n_arms: int) -> Floats:
        """(K, m): the most that each arm can cost."""
        if self.fallback is not None:
            offered("fallback", self.fallback, n_arms)
        if self._most is not None:
            if n_arms > len(self._most):
                raise ValueError(f"max_cost names {len(self._most)} arms, and this round has {n_arms}")
            return self._most[:n_arms]
        most = np.full((n_arms, self.n_costs), float(self.max_cost))
        if self.fallback is not None:
            most[self.fallback] = 0.0
        return most

    def _kept(self, most: Floats) -> Floats:
        """The reserve for each later decision: the largest cost of the fallback."""
        return np.zeros(self.n_costs) if self.fallback is None else most[self.fallback]

    def _affordable(self, n_arms: int) -> Any:
        """Which arms the rest of the budget covers, with the fallback for every decision after this one."""
        most = self._largest(n_arms)
        kept = self._kept(most)
        promised = ExactSums(self.n_costs)
        promised.units = [paid + held for paid, held in zip(self._paid.units, self._held.units)]
        promised.add(kept, times=0 if self.horizon is None else max(self.horizon - self._n_chosen - 1, 0))
        covered: Any = (most <= promised.rest(self._limits)).all(axis=1)
        if self.fallback is not None and not kept.any():
            covered[self.fallback] = True  # free
        elif not covered.any():
            why = ""
            if self.fallback is not None:
                over = self._n_chosen >= (self.horizon or 0)
                why = (
                    f"the horizon of {self.horizon} decisions is over, and "
                    if over
                    else ("costs above max_cost took what was set aside, and ")
                )
            aside = f" ({self.set_aside.tolist()} set aside for costs to come)" if any(self._held.units) else ""
            raise BudgetSpent(
                f"{why}the budget {self.budget} does not cover another decision: {self.spent.tolist()} spent{aside}"
            )
        return covered

    def _share(self, own: Floats, covered: Any) -> Floats:
        """The agent's distribution among the arms that can be paid."""
        if covered.all():
            return own
        p = np.where(covered, own, 0.0)
        total = p.sum()
        if total > 0.0:
            return np.asarray(p / total)
        p[self.fallback if self.fallback is not None and covered[self.fallback] else int(np.argmax(covered))] = 1.0
        return p

    def _probabilities(self, context: Any) -> Floats:
        own = self.agent._probabilities(context)
        return self._share(own, self._affordable(len(own)))

    def _choose(self, context: Any) -> Choice:
        n_arms = self._count_arms(context)
        covered = self._affordable(n_arms)
        every = None if covered.all() else self.agent._probabilities(context)  # before its draw moves its stream on
        own = self.agent._choose(context)
        arm, p = own.arm, own.probability
        if every is not None:
            shared = self._share(every, covered)
            arm = draw(shared, self._rng.random())
            p = None if own.probability is None else float(shared[arm])
        entry = [*self._largest(n_arms)[arm].tolist(), self._n_chosen]
        self._enter(entry)
        return Choice(arm, p, [entry, own.note])

    def _entry(self, context: Any, arm: int) -> list[Any]:
        largest: list[Any] = self._largest(self._count_arms(context))[arm].tolist()
        return largest

    def _is_entry(self, value: Any) -> bool:
        """What was set aside per resource, and the number of the choice: journals from before have none."""
        if not isinstance(value, (list, tuple)) or len(value) not in (self.n_costs, self.n_costs + 1):
            return False
        return len(value) == self.n_costs or type(value[-1]) is int

    def _enter(self, entry: list[Any]) -> None:
        self._held.add(entry[: self.n_costs])
        for number in entry[self.n_costs :]:
            self._open[number] = self._open.get(number, 0) + 1
        self._n_chosen += 1

    def _release(self, entry: list[Any]) -> bool:
        """Give back what a choice set aside; False where its cost was learnt before: it may be delivered again."""
        for number in entry[self.n_costs :]:
            if number not in self._open:
                return bool(number >= self._n_chosen)  # a choice that was never entered here
            self._open[number] -= 1
            if not self._open[number]:
                del self._open[number]
        self._held.add(entry[: self.n_costs], times=-1)
        self._held.units = [max(held, 0) for held in self._held.units]
        return True

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        entry, note = choice.note if choice.note is not None else ([0.0] * self.n_costs, None)
        paid, most = np.array(choice.cost), self._largest(self._count_arms(context))[choice.arm]
        if (paid > most).any():
            warnings.warn(
                f"HardStop: arm {choice.arm} cost {paid.tolist()}, more than its max_cost {most.tolist()}: the budget "
                "cannot be promised; declare a larger max_cost",
                RuntimeWarning,
                stacklevel=4,
            )
        if self._release(entry):
            self._paid.add(paid)
        teach(self.agent, context, choice._replace(note=note), reward)
