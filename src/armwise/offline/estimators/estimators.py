"""Estimators of a fixed policy's value: each turns rounds into columns of scores, and their means into a value.

Everything else (intervals, tests, streaming) is shared: a value is a smooth function of column means.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from armwise.core.agent import Floats, positive
from armwise.offline.estimators.slope import slope


@dataclass(frozen=True)
class Facts:
    """The inputs of an estimator for some rounds: r, w = pi(a|x) / max(p, clip), and q of a model if used."""

    rewards: Floats
    weights: Floats
    q_logged: Floats | None = None  # the model's reward of the logged arm
    q_target: Floats | None = None  # the model's reward under the target: sum over a of pi(a|x) q(x, a)

    @cached_property
    def weighted_rewards(self) -> Floats:
        """w r."""
        return self.weights * self.rewards

    @cached_property
    def corrections(self) -> Floats:
        """w (r - q): the importance-weighted error of the model."""
        return self.weights * (self.rewards - self.q_logged)  # type: ignore[operator]


@dataclass(frozen=True)
class Estimator:
    """An estimator of a policy's value; by default the mean of its one column.

    >>> facts = Facts(rewards=np.array([1.0, 0.0]), weights=np.array([1.0, 2.0]))
    >>> IPS().scores(facts)
    array([1., 0.])
    """

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = True
    by_dr: ClassVar[bool] = False  # whether its interval is that of DR, whose scores are its first column
    reference: ClassVar[str] = ""

    def columns(self, facts: Facts) -> list[Floats]:
        """The per-round numbers whose means make the value."""
        raise NotImplementedError

    def value(self, means: Floats) -> Any:
        """The value, from the columns' means along the last axis."""
        return means[..., 0]

    def gradient(self, means: Floats) -> Floats:
        """The derivative of ``value`` at these means (delta method)."""
        return np.ones(1)

    def settled(self, means: Floats, covariance: Floats, n: int) -> Estimator:
        """Return this estimator with its tuning parameter chosen from the data, unless it was given."""
        return self

    def n_columns(self) -> int:
        """The number of columns."""
        return 1

    def interval_value(self, means: Floats) -> Any:
        """The centre of its interval: the value, but for what was shrunk or chosen (then DR's)."""
        return self.value(means)

    def interval_gradient(self, means: Floats) -> Floats:
        """The derivative of ``interval_value``."""
        return self.gradient(means)

    def score_range(self, low: float, high: float, weight: float) -> tuple[float, float]:
        """Return the range of a linearised score for rewards in [low, high] and weights in [0, weight]."""
        if self.needs_model:
            return low - weight * (high - low), high + weight * (high - low)
        return min(0.0, low * weight), max(0.0, high * weight)

    def scores(self, facts: Facts, means: Floats | None = None) -> Floats:
        """Return one score per round, whose mean is the value and whose spread gives its standard error.

        A self-normalised value is not a mean; its scores are linearised around the columns' means.
        """
        columns = np.stack(self.columns(facts), axis=-1)
        means = columns.mean(axis=0) if means is None else means
        scores: Floats = self.value(means) + (columns - means) @ self.gradient(means)
        return scores


@dataclass(frozen=True)
class IPS(Estimator):
    """Inverse propensity score: the mean of w r. Unbiased where the log covers the target.

    >>> float(IPS().value(np.array([0.25])))
    0.25
    """

    name: ClassVar[str] = "ips"
    reference: ClassVar[str] = "Horvitz & Thompson 1952; Strehl et al. 2010"

    def columns(self, facts: Facts) -> list[Floats]:
        return [facts.weighted_rewards]


@dataclass(frozen=True)
class SNIPS(Estimator):
    """Self-normalised IPS: sum w r / sum w. A small bias for much less variance; never leaves the rewards' range.

    >>> float(SNIPS().value(np.array([0.25, 0.5])))
    0.5
    """

    name: ClassVar[str] = "snips"
    reference: ClassVar[str] = "Swaminathan & Joachims 2015"

    def columns(self, facts: Facts) -> list[Floats]:
        return [facts.weighted_rewards, facts.weights]

    def value(self, means: Floats) -> Any:
        return _ratio(means[..., 0], means[..., 1])

    def gradient(self, means: Floats) -> Floats:
        return np.array([1.0, -self.value(means)]) / means[1] if means[1] > 0 else np.full(2, np.nan)

    def n_columns(self) -> int:
        return 2


@dataclass(frozen=True)
class DM(Estimator):
    """Direct method: the mean of the model's q under the target. As good or bad as the model, whatever the log.

    >>> float(DM().value(np.array([0.25])))
    0.25
    """

    name: ClassVar[str] = "dm"
    needs_model: ClassVar[bool] = True
    needs_weights: ClassVar[bool] = False

    def columns(self, facts: Facts) -> list[Floats]:
        assert facts.q_target is not None
        return [facts.q_target]

    def score_range(self, low: float, high: float, weight: float) -> tuple[float, float]:
        return low - (high - low), high + (high - low)  # a regression may answer a little outside the range


@dataclass(frozen=True)
class DR(Estimator):
    """Doubly robust: the model, corrected by the weighted error it makes on the logged arms.

    >>> facts = Facts(np.array([1.0]), np.array([2.0]), q_logged=np.array([0.5]), q_target=np.array([0.4]))
    >>> DR().scores(facts)
    array([1.4])
    """

    name: ClassVar[str] = "dr"
    needs_model: ClassVar[bool] = True
    reference: ClassVar[str] = "Dudik, Langford, Li 2011"

    def columns(self, facts: Facts) -> list[Floats]:
        assert facts.q_target is not None
        return [facts.q_target, facts.corrections]

    def value(self, means: Floats) -> Any:
        return means[..., 0] + means[..., 1]

    def gradient(self, means: Floats) -> Floats:
        return np.ones(2)

    def n_columns(self) -> int:
        return 2


@dataclass(frozen=True)
class SNDR(Estimator):
    """Doubly robust with self-normalised corrections.

    >>> float(SNDR().value(np.array([0.5, 0.25, 0.5])))
    1.0
    """

    name: ClassVar[str] = "sndr"
    needs_model: ClassVar[bool] = True

    def columns(self, facts: Facts) -> list[Floats]:
        assert facts.q_target is not None
        return [facts.q_target, facts.corrections, facts.weights]

    def value(self, means: Floats) -> Any:
        return means[..., 0] + _ratio(means[..., 1], means[..., 2])

    def gradient(self, means: Floats) -> Floats:
        if not means[2] > 0:
            return np.full(3, np.nan)
        return np.array([1.0, 1.0 / means[2], -means[1] / means[2] ** 2])

    def n_columns(self) -> int:
        return 3


@dataclass(frozen=True)
class _Tuned(Estimator):
    """DR with weights made smaller; how much smaller is a parameter, or chosen by SLOPE (Su et al. 2020).

    The candidates are columns, DR the first of them and each more biased and less variable than the one before. SLOPE
    takes the last whose interval (two widths either way) meets those of all before it; so the choice needs only means
    and variances, and streams. What was chosen, or shrunk, has a bias that its own variance does not know: the
    interval is DR's.
    """

    needs_model: ClassVar[bool] = True
    by_dr: ClassVar[bool] = True
    grid: ClassVar[tuple[float, ...]] = ()

    def _fixed(self) -> float | None:
        """The parameter if it was given."""
        raise NotImplementedError

    def _shrunk(self, weights: Floats, parameter: float) -> Floats:
        raise NotImplementedError

    def columns(self, facts: Facts) -> list[Floats]:
        error = facts.rewards - facts.q_logged  # type: ignore[operator]
        return [facts.q_target + self._shrunk(facts.weights, parameter) * error for parameter in self._candidates()]

    def _candidates(self) -> tuple[float, ...]:
        fixed = self._fixed()
        return self.grid if fixed is None else (np.inf, fixed)

    def n_columns(self) -> int:
        return len(self._candidates())

    def value(self, means: Floats) -> Any:
        return means[..., -1]  # of a fixed parameter: a tuned one is settled first

    def gradient(self, means: Floats) -> Floats:
        return _unit(self.n_columns(), self.n_columns() - 1)

    def settled(self, means: Floats, covariance: Floats, n: int) -> Estimator:
        if self._fixed() is not None:
            return self
        return _Settled(self, slope(means, 2.0 * np.sqrt(np.diag(covariance) / n)))

    def interval_value(self, means: Floats) -> Any:
        return means[..., 0]

    def interval_gradient(self, means: Floats) -> Floats:
        return _unit(self.n_columns(), 0)


@dataclass(frozen=True)
class _Settled(Estimator):
    """One column of a tuned estimator."""

    tuned: _Tuned
    column: int
    needs_model: ClassVar[bool] = True
    by_dr: ClassVar[bool] = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.tuned.name

    @property
    def parameter(self) -> float:
        """The chosen parameter."""
        return self.tuned.grid[self.column]

    def columns(self, facts: Facts) -> list[Floats]:
        return self.tuned.columns(facts)

    def value(self, means: Floats) -> Any:
        return means[..., self.column]

    def gradient(self, means: Floats) -> Floats:
        return _unit(self.tuned.n_columns(), self.column)

    def n_columns(self) -> int:
        return self.tuned.n_columns()

    def interval_value(self, means: Floats) -> Any:
        return self.tuned.interval_value(means)

    def interval_gradient(self, means: Floats) -> Floats:
        return self.tuned.interval_gradient(means)


@dataclass(frozen=True)
class SwitchDR(_Tuned):
    """DR where w <= tau, the model alone above it. Without ``tau`` it is chosen from a grid (Wang et al. 2017).

    >>> facts = Facts(np.ones(2), np.array([2.0, 50.0]), q_logged=np.full(2, 0.5), q_target=np.full(2, 0.4))
    >>> SwitchDR(tau=10.0).scores(facts)
    array([1.4, 0.4])
    """

    tau: float | None = None
    name: ClassVar[str] = "switch-dr"
    reference: ClassVar[str] = "Wang, Agarwal, Dudik 2017"
    grid: ClassVar[tuple[float, ...]] = (np.inf, 1000.0, 500.0, 200.0, 100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0)

    def __post_init__(self) -> None:
        if self.tau is not None and self.tau != np.inf:
            positive("tau", self.tau, zero=True)

    def _fixed(self) -> float | None:
        return self.tau

    def _shrunk(self, weights: Floats, parameter: float) -> Floats:
        return np.where(weights <= parameter, weights, 0.0)


@dataclass(frozen=True)
class DRos(_Tuned):
    """DR with optimistic shrinkage: w becomes lam w / (w^2 + lam). Without ``lam`` it is chosen from a grid.

    >>> facts = Facts(np.ones(1), np.array([2.0]), q_logged=np.array([0.5]), q_target=np.array([0.4]))
    >>> DRos(lam=4.0).scores(facts)
    array([0.9])
    """

    lam: float | None = None
    name: ClassVar[str] = "dros"
    reference: ClassVar[str] = "Su, Dimakopoulou, Krishnamurthy, Dudik 2020"
    grid: ClassVar[tuple[float, ...]] = (np.inf, 1e5, 1e4, 5e3, 1e3, 500.0, 100.0, 50.0, 10.0, 5.0, 1.0, 0.1)

    def __post_init__(self) -> None:
        if self.lam is not None and self.lam != np.inf:
            positive("lam", self.lam, zero=True)

    def _fixed(self) -> float | None:
        return self.lam

    def _shrunk(self, weights: Floats, parameter: float) -> Floats:
        if parameter == np.inf:
            return weights
        return parameter * weights / np.maximum(weights**2 + parameter, np.finfo(float).tiny)


def _unit(n: int, at: int) -> Floats:
    vector = np.zeros(n)
    vector[at] = 1.0
    return vector


def _ratio(top: Any, bottom: Any) -> Any:
    """top / bottom, and NaN where nothing matched."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.nan)[()]


_KNOWN: dict[str, type[Estimator]] = {
    "ips": IPS, "snips": SNIPS, "dm": DM, "dr": DR, "sndr": SNDR, "switch-dr": SwitchDR, "dros": DRos
}  # fmt: skip
_OTHER_NAMES = {"ipw": "ips", "snipw": "snips", "switch": "switch-dr", "switchdr": "switch-dr", "dr-os": "dros"}


def named(estimators: str | Estimator | Iterable[str | Estimator]) -> list[Estimator]:
    """Return the estimators for these names or objects."""
    asked = [estimators] if isinstance(estimators, (str, Estimator)) else list(estimators)
    found: list[Estimator] = []
    for one in asked:
        if isinstance(one, Estimator):
            found.append(one)
            continue
        name = str(one).lower().replace("_", "-").replace(" ", "-")
        name = _OTHER_NAMES.get(name, name)
        if name not in _KNOWN:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(_KNOWN)}"
            raise ValueError(f"estimators has {one!r}, which is unknown: {hint}")
        found.append(_KNOWN[name]())
    if not found:
        raise ValueError("estimators is empty: expected at least one name")
    names = [e.name for e in found]
    if len(set(names)) < len(names):
        raise ValueError(f"estimators names the same estimator twice: {names}")
    return found
