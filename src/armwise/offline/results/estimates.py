"""Results of an offline evaluation: estimates by name, with the same verdict in every view."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import chdtrc

from armwise.offline.estimators.estimators import Estimator
from armwise.offline.results import answers, terminal
from armwise.offline.results.analysis_plan import Plan
from armwise.offline.results.cautions import Finding, distinct, merged
from armwise.offline.results.diagnostics import Diagnostics

OneSided = Literal["lower", "upper"]
_ENOUGH = 30  # effective rows of a segment whose effect is compared with those of others
_SAME = 100  # rows that all say the same still leave about 3/n unknown
MODEL_ALONE = "rests on the reward model alone, whose bias the interval"
WIDENED = "widened: its interval reaches"


def both_sides(level: float, one_sided: OneSided | None) -> float:
    """The level of a two-sided interval one of whose ends is a one-sided interval of this level."""
    if one_sided not in (None, "lower", "upper"):
        raise ValueError(f"one_sided is {one_sided!r}, expected None, 'lower' or 'upper'")
    if one_sided is not None and not 0.5 < level < 1.0:
        raise ValueError(f"level is {level!r}, expected a number between 0.5 and 1 for a one-sided interval")
    return level if one_sided is None else 2.0 * level - 1.0


def _one_end(side: OneSided, e: Any, level: float) -> dict[str, Any]:
    """The changed fields of an estimate or a difference with one end only."""
    ends: dict[str, Any] = {"high": math.inf} if side == "lower" else {"low": -math.inf}
    if hasattr(e, "p_value"):
        towards = e.value > 0 if side == "lower" else e.value < 0
        ends["p_value"] = e.p_value / 2.0 if towards else 1.0 - e.p_value / 2.0
    return ends | ({"level": level} if hasattr(e, "level") else {})


@dataclass(frozen=True)
class Lift:
    """The difference in reward to a baseline, paired row by row.

    >>> Lift("logged", "dr", 0.05, 0.01, 0.09, 0.014, 0.95).better
    True
    """

    baseline: str
    estimator: str
    value: float
    low: float
    high: float
    p_value: float  # NaN where the kind of interval has none
    level: float = 0.95
    kind: str = "normal"  # of the interval
    std_error: float = math.nan

    @property
    def better(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return _plain(asdict(self))


@dataclass(frozen=True)
class Estimate:
    """An estimate: the value, its interval, the rows and effective rows behind it, and warnings.

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
        diagnostics: Diagnostics | None, interval: str, level: float, corrected: str = "",
    ) -> Estimate:  # fmt: skip
        """From the numbers of an evaluation; the interval of a model alone holds that of its ``corrected`` value."""
        verdicts = diagnostics.verdicts if diagnostics is not None else ()
        if verdicts and not estimator.needs_weights:
            verdicts = (f"{verdicts[0]}",)
        if not estimator.needs_weights:
            widened = (f"{WIDENED} over that of {corrected}, which corrects the model",) if corrected else ()
            verdicts = (f"{MODEL_ALONE} does not know", *widened, *verdicts)
        ess = diagnostics.ess if diagnostics is not None else math.nan
        if not (math.isfinite(value) and math.isfinite(variance)):
            cause = "the target never plays a logged arm" if ess == 0 else "the squares of these rewards are too large"
            verdicts = (*verdicts, f"undefined: {cause}")
        if diagnostics is not None and diagnostics.clipped_weight > 0.005 and estimator.needs_weights:
            taken = f"clipping takes {diagnostics.clipped_weight:.1%} of the weight away"
            verdicts = (*verdicts, f"biased: {taken}, which the interval does not know")
        if ess < _SAME and high - low <= 1e-12 * max(1.0, abs(value)):
            verdicts = (
                *verdicts,
                f"no width: all {ess:.0f} matching rows have one reward, which leaves the value open",
            )
        if interval == "cressie-read" and math.isfinite(value) and not low <= value <= high and diagnostics is not None:
            verdicts = (*verdicts, f"outside its interval, which knows that the weights should average 1 (they average "
                                   f"{diagnostics.mean_weight:.3g}): take snips or sndr")  # fmt: skip
        if getattr(estimator, "tuned", None) is not None:
            verdicts = (
                *verdicts,
                "tuned: the interval is that of dr, which has no bias from the choice (and reaches to the value)",
            )
        error = math.sqrt(variance / n) if variance >= 0 else math.nan
        return cls(estimator.name, value, float(low), float(high), error, n, ess, verdicts, interval, level,
                   getattr(estimator, "parameter", None))  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON (NaN and infinity become null)."""
        return {**_plain(asdict(self)), "warnings": list(self.warnings)}


class Evaluation(Mapping[str, Estimate]):
    """Estimates by name; ``verdict`` names the faults of the log, and is empty if there are none.

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1, 0, 0] * 25, rewards=[1, 0, 1, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> print(evaluate(log, [0.5, 0.5], ["ips", "snips"]).table())
    estimator   value  95% interval      std. error  rows  ESS
    ips        0.5000  0.3963 to 0.6037     0.05025   100  100
    snips      0.5000  0.3963 to 0.6037     0.05025   100  100
    intervals: cressie-read (rewards between 0 and 1)
    """

    per = "decision"  # the unit of a value
    side: OneSided | None = None  # the only end of each interval, where one was asked for

    def __init__(
        self,
        estimates: dict[str, Estimate],
        diagnostics: Diagnostics | None,
        target: str,
        interval: str,
        level: float,
        *,
        lift: Lift | None = None,
        columns: str | None = None,
        logged: float = math.nan,
        reward_range: tuple[float, float] | None = None,
        policies: int = 1,
        estimated: str | None = None,
        missed: Callable[[], list[str]] = list,
    ) -> None:
        self._estimates, self.estimated = estimates, estimated
        self._missed: list[str] | Callable[[], list[str]] = missed  # a check that runs when first used
        self.lift, self.columns, self.logged, self.policies = lift, columns, logged, policies
        self.reward_range = reward_range
        self.segments: dict[str, Evaluation] = {}
        self.plan: Plan | None = None
        self.copies, self.remarks = "", list[str]()  # of the log: its duplicate rows, how it was read
        self.diagnostics, self.target, self.interval, self.level = diagnostics, target, interval, level

    def __getitem__(self, name: str) -> Estimate:
        return self._estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    @property
    def verdict(self) -> str:
        """All warnings about these numbers in one line; empty if there are none."""
        return "; ".join([*self.weaknesses, *self._starting("biased")])

    @property
    def weaknesses(self) -> list[str]:
        """The faults of the log that ``evaluate`` warns of: the verdict but for clipping, which was asked for.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> found = evaluate(log, [0.5, 0.5], "ips", clip=0.8)
        >>> found.weaknesses, found.verdict
        ([], 'biased: clipping takes 37.5% of the weight away, which the interval does not know')
        """
        inside = [(name, text) for name, each in self.segments.items() for text in each.weaknesses]
        own = self._own_weaknesses()
        return [*own, *merged([finding for finding in inside if finding[1] not in own])]

    def _own_weaknesses(self) -> list[str]:
        self._missed = self._missed() if callable(self._missed) else self._missed
        found = [*(self.diagnostics.verdicts if self.diagnostics is not None else ()), *self._missed]
        return [*found, *filter(None, [self.copies]), *self._starting("undefined"), *self._starting("no width")]

    def one_sided(self, side: OneSided, level: float) -> Evaluation:
        """The same with only one end of each interval, whose level this is."""
        self.level, self.side = level, side
        self._estimates = {name: replace(e, **_one_end(side, e, level)) for name, e in self._estimates.items()}
        self.lift = None if self.lift is None else replace(self.lift, **_one_end(side, self.lift, level))
        for each in self.segments.values():
            each.one_sided(side, level)
        return self

    @property
    def heterogeneity(self) -> float:
        """The p-value of "the lift is the same in all segments" (Cochran's Q; segments with 30 effective rows or more).

        NaN without a baseline, or with fewer than two such segments.
        """
        lifts = [each.lift for each in self.segments.values() if each.lift is not None and each.lift.std_error > 0
                 and each[each.lift.estimator].ess >= _ENOUGH]  # fmt: skip
        if len(lifts) < 2:
            return math.nan
        precision = np.array([lift.std_error**-2.0 for lift in lifts])
        values = np.array([lift.value for lift in lifts])
        mean = float(precision @ values / precision.sum())
        return float(chdtrc(len(lifts) - 1, precision @ (values - mean) ** 2))

    def findings(self) -> list[Finding]:
        """Return the warnings as pairs (segment, text); the segment is empty for all rows."""
        texts = [*self._own_weaknesses(), *self._starting("biased"), *self.remarks]
        texts += [f"{e.name}: {w}" for e in self._estimates.values() for w in e.warnings if w.startswith("outside")]
        segments = self.segments.items()
        return [("", text) for text in texts] + [(name, text) for name, each in segments for _, text in each.findings()]

    @property
    def cautions(self) -> list[str]:
        """Everything to know before trusting these numbers: distinct sentences, the most important first."""
        return distinct(self.findings())

    @property
    def answer(self) -> str:
        """Return the answer in a sentence or two.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=0.5, n_arms=2)
        >>> evaluate(log, [0.5, 0.5], "ips").answer
        'The given policy would have earned 0.5000 per decision (95% interval 0.3963 to 0.6037).'
        """
        return answers.of_evaluation(self)

    @property
    def notes(self) -> list[str]:
        """Notes for a reader that are no faults of the log: kinds of intervals, columns, the bias of "dm".

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> for note in evaluate(log, [0.5, 0.5], "dm").notes[-2:]: print(note)
        dm rests on the reward model alone, whose bias the interval does not know
        dm: widened: its interval reaches over that of sndr, which corrects the model
        """
        found = [f"columns: {self.columns}"] if self.columns else []
        found += [f"probabilities: estimated by {self.estimated}, so the answer is right only if the contexts hold all "
                  "that the choice of the arms depended on"] if self.estimated else []  # fmt: skip
        found.append(f"intervals: {self._kinds()}" + (f"; of lifts: {self.lift.kind}" if self.lift is not None else ""))
        for word in (MODEL_ALONE, WIDENED, "outside", "tuned"):
            found += [f"{e.name} {w}" if word == MODEL_ALONE else f"{e.name}: {w}"
                      for e in self._estimates.values() for w in e.warnings if w.startswith(word)]  # fmt: skip
        return found

    def _kinds(self) -> str:
        kinds = list(dict.fromkeys(e.interval for e in self._estimates.values())) or [self.interval]
        text = " and ".join(kinds)
        if self.reward_range is not None and any(kind not in ("normal", "bootstrap") for kind in kinds):
            text += " (rewards between {:g} and {:g})".format(*self.reward_range)
        return text + (f", for all {self.policies} policies at once" if self.policies > 1 else "")

    def _starting(self, word: str) -> list[str]:
        return [w for e in self._estimates.values() for w in e.warnings if w.startswith(word)][:1]

    def rows_shown(self) -> tuple[list[str], list[list[str]]]:
        """The head and the rows of the table of estimates, as pages show them.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> evaluate(log, [0.5, 0.5], "ips").rows_shown()[1]
        [['ips', '0.5000', '0.3963 to 0.6037', '0.05025', '100', '100']]
        """
        return terminal.header(self.level), [terminal.cells(e) for e in self.values()]

    def table(self) -> str:
        """The estimates as lines of text, with the verdict below.

        >>> from armwise.offline import Log, evaluate
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0] * 50, probabilities=[0.5] * 100, n_arms=2)
        >>> evaluate(log, [0.5, 0.5], "ips").table().splitlines()[0]
        'estimator   value  95% interval      std. error  rows  ESS'
        """
        return terminal.text_table(self)

    def text(self, explain: bool = False) -> str:
        """The plan of the analysis, the answer, the table, the warnings; ``explain`` adds what stands behind them."""
        return terminal.full_text(self, terminal.table_lines(self), explain)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "target": self.target,
            "interval": self.interval,
            "level": self.level,
            "verdict": self.verdict,
            "plan": None if self.plan is None else self.plan.to_dict(),
            "answer": self.answer,
            "warnings": self.cautions,
            "notes": self.notes,
            "estimated_probabilities": self.estimated,
            "columns": self.columns,
            "logged": self.logged if math.isfinite(self.logged) else None,
            "lift": None if self.lift is None else self.lift.to_dict(),
            "heterogeneity": self.heterogeneity if math.isfinite(self.heterogeneity) else None,
            "segments": {name: each.to_dict() for name, each in self.segments.items()},
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
        from armwise.offline.results import html_pages

        return html_pages.saved(html_pages.evaluation_figure(self), path)

    def _repr_html_(self) -> str:
        from armwise.offline.results import html_pages

        return html_pages.evaluation_fragment(self)

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
        from armwise.offline.results import html_pages

        html_pages.evaluation_report(self, path)


@dataclass(frozen=True)
class Comparison:
    """The difference between two policies on the same log, first minus second.

    ``p_value`` is two-sided and of the same kind as the interval (``kind``): it is below 1 - level where the interval
    misses 0, and NaN for bets, which have none. ``better`` is "first", "second" or "neither".

    >>> from armwise.offline import Log, compare
    >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> compare(log, [1.0, 0.0], [0.5, 0.5], "ips").value
    0.25
    """

    first: Estimate
    second: Estimate
    value: float
    low: float
    high: float
    std_error: float
    p_value: float
    warnings: tuple[str, ...]
    kind: str = "normal"
    names: tuple[str, str] = ("first", "second")
    columns: str | None = None
    plan: Plan | None = None
    remarks: tuple[str, ...] = ()  # how the log was read
    estimated: str | None = None  # the model that estimated the probabilities

    @classmethod
    def of(
        cls, first: Estimate, second: Estimate, difference: Any, names: tuple[str, str] = ("first", "second"),
        columns: str | None = None, verdicts: Sequence[str] = (), plan: Plan | None = None,
        remarks: Sequence[str] = (), estimated: str | None = None,
    ) -> Comparison:  # fmt: skip
        """From the two estimates, their difference, and what else speaks against it."""
        error = math.sqrt(max(difference.variance, 0.0) / first.n)
        own = [f"{which}: {w}" for which, e in (("first", first), ("second", second)) for w in e.warnings
               if w not in verdicts]  # fmt: skip
        return cls(first, second, difference.value, difference.low, difference.high, error, difference.p_value,
                   (*verdicts, *own), difference.kind, names, columns, plan, tuple(remarks), estimated)  # fmt: skip

    def one_sided(self, side: OneSided, level: float) -> Comparison:
        """The same with only one end of each interval, whose level this is."""
        first, second = (replace(e, **_one_end(side, e, level)) for e in (self.first, self.second))
        return replace(self, first=first, second=second, **_one_end(side, self, level))

    @property
    def better(self) -> str:
        """The better policy, or "neither" if the interval contains 0.

        >>> from armwise.offline import Log, compare
        >>> log = Log(arms=[0, 1] * 50, rewards=[1, 0, 0, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
        >>> compare(log, [1.0, 0.0], [0.9, 0.1], "ips").better
        'first'
        """
        return "first" if self.low > 0 else "second" if self.high < 0 else "neither"

    @property
    def weaknesses(self) -> list[str]:
        """The faults that ``compare`` warns of: all but clipping (asked for) and the model's bias (known)."""
        known = (": biased", MODEL_ALONE, WIDENED, "tuned")
        return [text for text in self.warnings if not any(word in text for word in known)]

    def table(self) -> str:
        """Both policies and their difference, as lines of text."""
        return terminal.comparison_table(self)

    @property
    def cautions(self) -> list[str]:
        """Everything to know before trusting the difference: distinct sentences, the most important first."""
        shared = [
            ("", text) for text in (*self.warnings, *self.remarks) if not text.startswith(("first: ", "second: "))
        ]
        labels = self.names if self.names[0] != self.names[1] else ("first", "second")
        own = [(label, text) for label, e in zip(labels, (self.first, self.second), strict=True) for text in e.warnings
               if not text.startswith((MODEL_ALONE, WIDENED, "tuned"))]  # fmt: skip
        both = {text for _, text in own if all(text in e.warnings for e in (self.first, self.second))}
        own = [("" if text in both else label, text) for label, text in own]
        return distinct([*shared, *own])

    @property
    def answer(self) -> str:
        """Return in a sentence which policy is better."""
        return answers.of_comparison(self)

    def text(self, explain: bool = False) -> str:
        """The plan of the analysis, the answer, the table, the warnings; ``explain`` adds what stands behind them."""
        return terminal.full_text(self, terminal.comparison_lines(self), explain)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        numbers = _plain({k: getattr(self, k) for k in ("value", "low", "high", "std_error", "p_value")})
        return {"first": self.first.to_dict(), "second": self.second.to_dict(), **numbers, "better": self.better,
                "kind": self.kind, "names": list(self.names), "columns": self.columns,
                "plan": None if self.plan is None else self.plan.to_dict(), "answer": self.answer,
                "warnings": self.cautions}  # fmt: skip

    def plot(self, path: Any = None) -> Any:
        """Both policies and their difference, as a matplotlib figure (written to ``path`` if given)."""
        from armwise.offline.results import html_pages

        return html_pages.saved(html_pages.comparison_figure(self), path)

    def report(self, path: Any) -> None:
        """One self-contained HTML page."""
        from armwise.offline.results import html_pages

        html_pages.comparison_report(self, path)

    def _repr_html_(self) -> str:
        from armwise.offline.results import html_pages

        return html_pages.comparison_fragment(self)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, (float, np.floating)) and not math.isfinite(v) else v for k, v in values.items()}
