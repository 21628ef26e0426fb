"""The prices of several resources at once: the minimum of the dual of some rounds, one and the same from any start.

A round is worth h(l) = max over p of p.l + (1 / gamma) sum_a ln p_a, where l are the arms' rewards less priced costs.
The distribution that attains it is nearly inverse-gap weighting, and p.l alone is the linear program's. The dual
D(prices) = mean h + prices.targets is then smooth and convex, and its gradient is what is left of each target. A small
barrier at both ends, 0 and the dearest price, makes its minimum unique.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armwise.core.agent import Floats

BARRIER = 1e-3  # in rewards: a resource of which half is left costs 0.002 per unit of its rate
_STEPS, _INNER = 100, 60
_TOLERANCE = 1e-12


class PricedRounds(NamedTuple):
    """Rounds with equally many arms: rewards (n, K), costs (n, m, K), covering ones below 0, and a share of each."""

    rewards: Floats
    costs: Floats
    shares: Floats


def minimum(rounds: Sequence[PricedRounds], targets: Floats, gamma: float, most: float, start: Floats) -> Floats:
    """The prices at which these rounds come to the targets, or pay nothing for what they need not."""
    prices = np.clip(start, 1e-4 * most, 0.5 * most)
    value, gradient, hessian = _dual(rounds, targets, gamma, most, prices)
    for _ in range(_STEPS):
        step = np.linalg.solve(hessian, -gradient)
        decrease = float(-gradient @ step)
        if decrease < _TOLERANCE:
            break
        ends = np.where(step > 0.0, most - prices, prices) / np.maximum(np.abs(step), 1e-300)
        size = min(1.0, 0.99 * float(ends.min()))
        while size > 1e-12:
            tried = prices + size * step
            after = _dual(rounds, targets, gamma, most, tried)
            if after[0] <= value - 0.1 * size * decrease:
                break
            size *= 0.5
        else:
            break  # as low as numbers can tell
        prices, (value, gradient, hessian) = tried, after
    return prices


def spending(rounds: Sequence[PricedRounds], prices: Floats, gamma: float) -> Floats:
    """The cost of the dual's distributions at these prices."""
    total = np.zeros(len(prices))
    for rewards, costs, shares in rounds:
        p, _ = distribution(rewards - np.einsum("i,nik->nk", prices, costs), gamma)
        total += np.einsum("n,nik,nk->i", shares, costs, p)
    return total


def _dual(
    rounds: Sequence[PricedRounds], targets: Floats, gamma: float, most: float, prices: Floats
) -> tuple[float, Floats, Floats]:
    value = float(prices @ targets) - BARRIER * float(np.log(prices).sum() + np.log(most - prices).sum())
    gradient = targets - BARRIER / prices + BARRIER / (most - prices)
    hessian = np.diag(BARRIER / prices**2 + BARRIER / (most - prices) ** 2)
    for rewards, costs, shares in rounds:
        worth = rewards - np.einsum("i,nik->nk", prices, costs)
        p, top = distribution(worth, gamma)
        value += float(shares @ ((p * worth).sum(axis=1) + np.log(p).sum(axis=1) / gamma))
        gradient = gradient - np.einsum("n,nik,nk->i", shares, costs, p)
        squares = p * p
        mean = np.einsum("nik,nk->ni", costs, squares) / top[:, None]
        apart = costs - mean[:, :, None]
        hessian = hessian + gamma * np.einsum("n,nik,nk,njk->ij", shares, apart, squares, apart)
    return value, gradient, hessian


def distribution(worth: Floats, gamma: float) -> tuple[Floats, Floats]:
    """(n, K): 1 / (gamma (u - worth)), which add up to 1, and the sum of their squares."""
    gaps = gamma * (worth.max(axis=1, keepdims=True) - worth)
    u = np.ones((len(worth), 1))
    for _ in range(_INNER):  # from below: convex and falling, so that Newton's steps never pass the root
        p = 1.0 / (u + gaps)
        over = p.sum(axis=1, keepdims=True) - 1.0
        squares = (p * p).sum(axis=1, keepdims=True)
        if float(over.max()) < 1e-14:
            break
        u = u + over / squares
    p = p / p.sum(axis=1, keepdims=True)
    return p, (p * p).sum(axis=1)
