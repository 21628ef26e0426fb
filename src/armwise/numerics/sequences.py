"""Anytime-valid lower bounds on a running mean: the predictable plug-in empirical-Bernstein sequence, compiled."""

from __future__ import annotations

import numpy as np

from armwise.numerics.jit import jit_block

# state: n, sum x, sum (x - mean)^2, sum lam, sum lam x, sum psi(lam) (x - mean)^2, best bound so far
STATE = 7


@jit_block
def advance_lower(state: np.ndarray, x: np.ndarray, log_inverse_delta: float, scale: float, bounds: np.ndarray) -> None:
    """Feed observations x >= 0 with conditional mean in [0, 1]; ``bounds[i]`` is the lower bound after x[i].

    exp(lam (x - mu) - psi(lam) (x - m)^2), psi(lam) = -ln(1 - lam) - lam, is a test supermartingale for every
    predictable lam in [0, 1) and m <= 1 + x, so x needs no upper limit (Fan et al. 2015; Howard et al. 2021;
    Waudby-Smith & Ramdas 2024, Theorem 2, whose lam is used). Bounds that held once hold for ever: the best is kept.
    ``scale`` is about how large x gets. It makes the first bets cautious (a variance of up to ``scale`` is expected
    until about as many observations say otherwise); it changes the width, never the validity.

    >>> state, bounds = np.zeros(STATE), np.empty(1000)
    >>> advance_lower(state, np.ones(1000), np.log(20), 1.0, bounds)
    >>> bool(0.9 < bounds[-1] < 1)
    True
    """
    prior = 0.25 if scale <= 1.0 else scale
    for i in range(x.size):
        n = state[0] + 1.0
        mean = min(1.0, (0.5 + state[1]) / n)
        variance = (prior * scale + state[2]) / (state[0] + scale)
        lam = min(0.5, np.sqrt(2.0 * log_inverse_delta / (variance * n * np.log(1.0 + n))))
        state[3] += lam
        state[4] += lam * x[i]
        state[5] += (-np.log1p(-lam) - lam) * (x[i] - mean) ** 2
        state[0] = n
        state[1] += x[i]
        state[2] += (x[i] - min(1.0, (0.5 + state[1]) / (n + 1.0))) ** 2
        state[6] = max(state[6], (state[4] - log_inverse_delta - state[5]) / state[3])
        bounds[i] = state[6]
