"""Regret bounds of agents that rank lists of k arms out of L, each with its constants."""

from __future__ import annotations

import math
from collections.abc import Sequence


def cascade_ucb1(T: int, L: int, gaps: Sequence[float]) -> float:
    """CascadeUCB1: sum over the arms outside the best list of 12 / gap ln T, plus pi^2 L / 3.

    ``gaps`` are how much less each of these arms attracts than the worst of the best list (Kveton et al. 2015,
    Theorem 2). In expectation.
    """
    return sum(12.0 / gap for gap in gaps) * math.log(T) + math.pi**2 / 3.0 * L


def list_linucb(T: int, k: int, d: int, R: float, S: float, L: float, lam: float, delta: float) -> float:
    """Lists of k by optimism over one ridge: 2 alpha_T sqrt(2 T k d ln(1 + T k L^2 / (d lam))), lam >= k L^2.

    alpha_T = R sqrt(d ln(1 + T k L^2 / (d lam)) + 2 ln(1 / delta)) + lam^1/2 S, ||x|| <= L. A list loses at most
    2 alpha_T times the widths of its arms (of those examined, in a cascade), and k rows learnt at once have widths
    whose squares sum to at most 1, which makes their sum over time at most 2 ln(det A_T / lam^d) (the argument of Qin
    et al. 2014, Theorem 4.1; Zong et al. 2016). With probability 1 - delta, for a sum of rewards per slot; for a
    cascade, given that the ellipsoid holds, in expectation over who examines how far.
    """
    grown = d * math.log1p(T * k * L**2 / (d * lam))
    alpha = R * math.sqrt(grown + 2.0 * math.log(1.0 / delta)) + math.sqrt(lam) * S
    return 2.0 * alpha * math.sqrt(2.0 * T * k * grown)


def toprank(T: int, k: int, L: int, delta: float) -> float:
    """TopRank: delta T k L^2 + k L + sqrt(4 k^3 L T ln(c sqrt(T) / delta)), in expectation.

    Lattimore et al. 2018, Theorem 1, with c = 4 sqrt(2 / pi) / erf(sqrt(2)).
    """
    c = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))
    return delta * T * k * L**2 + k * L + math.sqrt(4.0 * k**3 * L * T * math.log(c * math.sqrt(T) / delta))
