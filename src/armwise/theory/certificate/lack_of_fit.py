"""A test of the "if" of a certificate: do rewards that are linear (or of this kernel) explain these rounds?

Each test is a likelihood ratio of a wider class, mixed over a prior, to the best member of the stated one; under the
stated class its expectation is at most 1 whoever chose the arms, so 1 / ratio is a p-value (Ville; universal
inference). What is added: products of features, an own level for each arm, and a change of theta half-way. A second
test asks whether the rewards scatter more than the stated noise allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.theory.certificate.confidence_sets import _fit, _log_det, points
from armwise.theory.certificate.links import LOGISTIC
from armwise.theory.certificate.played_rounds import Rounds, RoundsBlock
from armwise.theory.certificate.statement import Fit

_PRODUCTS = 30  # products of features that are tried, at most
_LEVELS = 20  # arms that may have a level of their own, at most


def linear(rounds: Rounds, T: int, noise: float, norm: float) -> Fit:
    """Lack of fit of linear rewards, with one parameter or one for each arm."""
    reach = _reach(rounds, T)
    shared = next(rounds.blocks(T)).X.ndim == 3
    models = 1 if shared else rounds.n_arms
    moments = [_Moments() for _ in range(models)]
    start = 0
    for block in rounds.blocks(T):
        late = start + np.arange(len(block)) >= T / 2
        for model in range(models):
            mine = np.ones(len(block), bool) if shared else block.arms == model
            x = block.chosen[mine]
            levels = block.arms[mine] if shared else None
            moments[model].add(x, _extras(x / reach, late[mine], levels, rounds.n_arms) * reach, block.rewards[mine])
        start += len(block)
    ratios, residual = zip(*(part.ratio(noise, norm) for part in moments if part.n))
    return _judged(sum(ratios), sum(residual), T, noise, "linear in these features")


class _Moments:
    """Sums over rows (x, extras) and rewards: all that the ratio of two Gaussian models needs."""

    def __init__(self) -> None:
        self.n = self.d = 0
        self.gram = self.moment = np.zeros(0)
        self.square = 0.0

    def add(self, x: Floats, extras: Floats, rewards: Floats) -> None:
        rows = np.hstack([x, extras])
        if not self.n:
            self.gram, self.moment = np.zeros((rows.shape[1],) * 2), np.zeros(rows.shape[1])
        self.gram = self.gram + rows.T @ rows
        self.moment = self.moment + rows.T @ rewards
        self.square += float(rewards @ rewards)
        self.n, self.d = self.n + len(x), x.shape[1]

    def ratio(self, noise: float, norm: float) -> tuple[float, float]:
        """ln of the ratio, and the residual sum of squares of the stated class."""
        own, b = self.gram[: self.d, : self.d], self.moment[: self.d]
        residual = max(0.0, self.square - float(b @ np.linalg.lstsq(own, b, rcond=1e-12)[0]))
        D = len(self.moment)
        lam = noise**2 * self.d / norm**2
        wide = self.gram + lam * np.eye(D)
        penalised = self.square - float(self.moment @ np.linalg.solve(wide, self.moment))
        return (residual - penalised) / (2.0 * noise**2) - 0.5 * _log_det(wide / lam), residual


def logistic(rounds: Rounds, T: int, norm: float) -> Fit:
    """Lack of fit of clicks whose log-odds are linear."""
    reach = _reach(rounds, T)

    def rows(extra: bool) -> Rounds:
        def make() -> Iterator[RoundsBlock]:
            start = 0
            for block in rounds.blocks(T):
                late = start + np.arange(len(block)) >= T / 2
                x = block.chosen
                if extra:
                    x = np.hstack([x, _extras(x / reach, late, block.arms, rounds.n_arms) * reach])
                yield RoundsBlock(x[:, None], np.zeros(len(x), np.int64), block.rewards)
                start += len(block)

        return Rounds(make, T, 1)

    stated, wide = rows(extra=False), rows(extra=True)
    d = next(rounds.blocks(T)).X.shape[-1]
    lam = d / norm**2
    best, _, _ = _fit(stated, T, LOGISTIC, 1e-6, np.inf)
    theta, _, gram = _fit(wide, T, LOGISTIC, lam, np.inf)
    penalised = _loss(wide, T, theta) + 0.5 * lam * float(theta @ theta)
    # The fit of the stated class has a little ridge, which could only make its loss too large: taken off again.
    least = _loss(stated, T, best) - 1e-6 * float(best @ best)
    ratio = least - penalised - 0.5 * _log_det(np.eye(len(theta)) + gram / (4.0 * lam))
    return _judged(ratio, None, T, 0.5, "clicks with log-odds that are linear in these features")


def _loss(rounds: Rounds, T: int, theta: Floats) -> float:
    total = 0.0
    for block in rounds.blocks(T):
        u = block.chosen @ theta
        total += float((np.logaddexp(0.0, u) - block.rewards * u).sum())
    return total


def link(rounds: Rounds, T: int, mean: Callable[[Floats], Floats], theta: Floats, noise: float) -> Fit:
    """The scatter around a fitted generalised linear model; its mean is not tested."""
    residual = 0.0
    for block in rounds.blocks(T):
        residual += float(((block.rewards - np.asarray(mean(block.chosen @ theta))) ** 2).sum())
    return _judged(0.0, residual, T, noise, "what this link makes of these features")


def kernel(rounds: Rounds, T: int, k: Any, noise: float, norm: float | None) -> Fit:
    """Lack of fit of a function in the kernel's space: each distinct point may have a level of its own instead."""
    seen = points(rounds, T)
    square = sum(float((block.rewards**2).sum()) for block in rounds.blocks(T))
    means = seen.sums / seen.counts
    pure = max(0.0, square - float((seen.sums * means).sum()))  # scatter within points: whatever f is
    K = np.asarray(k(seen.Z, seen.Z))
    scale = float(np.diag(K).max()) * (1.0 if norm is None else norm**2)
    wide = _evidence(scale * np.eye(len(K)), means, seen.counts, noise)
    if norm is None:
        ratio = wide - _evidence(K, means, seen.counts, noise)
    else:
        misfit = _least_misfit(K, means, seen.counts, norm)
        level = float((np.log(seen.counts / (2.0 * math.pi * noise**2))).sum()) / 2.0
        ratio = wide - (level - misfit / (2.0 * noise**2))
    return _judged(ratio, pure, T, noise, "a function of this kernel's space")


def _evidence(K: Floats, means: Floats, counts: Floats, noise: float) -> float:
    """ln density of the points' means under N(0, K + noise^2 / counts)."""
    total = K + np.diag(noise**2 / counts)
    return -0.5 * (float(means @ np.linalg.solve(total, means)) + _log_det(2.0 * math.pi * total))


def _least_misfit(K: Floats, means: Floats, counts: Floats, norm: float) -> float:
    """The least sum of counts (means - f)^2 over f = K a with a' K a <= norm^2."""
    low, high = 1e-12, 1e12  # the multiplier of the norm, on a logarithmic scale
    for _ in range(60):
        middle = math.sqrt(low * high)
        a = np.linalg.solve(K + middle * np.diag(1.0 / counts), means)
        low, high = (middle, high) if float(a @ K @ a) > norm**2 else (low, middle)
    a = np.linalg.solve(K + low * np.diag(1.0 / counts), means)  # a little outside the ball: no more misfit than in it
    return float((counts * (means - K @ a) ** 2).sum())


def _judged(ratio: float, residual: float | None, T: int, noise: float, claim: str) -> Fit:
    """Both tests together: twice the smaller p-value."""
    shape = min(1.0, math.exp(-min(max(ratio, 0.0), 700.0)))
    excess = 0.0 if residual is None else max(0.0, residual / (T * noise**2) - 1.0)
    scatter = math.exp(-min(T / 2.0 * (excess - math.log1p(excess)), 700.0))
    p = min(1.0, 2.0 * min(shape, scatter))
    if shape <= scatter:
        found = f"rewards are not {claim}, or theta changed half-way"
    else:
        found = f"rewards scatter {math.sqrt(1.0 + excess):.2g} times as much as noise {noise:g} allows"
    return Fit(p, found)


def _reach(rounds: Rounds, T: int) -> float:
    return max(float(np.linalg.norm(block.X, axis=-1).max()) for block in rounds.blocks(T)) or 1.0


def _extras(x: Floats, late: Any, arms: Any, n_arms: int) -> Floats:
    """The part that a wider class adds to rows x of length at most 1."""
    n, d = x.shape
    pairs = [(i, i) for i in range(d)] + [(i, j) for i in range(d) for j in range(i)]
    parts = [np.stack([x[:, i] * x[:, j] for i, j in pairs[:_PRODUCTS]], axis=1), x * late[:, None]]
    if arms is not None and n_arms <= _LEVELS:
        parts.append(np.eye(n_arms)[arms])
    return np.hstack(parts) if n else np.zeros((0, sum(part.shape[1] for part in parts)))
