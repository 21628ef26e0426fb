"""Results of an offline evaluation: numbers by name, and the same verdict in every form they are shown in."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from armwise.offline import views
from armwise.offline.diagnostics import Diagnostics
from armwise.offline.estimators import Estimator
from armwise.offline.intervals import IntervalKind

_SAME = 100  # rows that all say the same still leave about 3/n unknown


@dataclass(frozen=True)
class Estimate:
    """One estimator's answer: the value, its interval, how many rows and how many effective ones, and warnings.

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1, 0, 0] * 25, rewards=[1, 0, 1, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> estimate = evaluate(log, [0.5, 0.5], "ips")["ips"]
    >>> estimate.value, estimate.n, estimate.ess
    (0.5, 100, 100.0)
    """

    name: str
    value: float
    low: float
    high: float
    std_error: float
    n: int
    ess: float  # NaN where the log has no probabilities
    warnings: tuple[str, ...] = ()
    interval: str = "normal"
    level: float = 0.95
    parameter: float | None = None  # the tau or lam that a tuned estimator chose

    @classmethod
    def of(
        cls, estimator: Estimator, value: float, low: float, high: float, variance: float, n: int,
        diagnostics: Diagnostics | None, interval: IntervalKind, level: float,
    ) -> Estimate:  # fmt: skip
        """From the numbers of an evaluation."""
        verdicts = diagnostics.verdicts if diagnostics is not None else ()
        if verdicts and not estimator.needs_weights:
            verdicts = (f"rests on the reward model alone; {verdicts[0]}",)
        ess = diagnostics.ess if diagnostics is not None else math.nan
        if not (math.isfinite(value) and math.isfinite(variance)):
            cause = "the target never plays a logged arm" if ess == 0 else "the squares of these rewards are too large"
            verdicts = (*verdicts, f"undefined: {cause}")
        if diagnostics is not None and diagnostics.clipped_weight > 0.005 and estimator.needs_weights:
            taken = f"clipping takes {diagnostics.clipped_weight:.1%} of the weight away"
            verdicts = (*verdicts, f"biased: {taken}, which the interval does not know")
        if ess < _SAME and high - low <= 1e-12 * max(1.0, abs(value)):
            verdicts = (*verdicts, f"no width: all {ess:.0f} rows that count say the same, which does not make it sure")
        error = math.sqrt(variance / n) if variance >= 0 else math.nan
        return cls(estimator.name, value, float(low), float(high), error, n, ess, verdicts, interval, level,
                   getattr(estimator, "parameter", None))  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON (NaN and infinity become null)."""
        return {**_plain(asdict(self)), "warnings": list(self.warnings)}


class Evaluation(Mapping[str, Estimate]):
    """The estimates by name; ``verdict`` says in plain words what is wrong with the log, and is empty if nothing is.

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1, 0, 0] * 25, rewards=[1, 0, 1, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> print(evaluate(log, [0.5, 0.5], ["ips", "snips"]).table())
    estimator   value  95% interval      std. error  rows  ESS
    ips        0.5000  0.4015 to 0.5985     0.05025   100  100
    snips      0.5000  0.4015 to 0.5985     0.05025   100  100
    """

    def __init__(
        self,
        estimates: dict[str, Estimate],
        diagnostics: Diagnostics | None,
        target: str,
        interval: str,
        level: float,
    ) -> None:
        self._estimates = estimates
        self.diagnostics, self.target, self.interval, self.level = diagnostics, target, interval, level

    def __getitem__(self, name: str) -> Estimate:
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    @property
    def verdict(self) -> str:
        """Everything that speaks against trusting these numbers, in one line; empty if nothing does."""
        return "; ".join([*self.weaknesses, *self._said("biased")])

    @property
    def weaknesses(self) -> list[str]:
        """What is wrong with the log, of which ``evaluate`` warns: the verdict but for clipping, which was asked for.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> found = evaluate(log, [0.5, 0.5], "ips", clip=0.8)
        >>> found.weaknesses, found.verdict
        ([], 'biased: clipping takes 37.5% of the weight away, which the interval does not know')
        """
        found = list(self.diagnostics.verdicts) if self.diagnostics is not None else []
        return [*found, *self._said("undefined"), *self._said("no width")]

    def _said(self, word: str) -> list[str]:
        return [w for e in self._estimates.values() for w in e.warnings if w.startswith(word)][:1]

    def table(self) -> str:
        """The estimates as lines of text, with the verdict below.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> evaluate(log, [0.5, 0.5], "ips").table().splitlines()[0]
        'estimator   value  95% interval      std. error  rows  ESS'
        """
        return views.text_table(self)

    __repr__ = __str__ = table

    def _repr_html_(self) -> str:
        return views.html_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "target": self.target,
            "interval": self.interval,
            "level": self.level,
            "verdict": self.verdict,
            "warnings": [self.verdict] if self.verdict else [],
            "estimates": {name: e.to_dict() for name, e in self._estimates.items()},
            "diagnostics": _plain(self.diagnostics.to_dict()) if self.diagnostics is not None else None,
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Everything, as JSON.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> json.loads(evaluate(log, [0.5, 0.5], "ips").to_json())["verdict"]
        ''
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def plot(self, path: Any = None) -> Any:
        """The intervals of all estimators side by side, as a matplotlib figure (written to ``path`` if given).

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> [text.get_text() for text in evaluate(log, [0.5, 0.5], "ips").plot().axes[0].get_yticklabels()]
        ['ips']
        """
        return views.plot(self, path)

    def report(self, path: Any) -> None:
        """One self-contained HTML page: picture, table, diagnostics, verdict.

        >>> import tempfile, os
        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> evaluate(log, [0.5, 0.5], "ips").report(path)
        >>> os.path.exists(path)
        True
        """
        views.report(self, path)


@dataclass(frozen=True)
class Comparison:
    """The difference between two policies on the same log, first minus second.

    ``p_value`` is two-sided, by the normal approximation; ``better`` is "first", "second" or "neither".

    >>> from armwise.offline import Log, compare
    >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
    >>> compare(log, [1.0, 0.0], [0.5, 0.5], "ips").value
    0.5
    """

    first: Estimate
    second: Estimate
    value: float
    low: float
    high: float
    std_error: float
    p_value: float
    warnings: tuple[str, ...]

    @classmethod
    def of(
        cls, first: Estimate, second: Estimate, value: float, low: float, high: float, variance: float
    ) -> Comparison:
        """From the two estimates and the spread of their difference."""
        error = math.sqrt(max(variance, 0.0) / first.n)
        p_value = 2.0 * float(ndtr(-abs(value) / error)) if error > 0 else float(value == 0)
        said = [f"{which}: {w}" for which, e in (("first", first), ("second", second)) for w in e.warnings]
        return cls(first, second, value, float(low), float(high), error, p_value, tuple(said))

    @property
    def better(self) -> str:
        """Which policy is better, if the interval leaves no doubt.

        >>> from armwise.offline import Log, compare
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> compare(log, [1.0, 0.0], [0.9, 0.1], "ips").better
        'first'
        """
        return "first" if self.low > 0 else "second" if self.high < 0 else "neither"

    def table(self) -> str:
        """Both policies and their difference, as lines of text."""
        return views.comparison_table(self)

    __repr__ = __str__ = table

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.table())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        numbers = _plain({k: getattr(self, k) for k in ("value", "low", "high", "std_error", "p_value")})
        return {"first": self.first.to_dict(), "second": self.second.to_dict(), **numbers, "better": self.better,
                "warnings": list(self.warnings)}  # fmt: skip


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, (float, np.floating)) and not math.isfinite(v) else v for k, v in values.items()}
