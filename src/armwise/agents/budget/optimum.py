"""The best policy that a budget allows, when rewards and costs are known: a linear programme."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from armwise.core.agent import Floats
from armwise.core.arguments import as_floats, short
from armwise.core.tools.extras import needs


class Optimum(NamedTuple):
    """The best policy under a budget: its reward and costs per decision, its distribution over arms in every row."""

    value: float
    costs: Floats
    policy: Floats


_INFEASIBLE = 1e-7  # beyond the rate by this part of it (HiGHS's own tolerance): no policy keeps to it


def budget_optimum(rewards: ArrayLike, costs: ArrayLike, rate: Any, covering: Any = False) -> Optimum:
    """The policy with the largest mean reward among those whose mean cost per decision is at most ``rate``.

    Row t of ``rewards`` (n, K) holds what each arm is worth in round t, ``costs`` (n, K) or (n, K, m) what it costs.
    ``covering`` (one value, or one per resource) turns "at most" into "at least". The policy knows its row: for the
    best *fixed mixture* of arms give the means as one row, ``rewards.mean(axis=0, keepdims=True)``.
    Exact: with one resource by the steps that bring most per cost, with several by HiGHS (needs SciPy). ValueError if
    no policy keeps to the rates.

    >>> best = budget_optimum([[0.0, 1.0], [0.0, 0.5]], [[0.0, 1.0], [0.0, 1.0]], rate=0.5)
    >>> best.value, best.policy.tolist()                            # the one arm that is worth more
    (0.5, [[0.0, 1.0], [1.0, 0.0]])
    """
    worth, paid = as_floats("rewards", rewards), as_floats("costs", costs)
    if worth.ndim != 2 or 0 in worth.shape:
        raise ValueError(f"rewards must be an (n, K) array, got shape {worth.shape}")
    paid = paid[:, :, None] if paid.ndim == 2 else paid
    if paid.ndim != 3 or paid.shape[:2] != worth.shape:
        raise ValueError(f"costs must have the shape of rewards, {worth.shape}, got shape {paid.shape[:2]}")
    for name, numbers in (("rewards", worth), ("costs", paid)):
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be finite numbers, got NaN or infinity")
    n, m = len(worth), paid.shape[2]
    wanted = np.atleast_1d(as_floats("rate", rate))
    if wanted.shape not in ((1,), (m,)) or not np.isfinite(wanted).all():
        raise ValueError(f"rate must be a finite number, or one per resource ({m}), got {short(rate)}")
    rates = np.broadcast_to(wanted, (m,))
    signs = np.where(np.broadcast_to(np.asarray(covering, bool), (m,)), -1.0, 1.0)
    try:
        if m == 1:
            policy = _greedy(worth, signs[0] * paid[:, :, 0], float(signs[0] * rates[0]), bool(signs[0] < 0.0))
        else:
            policy = _programme(worth, paid, rates, signs)
    except _Infeasible as why:
        raise ValueError(f"rate {rate!r:.80}: no policy keeps to it ({why})") from None
    return Optimum(float((policy * worth).sum() / n), np.einsum("nk,nkm->m", policy, paid) / n, policy)


class _Infeasible(Exception):
    """No policy costs as little."""


def _greedy(worth: Floats, paid: Floats, rate: float, covering: bool) -> Floats:
    """One resource: from the cheapest arm of every row, steps to dearer arms, those first that bring most per cost.

    Along the upper hull of a row's arms steps bring less and less, so that the best ones first, whichever rows they
    are of, up to a part of the last that can be paid, are the optimum of the programme.
    """
    n, rows = len(worth), np.arange(len(worth))
    cheapest = paid == paid.min(axis=1, keepdims=True)
    at = np.where(cheapest, worth, -np.inf).argmax(axis=1)
    room = n * rate - float(paid[rows, at].sum())
    if room < -_INFEASIBLE * n * (abs(rate) or 1.0):
        least = float(paid[rows, at].mean())  # where it is to be covered, costs come here with the other sign
        raise _Infeasible(f"the dearest comes to {-least:g}" if covering else f"the cheapest costs {least:g}")
    path, steps, last = [at], [], np.full(n, np.inf)
    while True:
        more, better = paid - paid[rows, at, None], worth - worth[rows, at, None]
        slopes = np.full_like(worth, -np.inf)
        np.divide(better, more, out=slopes, where=(more > 0.0) & (better > 0.0))
        to = slopes.argmax(axis=1)
        moved = np.flatnonzero(slopes[rows, to] > 0.0)
        if not moved.size:
            break
        last[moved] = np.minimum(last[moved], slopes[moved, to[moved]])  # rounding must not change their order
        steps.append((moved, last[moved], more[moved, to[moved]]))
        at = at.copy()
        at[moved] = to[moved]
        path.append(at)
    policy = np.zeros_like(worth)
    if not steps:
        policy[rows, at] = 1.0
        return policy
    row, slope, cost = (np.concatenate(parts) for parts in zip(*steps))
    order = np.argsort(-slope, kind="stable")
    row, cost = row[order], cost[order]
    total = np.cumsum(cost)
    whole = int(np.searchsorted(total, room, side="right"))
    done = np.bincount(row[:whole], minlength=n)
    policy[rows, np.stack(path)[done, rows]] = 1.0
    if whole < len(row) and room > 0.0:  # a part of the next step
        i, part = row[whole], min((room - (total[whole - 1] if whole else 0.0)) / cost[whole], 1.0)
        policy[i, path[done[i]][i]] = 1.0 - part
        policy[i, path[done[i] + 1][i]] = part
    return policy


def _programme(worth: Floats, paid: Floats, rates: Floats, signs: Floats) -> Floats:
    """Several resources: the linear programme as it is."""
    with needs():
        from scipy import sparse
        from scipy.optimize import linprog

    n, K, m = paid.shape
    unit = np.where(rates > 0.0, rates, 1.0)  # costs in multiples of their rate: HiGHS likes numbers near 1
    limits: Any = sparse.csr_array((signs / unit)[:, None] * paid.reshape(n * K, m).T / n)
    rows = np.repeat(np.arange(n), K)
    each: Any = sparse.csr_array((np.ones(n * K), (rows, np.arange(n * K))), shape=(n, n * K))
    found = linprog(
        -worth.ravel() / n, A_ub=limits, b_ub=signs * rates / unit, A_eq=each, b_eq=np.ones(n), method="highs"
    )
    if found.status != 0:
        raise _Infeasible(found.message)
    policy = np.clip(np.asarray(found.x).reshape(n, K), 0.0, None)
    return np.asarray(policy / policy.sum(axis=1, keepdims=True))
