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


def sup_linucb(T: int, K: int, d: int, delta: float) -> float:
    """SupLinUCB: 2 sqrt(T) + 8 (1 + alpha) sqrt(2 d S T ln(1 + T/d)), S = max(1, ceil(ln T)) stages.

    Chu et al. 2011, Theorem 1, with the constants of its proof: an arm played at stage s is worse than the best by at
    most 8 * 2^-s < 8 w, a round of no stage by at most 2 / sqrt(T), and the widths of n rounds sum to at most
    (1 + alpha) sqrt(2 d n ln(1 + n/d)). Holds with probability 1 - S delta for the agent's own delta (run it with
    delta / S for 1 - delta), rewards in [0, 1], ||x|| and ||theta*|| at most 1.

    >>> round(sup_linucb(T=100_000, K=10, d=5, delta=0.05))
    345853
    """
    S = max(1, math.ceil(math.log(T)))
    alpha = math.sqrt(0.5 * math.log(2 * T * K / delta))
    return 2 * math.sqrt(T) + 8 * (1 + alpha) * math.sqrt(2 * d * S * T * math.log1p(T / d))


def sup_linrel(T: int, K: int, d: int, delta: float) -> float:
    """SupLinREL: 2 sqrt(T) + 16 sqrt((1 + ln(2TK/delta)) d S T ln(1 + T/d)), S = max(1, ceil(ln T)) stages.

    Of the order of Auer 2003, Theorem 6, sqrt(T d) (1 + ln(2KT ln(T)/delta))^(3/2); the constants by way of LinUCB's
    potential: ||w||^2 + ||v~||^2 <= 2 x' (I + D'D)^-1 x, since 1/l <= 2 / (1 + l) where l >= 1 and 1 <= 2 / (1 + l)
    where l < 1. Holds with probability 1 - S delta for the agent's own delta, rewards in [0, 1], ||x|| and
    ||theta*|| at most 1.

    >>> round(sup_linrel(T=100_000, K=10, d=5, delta=0.05))
    531185
    """
    S = max(1, math.ceil(math.log(T)))
    return 2 * math.sqrt(T) + 16 * math.sqrt((1 + math.log(2 * T * K / delta)) * d * S * T * math.log1p(T / d))
def exp4(T: int, K: int, N: int) -> float:
    """Exp4 with tuned gamma and a uniform expert: 2.63 sqrt(T K ln N) in expectation (survey 5.1; Auer et al. 2002).

    >>> round(exp4(T=10_000, K=10, N=8))
    1199
    """
    return 2.63 * math.sqrt(T * K * math.log(N))


def exp4p(T: int, K: int, N: int, delta: float) -> float:
    """Exp4P with a uniform expert: 6 sqrt(K T ln(N / delta)) with probability 1 - delta (survey 5.2).

    >>> round(exp4p(T=10_000, K=10, N=8, delta=0.05))
    4274
    """
    return 6.0 * math.sqrt(K * T * math.log(N / delta))


def ve(T: int, d: int, delta: float) -> float:
    """VE with two arms and a class of VC dimension d: 9 sqrt(2 T (d ln(e T / d) + ln(2 / delta))) (survey 5.3).

    With probability 1 - delta, for contexts that come in an exchangeable order (Beygelzimer et al. 2011).

    >>> round(ve(T=10_000, d=2, delta=0.05))
    6067
    """
    return 9.0 * math.sqrt(2.0 * T * (d * math.log(math.e * T / d) + math.log(2.0 / delta)))
