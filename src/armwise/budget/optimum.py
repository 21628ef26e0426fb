"""The best policy that a budget allows, when rewards and costs are known: a linear programme."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from armwise.agent import Floats
from armwise.arguments import as_floats, short
from armwise.extras import needs


class Optimum(NamedTuple):
    """Reward and costs per decision of the best policy, and the policy itself: a distribution for every row."""

    value: float
    costs: Floats
    policy: Floats


def budget_optimum(rewards: ArrayLike, costs: ArrayLike, rate: Any, covering: Any = False) -> Optimum:
    """The policy with the largest mean reward among those whose mean cost per decision is at most ``rate``.

    Row t of ``rewards`` (n, K) holds what each arm is worth in round t, ``costs`` (n, K) or (n, K, m) what it costs.
    ``covering`` (one value, or one per resource) turns "at most" into "at least". The policy knows its row: for the
    best *fixed mixture* of arms give the means as one row, ``rewards.mean(axis=0, keepdims=True)``.
    Solved exactly by HiGHS; ValueError if no policy keeps to the rates.

    >>> best = budget_optimum([[0.0, 1.0], [0.0, 0.5]], [[0.0, 1.0], [0.0, 1.0]], rate=0.5)
    >>> round(best.value, 9), best.policy.round(9).tolist()         # the one arm that is worth more
    (0.5, [[0.0, 1.0], [1.0, 0.0]])
    """
    with needs():
        from scipy import sparse
        from scipy.optimize import linprog

    worth, paid = as_floats("rewards", rewards), as_floats("costs", costs)
    if worth.ndim != 2 or 0 in worth.shape:
        raise ValueError(f"rewards must be an (n, K) array, got shape {worth.shape}")
    paid = paid[:, :, None] if paid.ndim == 2 else paid
    if paid.ndim != 3 or paid.shape[:2] != worth.shape:
        raise ValueError(f"costs must have the shape of rewards, {worth.shape}, got shape {paid.shape[:2]}")
    for name, numbers in (("rewards", worth), ("costs", paid)):
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be finite numbers, got NaN or infinity")
    (n, K), m = worth.shape, paid.shape[2]
    wanted = np.atleast_1d(as_floats("rate", rate))
    if wanted.shape not in ((1,), (m,)) or not np.isfinite(wanted).all():
        raise ValueError(f"rate must be a finite number, or one per resource ({m}), got {short(rate)}")
    rates = np.broadcast_to(wanted, (m,))
    signs = np.where(np.broadcast_to(np.asarray(covering, bool), (m,)), -1.0, 1.0)
    unit = np.where(rates > 0.0, rates, 1.0)  # costs in multiples of their rate: HiGHS likes numbers near 1
    limits: Any = sparse.csr_array((signs / unit)[:, None] * paid.reshape(n * K, m).T / n)
    rows = np.repeat(np.arange(n), K)
    each: Any = sparse.csr_array((np.ones(n * K), (rows, np.arange(n * K))), shape=(n, n * K))
    found = linprog(
        -worth.ravel() / n, A_ub=limits, b_ub=signs * rates / unit, A_eq=each, b_eq=np.ones(n), method="highs"
    )
    if found.status != 0:
        raise ValueError(f"rate {rate!r:.80}: no policy keeps to it ({found.message})")
    policy = np.clip(np.asarray(found.x).reshape(n, K), 0.0, None)
    policy /= policy.sum(axis=1, keepdims=True)
    return Optimum(float((policy * worth).sum() / n), np.einsum("nk,nkm->m", policy, paid) / n, policy)
