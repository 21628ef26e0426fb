"""Length-scales and noise by marginal likelihood."""

from __future__ import annotations

import math

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs
from armwise.models.kernels import Kernel

_REACH = math.log(1e3)  # how far from where it starts each parameter may go
_STARTS = (0.0, -math.log(10.0), math.log(10.0))  # the likelihood has local maxima: "all noise" is often one


def log_marginal_likelihood(kernel: Kernel, noise: float, X: Floats, rewards: Floats) -> float:
    """ln p(r | X) = -1/2 r'(K + noise I)^-1 r - 1/2 ln det(K + noise I) - n/2 ln 2 pi, ``noise`` a variance."""
    with needs():
        from scipy.linalg import cho_solve, cholesky

    n = len(X)
    L = cholesky(kernel(X) + noise * np.eye(n), lower=True, check_finite=False)
    fit = rewards @ cho_solve((L, True), rewards, check_finite=False)
    return float(-0.5 * fit - np.log(np.diag(L)).sum() - 0.5 * n * math.log(2 * math.pi))


def fit(kernel: Kernel, noise: float, X: Floats, rewards: Floats) -> tuple[Kernel, float]:
    """The kernel and the noise variance of largest marginal likelihood, by L-BFGS.

    It starts from the given ones and from ten times more and less; each may move by a factor of 1000.
    """
    with needs():
        from scipy.optimize import minimize

    start = np.append(kernel.theta, math.log(noise))

    def loss(theta: Floats) -> float:
        try:
            return -log_marginal_likelihood(kernel.with_theta(theta[:-1]), math.exp(theta[-1]), X, rewards)
        except np.linalg.LinAlgError:  # singular up to rounding: a place not to go
            return 1e25

    box = [(v - _REACH, v + _REACH) for v in start]
    best, least = start, loss(start)
    for shift in _STARTS:
        guess = start + np.append(np.full(len(start) - 1, shift), 0.0)
        found = minimize(loss, guess, method="L-BFGS-B", bounds=box, options={"eps": 1e-6})
        if found.fun < least:
            best, least = found.x, found.fun
    return kernel.with_theta(best[:-1]), math.exp(best[-1])
