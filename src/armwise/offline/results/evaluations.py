"""Several policies judged on one log: their values, lifts and segments, with intervals that hold for all at once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from armwise.offline.results import answers, terminal
from armwise.offline.results.analysis_plan import Plan
from armwise.offline.results.cautions import distinct
from armwise.offline.results.estimates import Evaluation


class Evaluations(Mapping[str, Evaluation]):
    """The evaluation of each policy by its name.

    >>> from armwise.offline import Log, evaluate
    >>> log = Log(arms=[0, 1, 0, 0] * 25, rewards=[1, 0, 1, 0] * 25, probabilities=[0.5] * 100, n_arms=2)
    >>> found = evaluate(log, {"old": [0.5, 0.5], "new": [0.8, 0.2]}, "snips", baseline="old", warn=False)
    >>> list(found), round(found["new"].lift.value, 3)
    (['old', 'new'], 0.115)
    """

    def __init__(
        self, evaluations: dict[str, Evaluation], baseline: str | None, by: str, apart: float | None = None
    ) -> None:
        self._evaluations, self.baseline, self.by = evaluations, baseline, by
        self._earned = apart  # by the whole log, where each policy is judged on the rows that offered it

    @property
    def apart(self) -> bool:
        """Whether policies are judged on different rows, those in which each was on offer: values do not compare."""
        return self._earned is not None

    @property
    def logged(self) -> float:
        """The log's own reward per decision."""
        return next(iter(self.values())).logged if self._earned is None else self._earned

    def __getitem__(self, name: str) -> Evaluation:
        return self._evaluations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluations)

    def __len__(self) -> int:
        return len(self._evaluations)

    @property
    def weaknesses(self) -> list[str]:
        """The faults of the log: those of all policies once, those of single ones with their names."""
        found = {name: each.weaknesses for name, each in self.items()}
        shared = [text for text in next(iter(found.values())) if all(text in texts for texts in found.values())]
        return [*shared, *(f"{name}: {t}" for name, texts in found.items() for t in texts if t not in shared)]

    @property
    def verdict(self) -> str:
        """All warnings about these numbers in one line; empty if there are none."""
        return "; ".join(self.weaknesses)

    @property
    def plan(self) -> Plan | None:
        """The plan of the analysis, which is the same for all policies; rows are those of all."""
        plan = next(iter(self.values())).plan
        if plan is None or not self.apart:
            return plan
        return replace(plan, rows="each policy's own, in which it was on offer: see the table and the warnings")

    @property
    def notes(self) -> list[str]:
        """Notes for a reader that are no faults of the log: kinds of intervals, columns, the bias of "dm"."""
        return next((each.notes for each in self.values() if each.lift is not None), next(iter(self.values())).notes)

    @property
    def cautions(self) -> list[str]:
        """Everything to know before trusting these numbers: distinct sentences, the most important first."""
        found = {name: each.findings() for name, each in self.items()}
        shared = set.intersection(*(set(findings) for findings in found.values()))
        named = [(segment if (segment, text) in shared else ", ".join(filter(None, [segment, name])), text)
                 for name, findings in found.items() for segment, text in findings]  # fmt: skip
        return distinct(named)

    @property
    def answer(self) -> str:
        """Return in a sentence or two which policy would have earned most."""
        return answers.of_several(self)

    def text(self, explain: bool = False) -> str:
        """The plan of the analysis, the answer, the table, the warnings; ``explain`` adds what stands behind them."""
        return terminal.full_text(self, terminal.several_lines(self), explain)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def table(self) -> str:
        """Values, lifts and segments as lines of text, with the verdict below."""
        return terminal.several_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        logged = self.logged
        return {"policies": {name: each.to_dict() for name, each in self.items()}, "baseline": self.baseline,
                "by": self.by, "logged": logged if math.isfinite(logged) else None, "verdict": self.verdict,
                "plan": None if self.plan is None else self.plan.to_dict(), "answer": self.answer,
                "warnings": self.cautions}  # fmt: skip

    def to_json(self, indent: int | None = 2) -> str:
        """Everything, as JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def plot(self, path: Any = None) -> Any:
        """The policies' intervals side by side and what the log earned as a line, as a matplotlib figure."""
        from armwise.offline.results import html_pages

        return html_pages.saved(html_pages.several_figure(self), path)

    def report(self, path: Any) -> None:
        """One self-contained HTML page: pictures, tables, segments, verdict."""
        from armwise.offline.results import html_pages

        html_pages.several_report(self, path)

    def _repr_html_(self) -> str:
        from armwise.offline.results import html_pages

        return html_pages.several_fragment(self)
