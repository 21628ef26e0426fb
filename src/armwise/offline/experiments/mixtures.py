"""Uniform boundaries: how far a sum of deviations can be from zero at any time, given the sum of their squares.

Howard, Ramdas, McAuliffe and Sekhon (2021). A sum S of deviations X - E[X], each predicted by some P with
X - P >= -c, has exp(lam S - psi(lam) V) as a supermartingale, V the sum of (X - P)^2 and psi that of an exponential
variable (theorem 4). A gamma mixture over lam is a supermartingale too (proposition 9): it is at most 1 / alpha at all
times at once with chance 1 - alpha. The normal mixture is the limit for c = 0, valid as the central limit theorem is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs


def best_rho(v: float, alpha: float) -> float:
    """The parameter of a one-sided mixture whose boundary is about the narrowest where the squares sum to ``v``."""
    log = -2.0 * math.log(2.0 * alpha)
    return v / (log + math.log1p(log))


def log_gamma_mixture(s: Any, v: Any, rho: float, c: float = 1.0) -> Floats:
    """The logarithm of the gamma-exponential mixture for deviations that sum to ``s``, squares that sum to ``v``."""
    with needs():
        from scipy.special import gammainc, gammaln

    shape = rho / c**2
    first = shape * math.log(shape) - gammaln(shape) - math.log(gammainc(shape, shape))
    moved, grown = (c * np.asarray(s, float) + v) / c**2, (np.asarray(v, float) + rho) / c**2
    argument = np.maximum(moved + shape, 1e-300)
    with np.errstate(divide="ignore"):
        found = first + gammaln(grown) + np.log(gammainc(grown, argument)) - grown * np.log(argument) + moved
    return np.where(moved + shape > 0.0, found, -np.inf)


def gamma_bound(v: Any, alpha: float, rho: float, c: float = 1.0) -> Floats:
    """A bound that the deviations' sum never exceeds, with chance 1 - ``alpha``, where their squares sum to ``v``."""
    with needs():
        from scipy.special import gammainc, gammaln

    v, target, shape = np.asarray(v, float), math.log(1.0 / alpha), rho / c**2
    s = np.sqrt(2.0 * v * target) + 2.0 * c * target + math.sqrt(rho)
    while np.any(short := log_gamma_mixture(s, v, rho, c) < target):
        s = np.where(short, 2.0 * s, s)
    grown = (v + rho) / c**2
    for _ in range(100):  # Newton's steps from above: the logarithm of a mixture of exponentials is convex
        x = (c * s + v) / c**2 + shape
        density = np.exp((grown - 1.0) * np.log(x) - x - gammaln(grown))
        slope = (density / gammainc(grown, x) - grown / x + 1.0) / c
        step = (log_gamma_mixture(s, v, rho, c) - target) / slope
        s = s - step
        if np.all(np.abs(step) <= 1e-10 * s):
            break
    ends: Floats = s
    return ends


def log_normal_mixture(s: Any, v: Any, rho: float) -> Floats:
    """The logarithm of twice the two-sided normal mixture: above ln(1 / alpha) at some time with chance 2 alpha."""
    grown = np.asarray(v, float) + rho
    found: Floats = np.square(s) / (2.0 * grown) + 0.5 * np.log(4.0 * rho / grown)
    return found


def normal_bound(v: Any, alpha: float, rho: float) -> Floats:
    """The bound of ``gamma_bound`` by the normal mixture: exact for Gaussian deviations, else right in the limit."""
    grown = np.asarray(v, float) + rho
    found: Floats = np.sqrt(grown * np.log(grown / (4.0 * alpha**2 * rho)))
    return found
