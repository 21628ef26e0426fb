"""The fit of a ridge model from the rows themselves."""

from __future__ import annotations

import numpy as np

from armwise.core.choices import Floats


def fit_rows(rows: Floats, rewards: Floats, lam: float, prior: Floats) -> tuple[Floats, Floats]:
    """W, lower triangular with (lam I + X'X)^-1 = W'W, and theta, from the rows and not from their sums.

    Where some rows are far larger than others, X'X has lost the small ones to rounding and has no factor; the rows
    themselves have (a QR decomposition), with the square root of that loss.
    """
    d = len(prior)
    Q, R = np.linalg.qr(np.concatenate([np.sqrt(lam) * np.eye(d), rows]))
    signs = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    inverse = np.linalg.inv(signs[:, None] * R)  # A = R'R, so that W = (R^-1)'
    theta = inverse @ ((Q * signs).T @ np.concatenate([np.sqrt(lam) * prior, rewards]))  # of each column of rewards
    return np.tril(inverse.T), np.asarray(theta)
