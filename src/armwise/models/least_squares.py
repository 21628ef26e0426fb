"""What a ridge model is asked besides its estimates: what it explains, and its fit from the rows themselves."""

from __future__ import annotations

import numpy as np

from armwise.core.choices import Floats
from armwise.native.fits import explained as explained_by

_MODELS = 4096  # looked at at a time: a hundred thousand arms have gigabytes of factors


def explained(W: Floats, theta: Floats, lam: float, prior: Floats | None) -> tuple[float, float]:
    """theta' A theta - lam ||prior mean||^2, and the degrees of freedom d - lam tr(A^-1) that the fit uses up.

    >>> explained(np.eye(2), np.zeros(2), 1.0, None)
    (0.0, 0.0)
    """
    fit, trace = explained_by(W, theta)
    if prior is not None:
        fit -= lam * float(prior @ prior)
    return fit, len(W) - lam * trace


def every_explained(factors: Floats, thetas: Floats, lam: float, priors: Floats | None) -> Floats:
    """(K, 2): ``explained`` of each model; those that have learnt nothing are all worked out at once.

    >>> every_explained(np.stack([np.eye(2)] * 3), np.zeros((3, 2)), 1.0, None).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    K, d = thetas.shape
    untaught, mean = np.diag(np.full(d, 1.0 / np.sqrt(lam))), np.zeros(d)
    fits = np.tile(explained(untaught, mean, lam, None), (K, 1))
    for start in range(0, K, _MODELS):
        now = slice(start, start + _MODELS)
        differs = (factors[now] != untaught).any(axis=(1, 2)) | (thetas[now] != mean).any(axis=1)
        for m in (start + np.flatnonzero(differs)).tolist():
            fits[m] = explained(factors[m], thetas[m], lam, None if priors is None else priors[m])
    return fits


def fit_rows(rows: Floats, rewards: Floats, lam: float, prior: Floats) -> tuple[Floats, Floats]:
    """W, lower triangular with (lam I + X'X)^-1 = W'W, and theta, from the rows and not from their sums.

    Where some rows are far larger than others, X'X has lost the small ones to rounding and has no factor; the rows
    themselves have (a QR decomposition), with the square root of that loss.

    >>> W, theta = fit_rows(np.array([[1e8, 7e7], [1.0, 1.0]]), np.array([1.0, 1.0]), 0.1, np.zeros(2))
    >>> bool(np.isfinite(W).all()), theta.round(6)
    (True, array([-0.878661,  1.25523 ]))
    """
    d = len(prior)
    Q, R = np.linalg.qr(np.concatenate([np.sqrt(lam) * np.eye(d), rows]))
    signs = np.where(np.diag(R) < 0.0, -1.0, 1.0)
    inverse = np.linalg.inv(signs[:, None] * R)  # A = R'R, so that W = (R^-1)'
    theta = inverse @ ((Q * signs).T @ np.concatenate([np.sqrt(lam) * prior, rewards]))
    return np.tril(inverse.T), np.asarray(theta)
