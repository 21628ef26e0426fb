"""Estimates with intervals from per-round scores, shared by rankings, continuous actions and others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.offline.intervals.intervals import skewed_interval
from armwise.offline.results.diagnostics import VERY_FEW, rare_rewards
from armwise.offline.results.estimates import WIDENED, Estimate, Evaluation
from armwise.offline.results.terminal import number

_ENOUGH = 5  # effective rows; of more, Student's quantile and the skewness know how few there are
_TOO_FEW = "too few rows answer the question: effective sample size"


@dataclass(frozen=True)
class Scored:
    """One estimator's scores: their mean is its value; ``centre`` has those of the interval, if they are others.

    ``without`` names an estimator that lacks this one's assumption, with its scores: where the assumption is in doubt,
    the interval reaches over that of the other. ``tried`` are the scores from which a test on the same rows went
    on to these: the interval reaches over theirs, since the noise that the test saw is what these scores weigh most.
    """

    scores: Floats
    weights: Floats | None = None
    warnings: tuple[str, ...] = ()
    parameter: float | None = None
    centre: Floats | None = None
    without: tuple[str, Floats] | None = None
    tried: tuple[Floats, ...] = ()


def ratio(top: Floats, bottom: Floats) -> Floats:
    """The scores of sum(top) / sum(bottom), linearised: their mean is the ratio, their spread its error."""
    total = bottom.mean()
    if not total > 0:
        return np.full(len(top), np.nan)
    value = top.mean() / total
    return np.asarray(value + (top - value * bottom) / total)


def title(policy: Any) -> str:
    """Return the display name of a policy: a function's name, a constant action, or its class."""
    if isinstance(policy, (int, float, np.number)):
        return f"always {policy:g}"
    if isinstance(policy, (np.ndarray, list, tuple)):
        return "a policy given as an array"
    return str(getattr(policy, "__name__", type(policy).__name__))


def evaluation(
    found: Mapping[str, Scored], target: str, level: float, *, rewards: Floats | None = None, per: str = "decision",
    about: Sequence[str] = (),
) -> Evaluation:  # fmt: skip
    """The scores as a result with intervals, effective sample sizes and warnings.

    ``rewards`` are the log's, one per row: what it earned, and whether the rows that count show more than one of them.
    """
    estimates = {}
    for name, scored in found.items():
        n, value = len(scored.scores), float(scored.scores.mean())
        centre = scored.scores if scored.centre is None else scored.centre
        error = float(centre.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        low, high = np.transpose([_ends(each, level) for each in (centre, *scored.tried)])
        low, high = float(low.min()), float(high.max())
        against = _weaknesses(scored.weights)
        if rewards is not None and scored.weights is not None and not against:  # few rows have few rewards anyway
            against = rare_rewards(rewards, VERY_FEW, np.abs(scored.weights))
        warnings = (*against, *scored.warnings)
        if scored.without is not None:
            other, others = scored.without
            (less, more), doubt = _ends(others, level), f"over that of {other}, which needs no such assumption"
            low, high, warnings = min(low, less), max(high, more), (*warnings, f"{WIDENED} {doubt}")
        estimates[name] = Estimate(
            name, value, low, high, error, n, effective_size(scored.weights), warnings, "normal", level,
            scored.parameter,
        )  # fmt: skip
    result = ScoredEvaluation(
        estimates, None, target, "normal", level, logged=math.nan if rewards is None else rewards.mean()
    )
    result.per, result.about = per, list(about)
    return result


def _ends(scores: Floats, level: float) -> tuple[float, float]:
    """The interval of the scores' mean."""
    n, middle = len(scores), float(scores.mean())
    return skewed_interval(middle, (scores - middle) / math.sqrt(n * (n - 1.0)) if n > 1 else scores * math.nan, level)


class ScoredEvaluation(Evaluation):
    """An evaluation whose verdict is what its estimates say against themselves."""

    about: list[str]

    @property
    def weaknesses(self) -> list[str]:
        """Return warnings, each with its estimators; without the bias of clipping that was requested."""
        said: dict[str, list[str]] = {}
        for e in self.values():
            for text in e.warnings:
                if not text.startswith(("biased", _TOO_FEW, WIDENED)):
                    said.setdefault(text, []).append(e.name)
        few: dict[str, list[str]] = {}
        for e in self.values():
            if e.ess < _ENOUGH:
                few.setdefault(f"{e.ess:,.0f}", []).append(e.name)
        sizes = ", ".join(f"{size} ({', '.join(names)})" for size, names in few.items())
        first = [f"{_TOO_FEW} {sizes} of {next(iter(self.values())).n:,}"] if few else []
        return first + [
            text if len(names) == len(self) else f"{', '.join(names)}: {text}" for text, names in said.items()
        ]

    @property
    def notes(self) -> list[str]:
        """Return notes: the log's mean reward, kinds of intervals, and assumptions."""
        earned = [f"the log earned {number(self.logged)} per {self.per}"] if math.isfinite(self.logged) else []
        return [*earned, *super().notes, *self.about]


def known_estimators(estimators: str | Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the requested estimators' names; refuse those that the design lacks."""
    names = [estimators] if isinstance(estimators, str) else list(estimators)
    for name in names:
        if name not in known:
            raise ValueError(f"estimators has {name!r}, expected {', '.join(known)}")
    return names


def effective_size(weights: Floats | None) -> float:
    if weights is None:
        return math.nan
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _weaknesses(weights: Floats | None) -> list[str]:
    if weights is None or not len(weights):
        return []
    n, ess, found = len(weights), effective_size(weights), []
    if ess < _ENOUGH:
        found.append(f"{_TOO_FEW} {ess:,.0f} of {n:,}")
    mean, error = float(weights.mean()), float(weights.std()) / math.sqrt(n)
    if abs(mean - 1.0) > max(5.0 * error, 0.02):
        cause = "the log never tries what the target wants, or its" if mean < 1 else "its"
        found.append(f"the weights average {mean:.3g}, not 1: {cause} probabilities are wrong")
    return found
