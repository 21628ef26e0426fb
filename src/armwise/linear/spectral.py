"""SpectralUCB: optimism over the nodes of a graph whose rewards are smooth (Valko et al. 2014; empty in the survey)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from armwise import bounds, hypotheses
from armwise.agent import Choice, Floats, IndexAgent, Played, Seed, Theory, count, fraction, positive
from armwise.numerics import ridge, spectral
from armwise.numerics.simd import padded


def effective_dimension(eigenvalues: Floats, horizon: int, lam: float) -> int:
    """The largest d with (d - 1) l_d <= T / ln(1 + T/lam), l_d the d-th smallest eigenvalue of the Laplacian plus lam.

    >>> effective_dimension(np.array([0.0, 1.0, 100.0, 1000.0]), horizon=100, lam=1.0)
    2
    """
    l_d = np.sort(np.asarray(eigenvalues)) + lam
    return int(np.sum(np.arange(len(l_d)) * l_d <= horizon / math.log1p(horizon / lam)))  # (d - 1) l_d never falls


class SpectralUCB(IndexAgent):
    """The arms are the n nodes of a graph; a reward also teaches about the nodes near by.

    L = Q diag(l) Q', node a's features are row a of Q, V = diag(l) + lam I + sum x x', and the score is
    x.alpha_hat + c ||x||_(V^-1) with c = 2 R sqrt(d ln(1 + T/lam) + 2 ln(1/delta)) + C, d the effective dimension,
    R the ``noise`` and C the ``norm``, at least ||f||_Lambda = sqrt(f' (L + lam I) f) of the true mean rewards f.
    Beyond the survey, whose section is empty: Valko, Munos, Kveton, Kocak 2014.

    >>> path = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> agent = SpectralUCB(path, horizon=100, lam=0.1, noise=0.1, seed=1)
    >>> agent.n_arms, agent.effective_dimension
    (3, 3)
    >>> agent.play(None, np.tile([0.0, 0.5, 1.0], (100, 1))).arms[-5:]
    array([2, 2, 2, 2, 2])
    """

    theory = Theory(
        section="4.1.5",
        regret="O(d sqrt(T) ln T), d the effective dimension of the graph",
        comparator="the best node",
        assumes="mean rewards smooth on the graph: f' (L + lam I) f <= C^2",
        reference="Valko, Munos, Kveton, Kocak 2014",
        regret_bound=bounds.spectral_ucb,
        hypotheses=hypotheses.spectral_ucb,
        high_probability=True,
        needs_horizon=True,
        erratum="the survey's section is empty",
    )
    sees = "nothing"
    compiled = True
    reward_range = (-np.inf, np.inf)
    n_arms: int
    _learnt = ("_model", "_widths")

    def __init__(
        self,
        laplacian: Any,
        horizon: int,
        *,
        lam: float = 1.0,
        delta: float = 0.05,
        noise: float = 0.5,
        norm: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.laplacian = _read_laplacian(laplacian)
        self.horizon, self.lam = count("horizon", horizon), positive("lam", lam)
        self.delta, self.noise = fraction("delta", delta), positive("noise", noise, zero=True)
        self.norm, self.n_arms = positive("norm", norm, zero=True), len(self.laplacian)
        self.effective_dimension = effective_dimension(_eigenvalues(self.laplacian), self.horizon, self.lam)
        growth = self.effective_dimension * math.log1p(self.horizon / self.lam)
        self._c = 2 * self.noise * math.sqrt(growth + 2 * math.log(1 / self.delta)) + self.norm
        n = self.n_arms
        self._model, self._widths = np.zeros((padded(n) + 1, padded(n))), np.empty(n)
        ridge.refit(self._model, self.laplacian + self.lam * np.eye(n), np.zeros(n))
        spectral.node_widths(self._model, self._widths)

    def _scores(self, context: None) -> Floats:
        return spectral.scores(self._model, self._widths, self._c)

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        spectral.learn(self._model, self._widths, choice.arm, reward)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        played = Played(*spectral.play(self._model, self._widths, self._c, rewards, self._rng))
        self._n_learnt += len(rewards)
        return played


def _read_laplacian(value: Any) -> Floats:
    try:
        laplacian = np.array(value.toarray() if hasattr(value, "toarray") else value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"laplacian must be an array of numbers, got {type(value).__name__}") from None
    n = len(laplacian) if laplacian.ndim else 0
    if n == 0 or laplacian.shape != (n, n):
        raise ValueError(f"laplacian must have shape (n, n), one row for each of n >= 1 nodes, got {laplacian.shape}")
    if not np.isfinite(laplacian).all():
        raise ValueError("laplacian must be finite, got NaN or infinity")
    if np.abs(laplacian - laplacian.T).max() > 1e-9 * np.abs(laplacian).max():
        raise ValueError("laplacian must be symmetric, got a matrix that differs from its transpose")
    return laplacian


def _eigenvalues(laplacian: Floats) -> Floats:
    eigenvalues = np.asarray(eigvalsh(laplacian, check_finite=False), np.float64)
    if eigenvalues[0] < -1e-9 * max(1.0, eigenvalues[-1]):
        raise ValueError(
            f"laplacian must have no negative eigenvalue (degree minus adjacency has none), got {eigenvalues[0]:g}"
        )
    return np.maximum(eigenvalues, 0.0)
