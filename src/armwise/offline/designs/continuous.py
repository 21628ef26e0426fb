"""Logs of continuous actions (a price, a dose, a bid): kernel-smoothed IPS and DR (Kallus & Zhou 2018).

A policy that plays pi(x) hardly ever meets a logged action exactly, so an action near it counts, by a kernel of
bandwidth h: mean of K_h(a - pi(x)) r / p(a | x). The bandwidth that balances squared bias and variance makes intervals
that shrink onto a biased value, so the default is of smaller order, span n^(-1/3) (undersmoothing), and narrower still
where the rows near pi(x) show that their rewards are no cubic there, for which alone the estimate has no bias.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri, stdtr

from armwise.core.agent import Floats, count, fraction, positive
from armwise.offline.estimators.arm_inputs import expected
from armwise.offline.estimators.reward_models import _fresh, folds_of
from armwise.offline.evaluation.per_round_scores import (
    Scored,
    effective_size,
    evaluation,
    known_estimators,
    ratio,
    title,
)
from armwise.offline.logs.rows import LogBlock, LogError, WeakLogWarning, floats
from armwise.offline.results.estimates import Evaluation

Kernel = Literal["epanechnikov", "gaussian", "triangular", "cosine"]


_KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "epanechnikov": lambda u: 0.75 * np.clip(1 - u**2, 0.0, None),
    "gaussian": lambda u: np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi),
    "triangular": lambda u: np.clip(1 - np.abs(u), 0.0, None),
    "cosine": lambda u: np.where(np.abs(u) <= 1, np.pi / 4 * np.cos(np.pi * u / 2), 0.0),
}
_GAUSSIAN_REACH, _GRID = 8.0, 4001
_PLACES = np.array([-0.6, -0.3, 0.0, 0.3, 0.6])  # of possible jumps, in bandwidths
_WIDTH = 1.15  # of the bandwidth, in spans n^(-1/3)
_STEP = math.sqrt(2.0)  # by which the bandwidth is narrowed while a jump is in doubt
_DOUBT, _SURE = 0.04, 0.01  # p-values of "no jump": below which the bandwidth is narrowed, and the verdict says it
MIN_NEAR = 30  # minimum of effective rows within a bandwidth
MIN_EVENTS = 10  # of yes, and of no
ESTIMATORS = ("kernel-ips", "kernel-snips", "kernel-dr")


class ContinuousLog:
    """Rounds with an action that is a number: contexts (n, d) or None, actions (n,), rewards, and the density p(a | x).

    ``bounds`` are the ends between which actions lie, if there are any: kernels then lose nothing beyond them.

    >>> log = ContinuousLog(actions=[0.2, 0.8], rewards=[1.0, 0.5], densities=[1.0, 1.0], bounds=(0, 1))
    >>> len(log)
    2
    """

    def __init__(
        self, contexts: Any = None, actions: Any = None, rewards: Any = None, densities: Any = None, *,
        bounds: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        for name, values in (("actions", actions), ("rewards", rewards), ("densities", densities)):
            if values is None:
                raise LogError([f"{name} must be given, one per row"])
        self.actions, self.rewards = floats("actions", actions), floats("rewards", rewards)
        n = len(self.actions)
        self.densities = floats("densities", np.broadcast_to(densities, (n,)) if np.ndim(densities) == 0 else densities)
        self.contexts = np.empty((n, 0)) if contexts is None else floats("contexts", contexts)
        if bounds is not None and np.shape(bounds) != (2,):
            raise LogError([f"bounds must be (low, high), got {bounds!r:.80}"])
        self.bounds = None if bounds is None else (float(bounds[0]), float(bounds[1]))
        self._check(n)

    def _check(self, n: int) -> None:
        found = []
        for name in ("actions", "rewards", "densities", "contexts"):
            values = getattr(self, name)
            if len(values) != n or values.ndim != (2 if name == "contexts" else 1):
                found.append(f"{name} has shape {values.shape}, expected ({n}{', d' if name == 'contexts' else ''})")
            elif not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values).reshape(n, -1).all(axis=1)))
                found.append(f"row {row}: {name} holds NaN or infinity, expected finite numbers")
        if not found and n and not (self.densities > 0).all():
            row = int(np.argmin(self.densities))
            found.append(f"row {row}: the density is {self.densities[row]}, expected a number above 0")
        if not found and self.bounds is not None:
            low, high = self.bounds
            if not low < high:
                found.append(f"bounds must be (low, high) with low < high, got {self.bounds}")
            elif n and not ((self.actions >= low) & (self.actions <= high)).all():
                row = int(np.argmax((self.actions < low) | (self.actions > high)))
                found.append(f"row {row}: the action is {self.actions[row]}, outside bounds ({low:g}, {high:g})")
        if found:
            raise LogError(found)

    def __len__(self) -> int:
        return len(self.actions)


def evaluate_continuous(
    log: ContinuousLog,
    policy: Any,
    estimators: str | Iterable[str] = ESTIMATORS,
    *,
    bandwidth: float | None = None,
    kernel: Kernel = "epanechnikov",
    reward_model: Any = None,
    level: float = 0.95,
    folds: int = 3,
    seed: int = 0,
    warn: bool = True,
) -> Evaluation:
    """Evaluate a policy with continuous actions by kernel-smoothed IPS, self-normalised IPS and DR.

    ``policy`` answers an action to a context, or is an array (n,) of actions, or one number. The interval is that of
    the bias-corrected scores 2 s(h / sqrt 2) - s(h), which take the smoothing's bias of order h^2 away, and so is the
    value, unless you gave the ``bandwidth``: then it is the plain kernel estimate. By default h is 1.15 span n^(-1/3)
    (the result's ``parameter``), narrowed while a test finds jumps within it: the interval then reaches over those of
    the wider ones. The verdict says where jumps remain. ``reward_model`` for DR: None for a
    cross-fitted ridge on contexts, powers of the action and their products; a scikit-learn regressor of the columns
    (contexts, action), cross-fitted; or a function of contexts and actions.

    >>> rng = np.random.default_rng(1)
    >>> a = rng.random(5000)
    >>> log = ContinuousLog(actions=a, rewards=1 - (a - 0.3) ** 2, densities=np.ones(5000), bounds=(0, 1))
    >>> abs(evaluate_continuous(log, 0.3)["kernel-dr"].value - 1.0) < 0.01
    True
    """
    if not isinstance(log, ContinuousLog):
        raise ValueError(f"log must be an armwise.offline.ContinuousLog, got {type(log).__name__}")
    if kernel not in tuple(_KERNELS):
        raise ValueError(f"kernel is {kernel!r}, expected one of {', '.join(_KERNELS)}")
    names = known_estimators(estimators, ESTIMATORS)
    if len(log) < 2:
        raise ValueError(f"the log has {len(log)} rows: there is nothing to evaluate on")
    fraction("level", level)
    wanted = _actions(policy, log)
    smoothing = _Smoothing(log, wanted, kernel)
    q = (np.zeros(len(log)), np.zeros(len(log)))
    if "kernel-dr" in names:
        q = _predictions(reward_model, log, wanted, count("folds", folds, least=2), seed)
    given = None if bandwidth is None else positive("bandwidth", bandwidth)
    found = {name: _scored(name, smoothing, given, q, level) for name in names}
    chosen = "undersmoothed" if bandwidth is None else "as given"
    widths = ", ".join(f"{scored.parameter:.3g} ({name})" for name, scored in found.items())
    result = evaluation(found, title(policy), level, rewards=log.rewards,
                        about=[f"{kernel} kernel, bandwidth {chosen}: {widths}"])  # fmt: skip
    if result.weaknesses and warn:
        warnings.warn(WeakLogWarning(result.verdict), stacklevel=2)
    return result


class _Smoothing:
    def __init__(self, log: ContinuousLog, wanted: Floats, kernel: str) -> None:
        self.log, self._wanted = log, wanted
        self._density = _KERNELS[kernel]
        self._reach = _GAUSSIAN_REACH if kernel == "gaussian" else 1.0
        u = np.linspace(-self._reach, self._reach, _GRID)
        parts = np.stack([u**j * self._density(u) for j in range(3)])
        steps = (parts[:, 1:] + parts[:, :-1]) / 2.0 * (u[1] - u[0])
        self._grid, self._moments = u, np.hstack([np.zeros((3, 1)), np.cumsum(steps, axis=1)])

    def weights(self, h: float) -> Floats:
        """K_h(a - pi(x)) / p(a | x), near a bound times the line that keeps its mean 1 and its first moment 0."""
        log = self.log
        u = (log.actions - self._wanted) / h
        weights = self._density(u) / (h * log.densities)
        if log.bounds is not None:
            low, high = ((end - self._wanted) / h for end in log.bounds)
            m0, m1, m2 = (np.interp(high, self._grid, m) - np.interp(low, self._grid, m) for m in self._moments)
            weights = weights * (m2 - m1 * u) / (m0 * m2 - m1**2)
        return np.asarray(weights)

    def jumps(self, outcome: Floats, h: float, wider: float = 1.0) -> float:
        """The p-value of "near pi(x), outcomes are a cubic in a": steps at five places within h are added, one by one.

        The cubic is that of the rows within ``wider`` times h: more rows see a jump better, but fewer curves are cubics
        there. Least squares weighted by 1 / p(a | x), errors robust to unequal noise, the least p-value times five.
        """
        u = (self.log.actions - self._wanted) / (h * min(self._reach, 2.0))
        near = np.abs(u) < wider
        u, y, w = u[near], outcome[near], 1.0 / self.log.densities[near]
        rest = len(u) - 5
        if rest < MIN_NEAR:
            return 1.0
        root = np.sqrt(w / w.mean())
        basis = np.linalg.qr(root[:, None] * u[:, None] ** np.arange(4))[0]
        steps = root[:, None] * (u[:, None] > _PLACES)
        steps -= basis @ (basis.T @ steps)
        residual = root * y - basis @ (basis.T @ (root * y))
        sizes = (steps**2).sum(axis=0)
        steps, sizes = steps[:, sizes > 1e-3 * len(u)], sizes[sizes > 1e-3 * len(u)]
        if not sizes.size or np.linalg.norm(residual) <= 1e-9 * np.linalg.norm(root * y):  # only rounding error is left
            return 1.0
        jumps = steps.T @ residual / sizes
        leverage = (basis**2).sum(axis=1)[:, None] + steps**2 / sizes
        rests = (residual[:, None] - steps * jumps) / np.maximum(1.0 - leverage, 1e-3)  # HC3: few rows fit themselves
        errors = np.sqrt(((steps * rests) ** 2).sum(axis=0)) / sizes
        largest = float(np.max(np.abs(jumps) / np.maximum(errors, np.finfo(float).tiny)))
        return min(1.0, 2.0 * len(_PLACES) * float(stdtr(rest, -largest)))


def _scored(name: str, smoothing: _Smoothing, given: float | None, q: tuple[Floats, Floats], level: float) -> Scored:
    log = smoothing.log
    outcome = log.rewards - q[0] if name == "kernel-dr" else log.rewards

    def scores(h: float) -> Floats:
        w = smoothing.weights(h)
        if name == "kernel-snips":
            return ratio(w * outcome, w)
        return np.asarray((q[1] if name == "kernel-dr" else 0.0) + w * outcome)

    tried, jump = ([given], False) if given is not None else _undersmoothed(smoothing, outcome)
    h, plain = tried[-1], scores(tried[-1])
    *wider, corrected = (2.0 * scores(each / math.sqrt(2.0)) - scores(each) for each in tried)
    weights = smoothing.weights(h)
    rare = _rare_events(log.rewards[weights != 0.0])
    if given is None:  # a value of its own bandwidth's bias could lie outside of its interval
        steep = (f"rewards jump, or nearly so, within {h:.3g} of the policy's actions: the value may be a mean over "
                 "both sides of the jump (log more actions there)",)  # fmt: skip
        return Scored(corrected, weights, (*rare, *(steep if jump else ())), h, tried=tuple(wider))
    z, n = float(ndtri(0.5 + level / 2)), len(log)
    far = abs(float(plain.mean() - corrected.mean())) > z * float(corrected.std(ddof=1)) / math.sqrt(n)
    said = (f"biased: a bandwidth of {h:.3g} smooths much away; the interval is corrected for it, the value is not",)
    return Scored(plain, weights, (*rare, *(said if far else ())), h, corrected)


def _rare_events(rewards: Floats) -> tuple[str, ...]:
    """Return whether rewards near the policy's actions are in effect binary with too few of one value.

    Price times bought or not: amounts close to each other, and zeros. No value is common, so ``rare_rewards`` is mute.
    """
    amounts = rewards[rewards != 0.0]
    if not 0 < len(amounts) < len(rewards) or len(np.unique(amounts)) == 1:
        return ()
    fewer = min(len(amounts), len(rewards) - len(amounts))
    if fewer >= MIN_EVENTS or amounts.std() > 0.35 * abs(amounts.mean()):
        return ()
    what = "nothing" if fewer < len(amounts) else "anything"
    said = f"only {fewer} of the {len(rewards):,} rows near the policy's actions earned {what}"
    return (f"{said}: an interval needs about {MIN_EVENTS}",)


def _undersmoothed(smoothing: _Smoothing, outcome: Floats) -> tuple[list[float], bool]:
    """The bandwidths tried, the last of which is taken, and whether rewards jump within it."""
    log = smoothing.log
    low, high = np.quantile(log.actions, [0.01, 0.99])
    span = (high - low) / 0.98  # an outlier must not widen it
    if log.bounds is not None:
        span = min(span, log.bounds[1] - log.bounds[0])
    widest = h = _WIDTH * max(float(span), 1e-12) * len(log) ** (-1.0 / 3.0)
    tried = [h]
    while smoothing.jumps(outcome, h) < _DOUBT and effective_size(smoothing.weights(h / _STEP)) >= MIN_NEAR:
        h /= _STEP
        tried.append(h)
    # the wider window has the power in small logs, and takes more curves for jumps
    wide = min(widest, 2.0 * h)
    least = min(smoothing.jumps(outcome, wide, wider=1.65), 3.0 * smoothing.jumps(outcome, wide, wider=2.7))
    return tried, least < _SURE


def _actions(policy: Any, log: ContinuousLog) -> Floats:
    if hasattr(policy, "many"):
        answer = policy.many(log.contexts)
    elif callable(policy):
        answer = [policy(context) for context in log.contexts]
    else:
        answer = policy
    try:
        actions = np.asarray(answer, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"policy must answer actions, which are numbers, got {answer!r:.80}") from None
    actions = np.full(len(log), float(actions)) if actions.ndim == 0 else actions
    if actions.shape != (len(log),) or not np.isfinite(actions).all():
        raise ValueError(
            f"policy answered NaN or infinity in {int((~np.isfinite(actions)).sum()):,} rows, expected finite numbers"
            if actions.shape == (len(log),)
            else f"policy answered actions of shape {actions.shape}, expected ({len(log)},)"
        )
    if log.bounds is not None and not ((actions >= log.bounds[0]) & (actions <= log.bounds[1])).all():
        out = int(np.argmax((actions < log.bounds[0]) | (actions > log.bounds[1])))
        raise ValueError(
            f"policy, row {out}: it answered {actions[out]:g}, outside bounds ({log.bounds[0]:g}, {log.bounds[1]:g})"
        )
    return actions


def _predictions(model: Any, log: ContinuousLog, wanted: Floats, folds: int, seed: int) -> tuple[Floats, Floats]:
    """Return cross-fitted predictions for the logged and for the policy's actions."""
    if model is not None and not hasattr(model, "fit"):
        ask = model.predict if hasattr(model, "predict") else model
        if not callable(ask):
            raise ValueError(
                "reward_model must be None, a scikit-learn regressor, or a function of contexts and actions, got "
                f"{model!r:.80}"
            )
        logged, target = (np.asarray(ask(log.contexts, a), np.float64) for a in (log.actions, wanted))
        if logged.shape != (len(log),) or target.shape != (len(log),):
            raise ValueError(f"reward_model answered shape {logged.shape}, expected ({len(log)},)")
        return logged, target
    fold = folds_of(LogBlock(np.zeros(len(log), np.int64), log.rewards, 1), folds, seed)
    logged, target = np.empty(len(log)), np.empty(len(log))
    for f in range(folds):
        mine, others = fold == f, fold != f
        if not others.any():
            raise ValueError(f"the log has {len(log)} rows, too few for {folds} folds")
        for answers, actions in zip((logged, target), (log.actions, wanted), strict=True):
            answers[mine] = _fit_predict(model, log, others, mine, actions)
    return logged, target


def _fit_predict(model: Any, log: ContinuousLog, others: Any, mine: Any, actions: Floats) -> Floats:
    if model is not None:
        fitted = _fresh(model).fit(np.column_stack([log.contexts, log.actions])[others], log.rewards[others])
        return expected(fitted, np.column_stack([log.contexts, actions])[mine])
    centre, scale = log.actions[others].mean(), log.actions[others].std() or 1.0
    Z = _features(log.contexts[others], (log.actions[others] - centre) / scale)
    y = log.rewards[others]
    theta = np.linalg.solve(Z.T @ Z + 1e-3 * len(y) ** 0.5 * np.eye(Z.shape[1]), Z.T @ (y - y.mean()))
    return np.asarray(y.mean() + _features(log.contexts[mine], (actions[mine] - centre) / scale) @ theta)


def _features(contexts: Floats, a: Floats) -> Floats:
    """1, x, a, a^2, a^3, x a, x a^2."""
    a = a[:, None]
    return np.hstack([np.ones_like(a), contexts, a, a**2, a**3, contexts * a, contexts * a**2])
