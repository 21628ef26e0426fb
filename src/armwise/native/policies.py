"""Sums over rounds for every policy of an explicit class at once: the inner loops of the oracle agents.

``table[j, h]`` is the arm that policy h recommends in the j-th distinct context (native/policies.cpp).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.native._native import policies as _policies

policy_totals = _policies.policy_totals
add_rewards = _policies.add_rewards
arm_masses = _policies.arm_masses


def smoothed(masses: NDArray[Any], mu: float) -> NDArray[np.float64]:
    """(1 - K mu) W + mu: every arm keeps a probability of at least mu.

    >>> smoothed(np.array([1.0, 0.0]), 0.25)
    array([0.75, 0.25])
    """
    W: NDArray[np.float64] = (1.0 - masses.shape[-1] * mu) * masses + mu
    return W
