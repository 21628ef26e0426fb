"""Pacing: hold a spend rate, per decision or per day, around any agent."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from armwise.agents.budget.accounting import Accounting
from armwise.agents.budget.accounts import offered
from armwise.agents.wrappers.wrapper import teach
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, positive
from armwise.native.choice import draw


class Pacing(Accounting):
    """Follow ``agent`` in a share theta of the decisions and play ``cheap`` in the others, so that spend keeps pace.

    With m the cost that the agent's own distribution is expected to have (each arm's mean cost so far) and c that of
    the cheap arm, theta m + (1 - theta) c = rate + (allowed so far - spent so far) / ``window``: what is known is fed
    forward, what was missed is made up for within about ``window`` decisions. An agent that spends less than the rate
    by itself is left alone (theta = 1): pacing slows, it never pushes.

    ``rate`` is per decision; with ``per``, in seconds (86,400 for a day), it is per that much time, and the rate of
    decisions is measured. Probabilities are exact: p = theta q + (1 - theta) on the cheap arm. Costs that have not
    come yet count as expected.

    >>> import armwise as aw
    >>> agent = Pacing(aw.UCB1(n_arms=2, seed=1), rate=0.3, cheap=0, seed=1)
    >>> played = agent.play(None, np.tile([0.0, 1.0], (2000, 1)), np.tile([0.0, 1.0], (2000, 1)))
    >>> bool(abs(played.costs.mean() / 0.3 - 1.0) < 0.01)
    True
    """

    theory = Theory(
        section="beyond the survey",
        regret="none proved: the agent's own in the share of decisions that the rate allows",
        comparator="what the agent inside competes with",
        assumes="a cheap arm whose mean cost is below the rate",
        reference="Balseiro, Gur 2019 (adaptive pacing); Agarwal, Ghosh, Wei, You 2014 (throttling)",
        exponent=1.0,
        call="aw.Pacing(aw.UCB1(n_arms={K}), rate=0.5, cheap=0)",
    )
    n_costs = 1
    _learnt = ("_totals", "_counts", "_spent", "_expected", "_n_chosen", "_clock")

    def __init__(
        self,
        agent: Agent,
        rate: float,
        cheap: int,
        *,
        per: float | None = None,
        window: int = 50,
        seed: Seed = None,
    ) -> None:
        super().__init__(agent, seed=seed)
        if agent.n_costs > 1:
            raise ValueError(
                f"agent must count at most one resource, and {type(agent).__name__} counts {agent.n_costs}"
            )
        self.n_costs = 1
        self.rate, self.cheap, self.window = (
            positive("rate", rate),
            count("cheap", cheap, least=0),
            count("window", window),
        )
        if agent.n_arms is not None and self.cheap >= agent.n_arms:
            raise ValueError(f"cheap is {cheap}, but the arms are 0 to {agent.n_arms - 1}")
        self.per = None if per is None else positive("per", per)
        self._totals, self._counts = np.zeros(0), np.zeros(0)
        self._spent, self._expected, self._n_chosen = 0.0, 0.0, 0
        self._clock: list[float] = []  # of the first and of the last decision, where time counts

    def _costs(self, n_arms: int) -> Floats:
        """The mean cost of each arm so far; of all arms, or the rate, where it was never paid."""
        n = np.zeros(n_arms)
        totals = np.zeros(n_arms)
        known = min(n_arms, len(self._counts))
        n[:known], totals[:known] = self._counts[:known], self._totals[:known]
        usual = self._totals.sum() / self._counts.sum() if self._counts.sum() else self._per_decision()
        means = np.where(n > 0, totals / np.maximum(n, 1.0), usual)
        cheap = offered("cheap", self.cheap, n_arms)
        if n[cheap] == 0:
            means[cheap] = 0.0
        return np.asarray(means)

    def _per_decision(self) -> float:
        if self.per is None:
            return self.rate
        elapsed = self._clock[1] - self._clock[0] if self._clock else 0.0
        return self.rate * elapsed / (self.per * max(self._n_chosen - 1, 1))

    def _allowed(self, now: float) -> float:
        """The amount that may be spent up to this decision, its cost included."""
        if self.per is None:
            return self.rate * (self._n_chosen + 1)
        return self.rate * (now - (self._clock[0] if self._clock else now)) / self.per

    def _theta(self, own: Floats, now: float) -> float:
        costs = self._costs(len(own))
        cheap = float(costs[self.cheap])
        here = self._per_decision() if self.per is not None else self.rate
        behind = self._allowed(now) - (here if self.per is None else 0.0) - self._spent - self._expected
        target, agents = here + behind / self.window, float(own @ costs)
        if agents <= cheap:
            return 1.0
        return min(max((target - cheap) / (agents - cheap), 0.0), 1.0)

    def _mixed(self, own: Floats, now: float) -> Floats:
        theta = self._theta(own, now)
        p = theta * own
        p[self.cheap] += 1.0 - theta
        return np.asarray(p)

    def _probabilities(self, context: Any) -> Floats:
        return self._mixed(self.agent._probabilities(context), self._now())

    def _now(self) -> float:
        return 0.0 if self.per is None else time.time()

    def _choose(self, context: Any) -> Choice:
        now = self._now()
        own_p = self.agent._probabilities(context)  # before the agent's own draw moves its stream on
        p, own = self._mixed(own_p, now), self.agent._choose(context)
        arm = draw(p, self._rng.random())
        expected = float(self._costs(len(p))[arm])
        self._enter(expected, now)
        return Choice(arm, None if own.probability is None else float(p[arm]), [expected, own.note])

    def _entry(self, context: Any, arm: int) -> float:
        return 0.0  # the cost that it is expected to have

    def _is_entry(self, value: Any) -> bool:
        return isinstance(value, (int, float))

    def _enter(self, entry: float, now: float | None = None) -> None:
        self._expected += entry
        self._n_chosen += 1
        if self.per is not None:
            now = self._now() if now is None else now
            self._clock = [self._clock[0] if self._clock else now, now]

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        expected, note = choice.note if choice.note is not None else (0.0, None)
        assert choice.cost is not None
        if choice.arm >= len(self._counts):
            more = choice.arm + 1 - len(self._counts)
            self._counts, self._totals = (
                np.append(self._counts, np.zeros(more)),
                np.append(self._totals, np.zeros(more)),
            )
        self._counts[choice.arm] += 1.0
        self._totals[choice.arm] += choice.cost[0]
        self._spent += choice.cost[0]
        self._expected -= expected
        teach(self.agent, context, choice._replace(note=note), reward)
