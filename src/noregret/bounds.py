"""The survey's regret bounds, each with its constants: what the proof gives, errata applied."""

from __future__ import annotations

import math


def exp3(T: int, K: int) -> float:
    """Exp3 with tuned gamma: 2.63 sqrt(T K ln K) (survey 3; Auer et al. 2002, Corollary 3.2).

    >>> round(exp3(T=10_000, K=10))
    1262
    """
    return 2.63 * math.sqrt(T * K * math.log(K))
