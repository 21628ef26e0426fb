"""The size of a ridge that nobody gave: by the lengths of the rows, and by the likelihood of the rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.core.agent import Floats

RIDGE_SHARE = 0.05  # lam of ``lam=None``, in squared lengths of a row: chosen on development sets (docs/choose.md)
LARGER_SHARES = (0.5, 5.0)  # instead of it, where the rewards say so
UNLIKELIER = 10.0  # of -2 ln(likelihood): what a smaller ridge may cost more than the next larger one
COMPARED_FROM = 256  # rewards: with fewer the likelihood says little
MIN_SQUARED_LENGTH = 1e-290  # a squared length that says no more of the features' size than 0 does


def likeliest(
    ridges: Sequence[float], in_use: float, grams: Floats, moments: Floats, n: float, total: float, squares: float
) -> float:
    """The first of these ridges that is not much unlikelier than the next, by the marginal likelihood of rewards.

    Weights have the deviation of the noise / sqrt(ridge) around 0; noise and intercept are integrated out. ``grams``
    are A of each model, (M, d, d), with the ridge ``in_use``; ``moments`` are sum r x and sum x, (M, d, 2); ``n``
    rewards have this ``total`` and these ``squares``.
    """
    M, d = grams.shape[:2]
    chosen, least = ridges[0], np.inf
    for ridge in ridges:
        try:
            root = np.linalg.cholesky(grams + (ridge - in_use) * np.eye(d))
        except np.linalg.LinAlgError:  # rows so much larger than others that these are lost to rounding
            return chosen
        explained = np.linalg.solve(root, moments).reshape(-1, 2)
        (fit, cross), (_, ones) = (explained.T @ explained).tolist()
        left = n - ones  # of a constant, which the intercept explains
        rest = squares - fit - (total - cross) ** 2 / left if left > 0.0 else 0.0
        if not rest > 0.0:
            return chosen
        log_det = 2.0 * float(np.log(np.diagonal(root, axis1=1, axis2=2)).sum()) + np.log(left)
        cost = log_det - M * d * np.log(ridge) + (n - 1.0) * np.log(rest)
        if cost > least - UNLIKELIER:
            break
        chosen, least = ridge, cost
    return chosen
