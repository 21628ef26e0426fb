"""Confidence sets that hold however the arms were chosen, and the bounds on regret that they give for each round.

All are one inequality (the method of mixtures, Ville's inequality). Let loss_T(theta) be the negative log-likelihood
of the rewards, of noise R, and F = loss + |theta|^2 / (2 s^2) its penalised form with minimiser theta_T. Whatever chose
the arms, with probability 1 - delta at all T at once,

    F(theta*) - F(theta_T)  <=  S^2 / (2 s^2) + 1/2 ln det(I + s^2 V_T) + ln(1 / delta),        ||theta*|| <= S,

V_T bounding the curvature of the loss. With linear rewards V = sum x x' / R^2, and with lam = R^2 / s^2 it reads
||theta* - theta_T||_A^2 <= lam S^2 + R^2 (ln det(A / lam) + 2 ln(1 / delta)): never more than the square of
R sqrt(...) + lam^1/2 S, the survey's ellipsoid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

from armwise.core.agent import Floats
from armwise.theory.certificate.links import LOGISTIC, Link
from armwise.theory.certificate.played_rounds import Rounds, RoundsBlock


class ConfidenceSet(ABC):
    """A set that contains the true parameter with probability 1 - delta after some rounds."""

    @abstractmethod
    def regret(self, block: RoundsBlock) -> Floats:
        """An upper bound, for each round, on the best arm's expected reward minus that of the played arm."""


def _worst(upper: Floats, block: RoundsBlock) -> Floats:
    """The largest upper bound on a difference over the arms that were offered; the played arm's own is 0."""
    if block.offered is not None:
        upper = np.where(block.offered, upper, -np.inf)
    upper[np.arange(len(block)), block.arms] = 0.0
    return np.asarray(upper.max(axis=1))


# ---------------------------------------------------------------------- linear, one parameter or one for each arm


class SharedSet(ConfidenceSet):
    """x' theta with one theta for all arms: (x_a - x_c)' theta_T + beta ||x_a - x_c||_(A^-1)."""

    def __init__(self, rounds: Rounds, T: int, noise: float, norm: float, lam: float, delta: float) -> None:
        A, b, d = None, None, 0
        for block in rounds.blocks(T):
            x = block.chosen
            if A is None or b is None:
                d = x.shape[1]
                A, b = lam * np.eye(d), np.zeros(d)
            A += x.T @ x
            b += x.T @ block.rewards
        assert A is not None and b is not None
        self._factor = np.linalg.cholesky(A)
        self.theta = cho_solve((self._factor, True), b)
        growth = 2.0 * float(np.log(np.diag(self._factor)).sum()) - d * math.log(lam)
        self.beta = _radius(noise, norm, lam, growth, delta)

    def regret(self, block: RoundsBlock) -> Floats:
        n, K, d = block.X.shape
        means = block.X @ self.theta
        # ||x_a - x_c|| from the rows' images under the factor's inverse, so that one triangular solve serves all arms
        images = solve_triangular(self._factor, block.X.reshape(-1, d).T, lower=True, check_finite=False)
        images = images.T.reshape(n, K, d)
        at = np.arange(n), block.arms
        images -= images[at][:, None]
        widths = np.sqrt(np.einsum("nkd,nkd->nk", images, images))
        return _worst(means - means[at][:, None] + self.beta * widths, block)


class PerArmSet(ConfidenceSet):
    """x' theta_a with a theta for each of K arms, each set with delta / K: their widths add up in a difference."""

    def __init__(self, rounds: Rounds, T: int, noise: float, norm: float, lam: float, delta: float) -> None:
        K = rounds.n_arms
        A = b = None
        for block in rounds.blocks(T):
            d = block.X.shape[1]
            if A is None or b is None:
                A, b = np.tile(lam * np.eye(d), (K, 1, 1)), np.zeros((K, d))
            for arm in np.unique(block.arms):
                rows = block.X[block.arms == arm]
                A[arm] += rows.T @ rows
                b[arm] += rows.T @ block.rewards[block.arms == arm]
        assert A is not None and b is not None
        self._factors = np.linalg.cholesky(A)
        self.theta = np.stack([cho_solve((factor, True), moment) for factor, moment in zip(self._factors, b)])
        diagonals = np.einsum("kii->ki", self._factors)
        growth = 2.0 * np.log(diagonals).sum(axis=1) - A.shape[1] * math.log(lam)
        self.beta = np.array([_radius(noise, norm, lam, float(g), delta / K) for g in growth])

    def regret(self, block: RoundsBlock) -> Floats:
        widths = np.empty((len(block), len(self._factors)))
        for arm, factor in enumerate(self._factors):
            images = solve_triangular(factor, block.X.T, lower=True, check_finite=False)
            widths[:, arm] = self.beta[arm] * np.sqrt(np.einsum("dn,dn->n", images, images))
        means, at = block.X @ self.theta.T, (np.arange(len(block)), block.arms)
        return _worst(means + widths - (means - widths)[at][:, None], block)


def _radius(noise: float, norm: float, lam: float, growth: float, delta: float) -> float:
    """beta with ||theta* - theta_T||_A <= beta; ``growth`` is ln det(A / lam)."""
    return math.sqrt(lam * norm**2 + noise**2 * (growth + 2.0 * math.log(1.0 / delta)))


# ---------------------------------------------------------------------- generalised linear


class GeneralisedSet(ConfidenceSet):
    """mean(x' theta): the set of the penalised likelihood, through the slope of the link.

    Logistic: F(theta*) - F(theta_T) is at least ||theta* - theta_T||_G^2 with G = H / (2 + D) + I / (2 s^2), H the
    Hessian at theta_T and D no less than |x' (theta* - theta_T)| at every row that was played (self-concordance); D is
    from S and L at first, and what the set then says about it afterwards. Another link: sub-Gaussian noise R and
    slopes of at least ``low`` give R sqrt(ln det(A / lam) + 2 ln(1 / delta)) / low + lam^1/2 S in the norm of A.
    """

    def __init__(self, rounds: Rounds, T: int, link: Link, noise: float, norm: float, lam: float, delta: float) -> None:
        self.link, self.norm = link, norm
        self.reach = max(
            float(np.abs(np.linalg.norm(block.X, axis=-1)).max()) for block in rounds.blocks(T)
        )  # L of all arms that were offered
        ridge = lam if link is LOGISTIC else lam * link.low
        self.theta, hessian, gram = _fit(rounds, T, link, ridge, norm * self.reach)
        d = len(self.theta)
        if link is LOGISTIC:
            growth = _log_det(np.eye(d) + gram / (4.0 * lam))
            level = lam * norm**2 / 2.0 + growth / 2.0 + math.log(1.0 / delta)
            self._factor, self.beta = self._self_concordant(rounds, T, hessian - lam * np.eye(d), lam, level)
        else:
            A = gram + lam * np.eye(d)
            growth = _log_det(A / lam)
            self._factor = np.asarray(np.linalg.cholesky(A), np.float64)
            self.beta = noise * math.sqrt(growth + 2.0 * math.log(1.0 / delta)) / link.low + math.sqrt(lam) * norm

    def _self_concordant(self, rounds: Rounds, T: int, H: Floats, lam: float, level: float) -> tuple[Floats, float]:
        beta = math.sqrt(level)
        D = self.norm * self.reach + max(float(np.abs(block.chosen @ self.theta).max()) for block in rounds.blocks(T))
        for _ in range(6):
            factor = np.asarray(np.linalg.cholesky(H / (2.0 + D) + lam / 2.0 * np.eye(len(H))), np.float64)
            furthest = max(
                float(np.sqrt((solve_triangular(factor, block.chosen.T, lower=True) ** 2).sum(axis=0)).max())
                for block in rounds.blocks(T)
            )
            if beta * furthest >= 0.95 * D:
                break
            D = beta * furthest
        return factor, beta

    def regret(self, block: RoundsBlock) -> Floats:
        n, K, d = block.X.shape
        at = np.arange(n), block.arms
        scores = block.X @ self.theta
        rows = solve_triangular(self._factor, block.X.reshape(-1, d).T, lower=True, check_finite=False)
        images: Floats = rows.T.reshape(n, K, d)
        own = self.beta * np.sqrt(np.einsum("nkd,nkd->nk", images, images))
        images -= images[at][:, None]
        gap = scores - scores[at][:, None] + self.beta * np.sqrt(np.einsum("nkd,nkd->nk", images, images))
        limit = self.norm * self.reach
        highest = np.minimum(scores + own, limit)
        lowest = np.maximum((scores - own)[at], -limit)[:, None]
        highest_played = np.minimum((scores + own)[at], limit)[:, None]
        gap = np.minimum(np.maximum(gap, 0.0), 2.0 * limit)
        if self.link is LOGISTIC:  # mean(v + gap) - mean(v) is largest at v = -gap / 2
            v = np.clip(-gap / 2.0, lowest, np.maximum(lowest, highest_played))
            steepest = expit(v + gap) - expit(v)
        else:
            steepest = self.link.high * gap
        apart = np.asarray(self.link.mean(highest)) - np.asarray(self.link.mean(np.minimum(lowest, highest)))
        return _worst(np.minimum(steepest, np.maximum(apart, 0.0)), block)


def _fit(rounds: Rounds, T: int, link: Link, ridge: float, limit: float) -> tuple[Floats, Floats, Floats]:
    """The minimiser of the penalised quasi-likelihood, its Hessian and sum x x'; Newton with halved steps.

    A link other than the logistic continues as a straight line beyond ``limit``, where the truth cannot be, so that
    its slopes are bounded everywhere.
    """
    d = next(rounds.blocks(1)).chosen.shape[1]
    theta: Floats = np.zeros(d)
    step, best = np.zeros(d), math.inf
    for _ in range(100):
        loss, g, H = 0.5 * ridge * float(theta @ theta), ridge * theta, ridge * np.eye(d)
        for block in rounds.blocks(T):
            x = block.chosen
            u = x @ theta
            value, mean, slope = _pieces(link, u, limit)
            loss += float((value - block.rewards * u).sum())
            g, H = g + x.T @ (mean - block.rewards), H + (x * slope[:, None]).T @ x
        if loss > best + 1e-9 * abs(best):  # too far: half of the last step
            step *= 0.5
            theta = theta + step
            continue
        best, step = loss, np.asarray(np.linalg.solve(H, g), np.float64)
        if float(g @ step) < 1e-12 * (1.0 + abs(best)):
            break
        theta = theta - step
    gram = np.zeros((d, d))
    for block in rounds.blocks(T):
        gram += block.chosen.T @ block.chosen
    return theta, H, gram


def _pieces(link: Link, u: Floats, limit: float) -> tuple[Floats, Floats, Floats]:
    """The integral of the mean from 0 to u (of which the loss is made), the mean and the slope."""
    if link is LOGISTIC:
        p = expit(u)
        return np.logaddexp(0.0, u), p, p * (1.0 - p)

    def extended(v: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(v, -limit, limit)
        slope = np.clip(np.asarray(link.slope(inside)), link.low, link.high)
        return np.asarray(link.mean(inside)) + slope * (v - inside), slope

    nodes, weights = np.polynomial.legendre.leggauss(12)
    value = sum(w * extended(u * (1.0 + x) / 2.0)[0] for x, w in zip(nodes, weights)) * u / 2.0
    return np.asarray(value), *extended(u)


def _log_det(M: Floats) -> float:
    return float(np.linalg.slogdet(M)[1])


# ---------------------------------------------------------------------- kernels


@dataclass
class Points:
    """The distinct rows that were played, their counts, and their total rewards."""

    Z: Floats
    counts: Floats
    sums: Floats


MAX_POINTS = 3_000


def points(rounds: Rounds, T: int) -> Points:
    """The distinct rows among the first T that were played; a ValueError if they are too many for a kernel matrix."""
    places: dict[bytes, int] = {}
    rows: list[Floats] = []
    counts: list[float] = []
    sums: list[float] = []
    for block in rounds.blocks(T):
        for x, r in zip(block.chosen, block.rewards):
            at = places.setdefault(x.tobytes(), len(rows))
            if at == len(rows):
                rows.append(x)
                counts.append(0.0)
                sums.append(0.0)
                if len(rows) > MAX_POINTS:
                    raise ValueError(
                        f"more than {MAX_POINTS:,} distinct rows were played: a certificate for a kernel needs their "
                        "matrix; round the features, or state linear rewards in features of the kernel"
                    )
            counts[at] += 1.0
            sums[at] += float(r)
    return Points(np.array(rows), np.array(counts), np.array(sums))


class KernelSet(ConfidenceSet):
    """f in the space of a kernel: the posterior covariance of f(x_a) - f(x_c), and a radius for it.

    ``norm`` is B, ||f|| <= B: beta^2 = B^2 + ln det(I + K_T / R^2) + 2 ln(1 / delta) at all T at once. If f is instead
    *drawn* from the process, the posterior itself says it: a normal tail for each of the comparisons of the rounds.
    """

    def __init__(
        self, rounds: Rounds, T: int, kernel: Any, noise: float, norm: float | None, delta: float, looks: int
    ) -> None:
        played = points(rounds, T)
        self.kernel, self.Z = kernel, played.Z
        root = np.sqrt(played.counts) / noise
        B = np.eye(len(root)) + root[:, None] * kernel(self.Z, self.Z) * root  # I + N^1/2 K N^1/2 / R^2
        self._factor, _ = cho_factor(B, lower=True)
        self._root = root
        target = played.sums / np.sqrt(played.counts) / noise
        self._weights = root * cho_solve((self._factor, True), target)
        growth = 2.0 * float(np.log(np.diag(self._factor)).sum())
        self._seen: dict[bytes, Floats] = {}
        if norm is not None:
            self.beta = math.sqrt(norm**2 + growth + 2.0 * math.log(1.0 / delta))
        else:  # each look at the data has its share of delta, 6 / (pi^2 looks^2)
            comparisons = _comparisons(rounds, T)
            share = 6.0 * delta / (math.pi**2 * looks**2)
            self.beta = math.sqrt(2.0 * math.log(comparisons / (2.0 * share)))

    def regret(self, block: RoundsBlock) -> Floats:
        upper = np.empty(block.X.shape[:2])
        for t, (X, arm) in enumerate(zip(block.X, block.arms)):
            key = X.tobytes()
            if key not in self._seen:
                if len(self._seen) >= MAX_POINTS:  # contexts that do not come back are not worth keeping
                    self._seen.clear()
                self._seen[key] = self._differences(X)
            upper[t] = self._seen[key][arm]
        return _worst(upper, block)

    def _differences(self, X: Floats) -> Floats:
        """For each played arm c (rows) and each arm a: no less than f(x_a) - f(x_c)."""
        cross = np.asarray(self.kernel(self.Z, X))
        means = self._weights @ cross
        images = solve_triangular(self._factor, self._root[:, None] * cross, lower=True, check_finite=False)
        covariance = np.asarray(self.kernel(X, X)) - images.T @ images
        variances = np.diag(covariance)
        spread = np.maximum(variances[:, None] + variances[None] - 2.0 * covariance, 0.0)
        return np.asarray(means[None, :] - means[:, None] + self.beta * np.sqrt(spread))


def _comparisons(rounds: Rounds, T: int) -> int:
    """An upper bound on the number of different pairs (arm, played arm) in the first T rounds."""
    pairs: set[tuple[bytes, int]] = set()
    total = 0
    for block in rounds.blocks(T):
        total += len(block) * (block.X.shape[1] - 1)
        if len(pairs) < MAX_POINTS:
            pairs.update((X.tobytes(), int(arm)) for X, arm in zip(block.X, block.arms))
    K = rounds.n_arms
    return max(2, len(pairs) * (K - 1) if len(pairs) < MAX_POINTS else total)
