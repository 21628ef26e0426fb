"""The plan of an analysis: the design of the log, its columns and rows, and why this estimator and this interval."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.offline.logs.checks.duplicates import MAX_SAMPLE

if TYPE_CHECKING:
    from armwise.offline.logs.log import Log
    from armwise.offline.logs.rows import LogBlock

_MOVED = (
    0.1  # by which the probability of an arm moves from the first tenth of the rows to the last, if an agent learns
)
_FEW_ARMS = 6  # whose probabilities are named
_WIDTH, _INDENT = 100, 12
_MAX_LINES = 4  # of the names of columns

ESTIMATORS = {
    "ips": "inverse propensity score: unbiased if the probabilities are right, high variance",
    "snips": "self-normalised IPS: slightly biased, less variance",
    "dm": "direct method: the reward model alone, whose bias nothing corrects",
    "dr": "doubly robust: a reward model, corrected on the logged arms; right if the probabilities or the model are",
    "sndr": "doubly robust with self-normalised corrections: right if the probabilities or the model are",
    "switch-dr": "doubly robust below a weight, the model above it; the interval is that of dr",
    "dros": "doubly robust with shrunken weights; the interval is that of dr",
    "sips": "weights of whole rankings: right whatever a user does, high variance",
    "iips": "weights of each slot alone: right if its reward depends on its own arm only",
    "rips": "weights of a slot and those above it: right if a user reads from the top",
    "pi": "pseudo-inverse: right if the ranking's reward is a sum over slots that were filled independently",
    "cascade-dr": "rips, with a model of the rewards: right if a user reads from the top, less variance",
    "kernel-ips": "inverse density, smoothed over nearby actions: high variance",
    "kernel-snips": "self-normalised: slightly biased, less variance",
    "kernel-dr": "a reward model, corrected on nearby actions",
}
_INTERVALS = {
    "cressie-read": "an empirical likelihood, because the rewards are bounded: it covers where a normal one does not",
    "skew-corrected": "from the variance and the skewness of the rows, because nothing bounds the rewards "
    "(reward_range=, --reward-range would)",
    "normal": "from the variance of the rows, because nothing bounds the rewards (reward_range=, --reward-range would)",
    "bootstrap": "from resampled rows",
    "bernstein": "valid for every number of rows, and wide",
    "betting": "valid for every number of rows, if the mean stays the same over the log",
    "sequence": "valid at every row, so that you may look at any time, if the mean stays the same over the log",
}


@dataclass(frozen=True)
class Plan:
    """The plan of an evaluation: its findings and choices, one sentence each."""

    design: str
    columns: str
    rows: str
    estimator: str
    interval: str

    def lines(self, explain: bool = False) -> list[str]:
        """Return the plan as lines for a terminal; ``explain`` names all columns, however many there are."""
        found = []
        for name, text in asdict(self).items():
            label = name
            for part in text.split("; ") if name == "columns" else [text]:
                lines = textwrap.wrap(part, _WIDTH - _INDENT) or [""]
                if name == "columns" and len(lines) > _MAX_LINES and not explain:
                    lines = [*lines[: _MAX_LINES - 1], "... and others (--explain names all)"]
                found += [f"  {label:<{_INDENT - 2}}{lines[0]}", *(" " * _INDENT + line for line in lines[1:])]
                label = ""
        return found

    def to_dict(self) -> dict[str, str]:
        """Plain values, for JSON."""
        return asdict(self)


def plan_of(
    log: Log, estimates: Mapping[str, Any], headline: str, interval: str, cluster: Any = None, difference: str = ""
) -> Plan:
    """The plan behind these estimates, ``headline`` the answer's, for the interval that was asked for.

    ``difference`` is the kind of interval of a difference, where one is the answer.
    """
    kind = difference or estimates[headline].interval
    why = _INTERVALS.get(kind, "")
    if kind in ("normal", "skew-corrected") and difference:
        why = "from the variance of the differences, row by row"
    asked = "" if interval == "auto" else ", as asked"
    together = "" if cluster is None else "; rows of one cluster count together"
    others = [name for name in estimates if name != headline]
    beside = f"; beside it {', '.join(others)}" if others else ""
    return Plan(design_of(log), log.columns_used or "arrays: no column has a name", _rows(log, estimates[headline].n),
                f"{headline}, {ESTIMATORS.get(headline, 'as asked')}{beside}",
                f"{kind}{asked}{f', {why}' if why else ''}{together}")  # fmt: skip


def _rows(log: Log, n: int) -> str:
    left = {why: times for why, times in log.rows_left_out.items() if times}
    out = "left out: " + ", ".join(f"{times:,} {why}" for why, times in left.items()) if left else "none left out"
    checked = f"; checks of the assumptions use {MAX_SAMPLE:,} of them" if n > MAX_SAMPLE else ""
    return f"{n:,} used; {out}{checked}" if left else f"{n:,} used, {out}{checked}"


def design_of(log: Log) -> str:
    """Infer from the first rows how the arms of a log were drawn."""
    if log.estimated:
        why = "the log's own probabilities are left aside, as asked" if log.left_aside else (
            "the log does not say how its arms were drawn")  # fmt: skip
        return f"estimated: {why}, so {log.estimated} estimates the probabilities"
    if not log.has_probabilities:
        return "unknown: the log has no probabilities, so only a reward model can answer"
    rows = log.first_rows
    if rows is None or rows.probabilities is None or not len(rows):
        return "known probabilities"
    n = len(rows)
    whole = log.constant_probability or n < MAX_SAMPLE or (log.counted and len(log) <= n)
    sample = "" if whole else f" (in the first {n:,} rows)"
    p, arms = rows.probabilities, rows.arms
    K = log.n_arms
    least, most = np.full(K, np.inf), np.zeros(K)
    np.minimum.at(least, arms, p)
    np.maximum.at(most, arms, p)
    seen = most > 0
    if rows.available is None and np.all(most[seen] - least[seen] <= 1e-9):
        return f"randomised trial: {_trial(log, least, seen)}{sample}"
    if log.logged_by:
        return f"agent's log: {log.logged_by} drew the arms with the probabilities that it wrote{sample}"
    if _moves(rows, K):
        return f"agent's log: the probabilities of the arms are known, and move from the first rows to the last{sample}"
    return f"known probabilities: they differ from row to row, {p.min():.3g} to {p.max():.3g}{sample}"


def _trial(log: Log, p: Any, seen: Any) -> str:
    values = p[seen]
    if np.ptp(values) <= 1e-9 and len(values) > 2:
        return f"each of the {len(values)} arms was drawn with probability {values[0]:.4g}"
    names = [str(name) for name in log.arm_names] if log.arm_names is not None else [f"arm {i}" for i in range(len(p))]
    shown = [f"{names[i]} {'was drawn with probability' if j == 0 else 'with'} {p[i]:.4g}"
             for j, i in enumerate(np.flatnonzero(seen)[:_FEW_ARMS])]  # fmt: skip
    return ", ".join(shown) + (", ..." if seen.sum() > _FEW_ARMS else "")


def _moves(rows: LogBlock, n_arms: int) -> bool:
    """Whether the mean probability of an arm that is often drawn moves over the rows, as when an agent learns."""
    tenth = len(rows) // 10
    if tenth < 100:
        return False
    assert rows.probabilities is not None
    means = []
    for part in (slice(0, tenth), slice(-tenth, None)):
        count = np.bincount(rows.arms[part], minlength=n_arms)
        total = np.bincount(rows.arms[part], rows.probabilities[part], minlength=n_arms)
        means.append(np.where(count >= 20, total / np.maximum(count, 1), np.nan))
    with np.errstate(invalid="ignore"):
        return bool(np.nanmax(np.append(np.abs(means[1] - means[0]), 0.0)) > _MOVED)
