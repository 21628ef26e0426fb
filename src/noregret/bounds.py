"""The survey's regret bounds, each with its constants: what the proof gives, errata applied."""

from __future__ import annotations

import math


def exp3(T: int, K: int) -> float:
    """Exp3 with tuned gamma: 2.63 sqrt(T K ln K) (survey 3; Auer et al. 2002, Corollary 3.2).

    >>> round(exp3(T=10_000, K=10))
    1262
    """
    return 2.63 * math.sqrt(T * K * math.log(K))


def linucb(T: int, d: int, R: float, S: float, L: float, lam: float, delta: float) -> float:
    """LinUCB with the ellipsoid's alpha: 2 alpha_T sqrt(2 T d ln(1 + T L^2 / (d lam))), ||x|| <= L (survey Theorem 3).

    alpha_T = R sqrt(d ln(1 + T L^2 / (d lam)) + 2 ln(1 / delta)) + lam^1/2 S bounds the multiplier through det A. The survey's
    display drops the factor 2 sqrt(2) of its own proof. Holds with probability 1 - delta, for lam >= max(1, L^2).

    >>> round(linucb(T=10_000, d=20, R=0.1, S=1.0, L=1.0, lam=1.0, delta=0.05))
    9003
    """
    growth = T * L**2 / (d * lam)
    alpha = R * math.sqrt(d * math.log1p(growth) + 2 * math.log(1 / delta)) + math.sqrt(lam) * S
    return 2 * alpha * math.sqrt(2 * T * d * math.log1p(growth))
