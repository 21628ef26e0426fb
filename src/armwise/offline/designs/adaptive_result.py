"""Results on the log of an adaptive agent: estimates of policies, with plain means for comparison."""

from __future__ import annotations

import math
from typing import Any

from armwise.core.agent import Floats
from armwise.offline.designs.adaptive_scores import Scores
from armwise.offline.designs.simulation import Simulation
from armwise.offline.results.estimates import Estimate, Evaluation
from armwise.offline.results.terminal import ends_of, lines_of, number, percent

_CONSTANT = "assumes that a policy's mean reward is the same in all rounds; the verdict says where it is not"
_PLAIN = "a plain mean of adaptive data is biased, its interval too narrow"


class AdaptiveEvaluation(Evaluation):
    """Estimates of policies on the log of an adaptive agent; ``plain`` has the plain means, for comparison.

    >>> from armwise.offline import Log, adaptive
    >>> log = Log(arms=[0, 1] * 200, rewards=[1, 0, 0, 1] * 100, probabilities=[0.5] * 400, n_arms=2)
    >>> found = adaptive(log)
    >>> list(found), list(found.plain)
    (['arm 0', 'arm 1'], ['arm 0', 'arm 1'])
    """

    plain: dict[str, Estimate]
    simulation: Simulation | None = None  # the assumptions of ``interval="simulated"``
    constant = False  # whether weights or intervals assume a constant value
    mean_weights: dict[str, float]  # of each policy's importance weights: 1 where every decision had a chance
    _scores: dict[str, Scores]

    def rows_shown(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows of the table: estimates with the plain means beside them."""
        head = ["policy", "value", f"{percent(self.level)} interval", "std. error", "ESS", "plain mean", "its interval"]
        rows = []
        for name, e in self.items():
            plain = self.plain.get(name)
            rows.append([name, number(e.value), ends_of(e), number(e.std_error),
                         "-" if math.isnan(e.ess) else f"{e.ess:,.0f}",
                         number(plain.value) if plain else "", ends_of(plain) if plain else ""])  # fmt: skip
        return head, rows

    def table(self) -> str:
        """Return a text table of the estimates, the plain means and the verdict."""
        lines = lines_of(*self.rows_shown())
        lines.append(f"{self._kinds()} intervals; {_PLAIN}")
        lines += [_CONSTANT] if self.constant else []
        lines += self._rests_on
        lines += [f"WARNING: {self.verdict}"] if self.verdict else []
        return "\n".join(lines)

    __repr__ = __str__ = table

    def _kinds(self) -> str:
        """The kinds of intervals: one for all, or each with its policies."""
        kinds: dict[str, list[str]] = {}
        for name, e in self.items():
            kinds.setdefault(e.interval, []).append(name)
        if len(kinds) == 1:
            return next(iter(kinds))
        return "; ".join(f"{kind} ({', '.join(names)})" for kind, names in kinds.items())

    @property
    def notes(self) -> list[str]:
        """Return notes: kinds of intervals, and the assumptions of a simulation."""
        return [*super().notes, _PLAIN, *([_CONSTANT] if self.constant else []), *self._rests_on]

    @property
    def _rests_on(self) -> list[str]:
        if self.simulation is None or not self.simulation.holds:
            return []
        alone = [f"{name} {1 - weight:.0%}" for name, weight in self.mean_weights.items() if weight < 0.98]
        beyond = [f"of these rounds no row speaks, the model alone: {', '.join(alone)} (the agent gave them almost no "
                  "chance), so that nothing in the log can show that it is wrong there"]  # fmt: skip
        return [self.simulation.rests_on, *(beyond if alone else [])]

    @property
    def weaknesses(self) -> list[str]:
        """Return warnings of the simulation's model or agent, and of the log for each policy.

        A comparison shares the warnings of its two sides; each is listed once.
        """
        against = [] if self.simulation is None else self.simulation.weaknesses
        said: dict[str, str] = {}
        for name, e in self.items():
            for text in e.warnings:
                said.setdefault(text, name)
        return [*against, *(f"{name}: {text}" for text, name in said.items())]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        rest = {} if self.simulation is None else {"simulation": self.simulation.to_dict()}
        return super().to_dict() | {"plain": {name: e.to_dict() for name, e in self.plain.items()}} | rest

    def path(self, name: str) -> tuple[Floats, Floats]:
        """The ends of a policy's time-uniform interval after each round, for ``interval="asymptotic"`` or "sequence".

        >>> from armwise.offline import Log, adaptive
        >>> log = Log(arms=[0, 1] * 200, rewards=[1, 0, 0, 1] * 100, probabilities=[0.5] * 400, n_arms=2)
        >>> low, high = adaptive(log, interval="sequence").path("arm 0")
        >>> low.shape, bool(low[50] < low[-1])
        ((400,), True)
        """
        if self.interval not in ("asymptotic", "sequence"):
            raise ValueError(
                f"interval={self.interval!r} is right at the end only: ask adaptive for 'asymptotic' or 'sequence'"
            )
        if name not in self._scores:
            raise ValueError(f"name is {name!r}, expected one of {', '.join(self._scores)}")
        return self._scores[name].path(self.interval, self.level)
