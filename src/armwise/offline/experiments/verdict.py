"""The verdict on an experiment: numbers per arm and metric, and whether to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from armwise.core.tools.text_tables import html_table, text_table
from armwise.offline.logs.cohorts import duration

Action = Literal["stop", "go on", "check"]
EARLY = ("numbers within an age are of all units as old, whatever they brought, and hold however often you look (the "
         "ages share the risk); what comes later in the window may differ, so they are no reason to stop")  # fmt: skip
BAYESIAN = "chance to be best: Bayesian, flat prior, not corrected for several metrics; no reason to stop"


@dataclass(frozen=True)
class ArmResult:
    """One arm and metric; ends are infinite, and numbers NaN, where nothing can be said yet.

    >>> ArmResult("blue", "buy", units=100, mean=0.2, low=0.1, high=0.3).better_after
    0
    """

    arm: str
    metric: str
    units: int
    mean: float
    low: float
    high: float
    lift: float = math.nan
    lift_low: float = -math.inf
    lift_high: float = math.inf
    relative: float = math.nan
    relative_low: float = -math.inf
    relative_high: float = math.inf
    best: float = math.nan  # chance to be best
    better_after: int = 0  # units when it was proved to be better than control; 0: it was not
    worse_after: int = 0  # or worse; for a guardrail, by more than its tolerance


@dataclass(frozen=True)
class EarlyLook:
    """The results of one metric within an age of the units, of all that are as old, while windows are open."""

    metric: str
    age: float  # seconds
    window: float
    results: tuple[ArmResult, ...]

    @property
    def within(self) -> str:
        """The age in words."""
        return duration(self.age)

    @property
    def title(self) -> str:
        """The title of the numbers."""
        n = sum(r.units for r in self.results)
        window = duration(self.window)
        return f"{self.metric} within {self.within} of the exposure ({n:,} units as old; the window is {window})"


@dataclass(frozen=True)
class ExperimentVerdict:
    """The verdict: ``action``, the sentence, every arm's numbers, and what they rest on. It prints as a table.

    ``action`` is "stop", "go on", or "check" where the shares of the arms are not those that were stated, among the
    units or among those with an outcome of a metric whose outcomes are all reported.

    >>> from armwise.offline import ExperimentAnalysis
    >>> ExperimentAnalysis(["control", "blue"]).verdict().action
    'go on'
    """

    action: Action
    sentence: str
    arm: str | None  # which is better, or harmful
    results: tuple[ArmResult, ...]
    units: dict[str, int]
    mismatch: float  # anytime-valid p-value of the shares being as stated
    notes: tuple[str, ...]
    rests_on: tuple[str, ...]
    more_units: int | None = None
    early: tuple[EarlyLook, ...] = ()  # metrics that few units have settled; no reason to stop
    missing: dict[str, float] = field(default_factory=dict)  # by metric: as mismatch, of the units with an outcome

    def result(self, arm: str, metric: str) -> ArmResult:
        """The numbers of one arm and metric."""
        for each in self.results:
            if (each.arm, each.metric) == (arm, metric):
                return each
        raise ValueError(f"no numbers of arm {arm!r} and metric {metric!r}: known are "
                         f"{sorted({(r.arm, r.metric) for r in self.results})}")  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: None for unknown numbers."""

        def plain(value: Any) -> Any:
            if isinstance(value, float):
                return value if math.isfinite(value) else None
            if isinstance(value, dict):
                return {name: plain(each) for name, each in value.items()}
            return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

        found: dict[str, Any] = plain(asdict(self))
        return found

    HEADINGS = ("arm", "metric", "units", "mean", "interval", "lift", "interval", "relative", "best")

    def cells(self, results: Sequence[ArmResult] | None = None) -> list[list[str]]:
        """The table's rows; of an early look where its results are given."""
        rows = []
        for r in self.results if results is None else results:
            chance = "" if math.isnan(r.best) else f"{100 * r.best:.0f} %"
            row = [r.arm, r.metric, f"{r.units:,}", _number(r.mean), show_ends(r.low, r.high)]
            if math.isnan(r.lift):
                row += ["", "", "", chance]
            else:
                relative = (
                    ""
                    if math.isnan(r.relative)
                    else f"{_percent(r.relative)} {show_ends(r.relative_low, r.relative_high, _percent)}"
                )
                row += [show_signed(r.lift), show_ends(r.lift_low, r.lift_high, show_signed), relative, chance]
            rows.append(row)
        return rows

    @property
    def remarks(self) -> list[str]:
        """Every caveat, and what the numbers rest on."""
        chance = [BAYESIAN] if any(not math.isnan(r.best) for r in self.results) else []
        early = [EARLY] if self.early else []
        return [*self.notes, *early, *chance, *(f"rests on: {each}" for each in self.rests_on)]

    def __str__(self) -> str:
        lines = [self.sentence, "", text_table(self.HEADINGS, self.cells()), ""]
        for look in self.early:
            lines += [f"{look.title}:", "", text_table(self.HEADINGS, self.cells(look.results)), ""]
        return "\n".join(lines + [f"- {remark}" for remark in self.remarks])

    def _repr_html_(self) -> str:
        early = "".join(html_table(self.HEADINGS, self.cells(each.results), title=each.title) for each in self.early)
        return html_table(self.HEADINGS, self.cells(), title=self.sentence, note="; ".join(self.remarks)) + early


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"


def show_signed(value: float) -> str:
    return f"{value:+.3g}"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %"


def show_ends(low: float, high: float, shown: Any = _number) -> str:
    if not math.isfinite(low) and not math.isfinite(high):
        return "not yet"
    return f"[{shown(low) if math.isfinite(low) else '-inf'}, {shown(high) if math.isfinite(high) else 'inf'}]"
