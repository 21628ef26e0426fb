"""From per-round scores to estimates with intervals: what rankings, continuous actions and the like share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from armwise.agent import Floats
from armwise.offline.result import Estimate, Evaluation

_ENOUGH = 30  # effective rows below which no interval is to be relied on


@dataclass(frozen=True)
class Scored:
    """One estimator's scores: their mean is its value; ``centre`` has those of the interval, if they are others."""

    scores: Floats
    weights: Floats | None = None
    warnings: tuple[str, ...] = ()
    parameter: float | None = None
    centre: Floats | None = None


def ratio(top: Floats, bottom: Floats) -> Floats:
    """The scores of sum(top) / sum(bottom), linearised: their mean is the ratio, their spread its error.

    >>> ratio(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([1., 2.])
    """
    total = bottom.mean()
    if not total > 0:
        return np.full(len(top), np.nan)
    value = top.mean() / total
    return np.asarray(value + (top - value * bottom) / total)


def freedom(scores: Floats) -> float:
    """Degrees of freedom of the scores' variance: few rows that carry most of it are few (Satterthwaite 1946).

    >>> round(freedom(np.random.default_rng(1).normal(size=100_000)), -4)
    100000.0
    """
    squares = (scores - scores.mean()) ** 2
    total = float(squares.sum())
    if not total > 0.0:
        return 1.0
    relative = float(squares @ squares) / total**2 - 1.0 / len(squares)  # the variance's own, relative to its square
    return max(1.0, 2.0 / max(relative, 1e-12))


def evaluation(found: Mapping[str, Scored], target: str, level: float) -> Evaluation:
    """The scores as a result with intervals, effective sample sizes and warnings.

    >>> evaluation({"mean": Scored(np.array([0.0, 1.0] * 50))}, "coin", 0.95)["mean"].value
    0.5
    """
    estimates = {}
    for name, scored in found.items():
        n, value = len(scored.scores), float(scored.scores.mean())
        centre = scored.scores if scored.centre is None else scored.centre
        error = float(centre.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        half = float(stdtrit(freedom(centre), 0.5 + level / 2)) * error
        middle = float(centre.mean())
        warnings = (*_weaknesses(scored.weights), *scored.warnings)
        estimates[name] = Estimate(
            name, value, middle - half, middle + half, error, n, _ess(scored.weights), warnings, "normal", level,
            scored.parameter,
        )  # fmt: skip
    return Judged(estimates, None, target, "normal", level)


class Judged(Evaluation):
    """An evaluation whose verdict is what its estimates say against themselves."""

    @property
    def weaknesses(self) -> list[str]:
        """What speaks against the numbers, but for a bias that was asked for."""
        every = [text for e in self.values() for text in e.warnings if not text.startswith("biased")]
        return list(dict.fromkeys(every))


def _ess(weights: Floats | None) -> float:
    if weights is None:
        return math.nan
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _weaknesses(weights: Floats | None) -> list[str]:
    if weights is None or not len(weights):
        return []
    n, ess, found = len(weights), _ess(weights), []
    if ess < _ENOUGH:
        found.append(f"too few rows answer the question: effective sample size {ess:,.0f} of {n:,}")
    mean, error = float(weights.mean()), float(weights.std()) / math.sqrt(n)
    if abs(mean - 1.0) > max(5.0 * error, 0.02):
        cause = "the log never tries what the target wants, or its" if mean < 1 else "its"
        found.append(f"the weights average {mean:.3g}, not 1: {cause} probabilities are wrong")
    return found
