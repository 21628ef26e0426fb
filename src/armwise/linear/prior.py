"""A prior mean for models that know none: they learn what rewards bring beyond x.theta_0, which is added back."""

from __future__ import annotations

from armwise.agent import Floats
from armwise.arguments import LARGEST


def beyond(mean: Floats | None, x: Floats, reward: float) -> float:
    """What a reward brings beyond the prior mean's x.theta_0.

    >>> import numpy as np
    >>> beyond(np.array([0.5, 0.0]), np.ones(2), 2.0)
    1.5
    """
    if mean is None:
        return reward
    rest = reward - float(x @ mean)
    if not -LARGEST <= rest <= LARGEST:  # the rewards' own limit
        raise ValueError(f"context is too large for this prior_mean: reward - x.prior_mean is {rest:g}")
    return rest


def added(mean: Floats | None, X: Floats, means: Floats) -> Floats:
    """Estimates of what rewards bring beyond the prior mean, as estimates of the rewards of the rows of X.

    >>> import numpy as np
    >>> added(np.array([0.5, 0.0]), np.eye(2), np.ones(2))
    array([1.5, 1. ])
    """
    return means if mean is None else means + X @ mean
