"""SpectralUCB: optimism over the nodes of a graph whose rewards are smooth (Valko et al. 2014; empty in the survey)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, fraction, positive
from armwise.core.rounds import CompiledBlocks
from armwise.models.eigenbasis import smoothest
from armwise.native import spectral
from armwise.native.simd import aligned_zeros, padded
from armwise.theory import bounds, hypotheses

FULL = 1000  # nodes up to which all eigenvectors are used
REDUCED = 100  # eigenvectors beyond


def effective_dimension(eigenvalues: Floats, horizon: int, lam: float) -> int:
    """The effective dimension of a graph.

    The largest d with (d - 1) l_d <= T / ln(1 + T/lam), l_d the d-th smallest eigenvalue of the Laplacian plus lam.
    """
    l_d = np.sort(np.asarray(eigenvalues)) + lam
    return int(np.sum(np.arange(len(l_d)) * l_d <= horizon / math.log1p(horizon / lam)))  # (d - 1) l_d never falls


def _play(agent: SpectralUCB, contexts: None, rewards: Floats) -> tuple[Any, Any, Any]:
    arms, probabilities, got, agent._age = spectral.play(
        agent._basis, agent._model, agent._means, agent._squares, agent._age, agent._c, rewards, agent._rng
    )
    return arms, probabilities, got


class SpectralUCB(IndexAgent):
    """The arms are the n nodes of a graph; a reward also teaches about the nodes near by.

    L = Q diag(l) Q', node a's features are row a of Q, V = diag(l) + lam I + sum x x', and the score is
    x.alpha_hat + scale c ||x||_(V^-1) with c = 2 R sqrt(d ln(1 + T/lam) + 2 ln(1/delta)) + C, d the effective
    dimension, R the ``noise`` and C the ``norm``, at least ||f||_Lambda = sqrt(f' (L + lam I) f) of the true mean
    rewards f. ``scale`` = 1 is the paper's width, far wider than rewards need: ``SpectralUCB.theoretical``.

    The Laplacian is an array or a SciPy sparse matrix. ``basis`` is how many eigenvectors are used, the smoothest
    first (the paper's reduced basis): all of them up to 1,000 nodes unless given, 100 beyond. A round costs O(n basis).
    Beyond the survey, whose section is empty: Valko, Munos, Kveton, Kocak 2014.

    >>> path = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> agent = SpectralUCB(path, horizon=100, noise=0.1, seed=1)
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
        call="aw.SpectralUCB(np.diag([1.0] + [2.0] * ({K} - 2) + [1.0]) - np.eye({K}, k=1) - np.eye({K}, k=-1), "
        "horizon={T}, delta={delta}, noise={R}, norm={S})",
    )
    sees = "nothing"
    batches = CompiledBlocks(_play)
    reward_range = (-np.inf, np.inf)
    n_arms: int
    _learnt = ("_basis", "_model", "_means", "_squares", "_age")

    def __init__(
        self,
        laplacian: Any,
        horizon: int,
        *,
        scale: float = 0.04,
        lam: float = 0.01,
        delta: float = 0.05,
        noise: float = 0.5,
        norm: float = 1.0,
        basis: int | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.laplacian = _read_laplacian(laplacian)
        self.horizon, self.lam = count("horizon", horizon), positive("lam", lam)
        self.delta, self.noise = fraction("delta", delta), positive("noise", noise, zero=True)
        self.scale, self.norm = positive("scale", scale, zero=True), positive("norm", norm, zero=True)
        self.n_arms = n = int(self.laplacian.shape[0])
        self.basis = None if basis is None else count("basis", basis)
        if self.basis is not None and self.basis > n:
            raise ValueError(f"basis must be at most the number of nodes, {n}, got {basis}")
        eigenvalues, self._basis = smoothest(self.laplacian, self.basis or (n if n <= FULL else REDUCED))
        eigenvalues = _not_negative(eigenvalues)
        self.effective_dimension = effective_dimension(eigenvalues, self.horizon, self.lam)
        growth = self.effective_dimension * math.log1p(self.horizon / self.lam)
        self._c = self.scale * (2 * self.noise * math.sqrt(growth + 2 * math.log(1 / self.delta)) + self.norm)
        J = len(eigenvalues)
        self._model = aligned_zeros(padded(J) + 1, padded(J))
        self._model[range(J), range(J)] = 1 / np.sqrt(eigenvalues + self.lam)  # V^-1 = W'W
        self._means, self._squares, self._age = np.zeros(n), np.zeros(n), 0
        spectral.refresh(self._basis, self._model, self._means, self._squares)

    @classmethod
    def theoretical(
        cls,
        laplacian: Any,
        horizon: int,
        *,
        lam: float = 1.0,
        delta: float = 0.05,
        noise: float = 0.5,
        norm: float = 1.0,
        seed: Seed = None,
    ) -> Self:
        """The paper's own setting: its width, in the basis of all eigenvectors.

        >>> SpectralUCB.theoretical(np.eye(2), horizon=100, noise=0.1, norm=2.0).scale
        1.0
        """
        n = _read_laplacian(laplacian).shape[0]
        return cls(
            laplacian, horizon, scale=1.0, lam=lam, delta=delta, noise=noise, norm=norm, basis=n, seed=seed
        )  # fmt: skip

    @property
    def reduced(self) -> bool:
        """Whether it uses fewer eigenvectors than there are nodes.

        >>> SpectralUCB(np.eye(3), horizon=100, basis=2).reduced
        True
        """
        return bool(self._basis.shape[1] < self.n_arms)

    def _scores(self, context: None) -> Floats:
        return spectral.scores(self._means, self._squares, self._c)

    def _estimates(self, context: None) -> tuple[Floats, Floats]:
        return self._means.copy(), np.sqrt(np.maximum(self._squares, 0.0))

    def _learn(self, context: None, choice: Choice, reward: float) -> None:
        self._age = spectral.learn(
            self._basis, self._model, self._means, self._squares, self._age, choice.arm, reward
        )  # fmt: skip


def _read_laplacian(value: Any) -> Any:
    """The Laplacian as a float64 array, or as a CSR array if it is sparse."""
    sparse = hasattr(value, "tocsr")
    try:
        laplacian = value.tocsr().astype(np.float64) if sparse else np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"laplacian must be an array of numbers, got {type(value).__name__}") from None
    n = laplacian.shape[0] if laplacian.ndim else 0
    if n == 0 or laplacian.shape != (n, n):
        raise ValueError(f"laplacian must have shape (n, n), one row for each of n >= 1 nodes, got {laplacian.shape}")
    entries = laplacian.data if sparse else laplacian
    if not np.isfinite(entries).all():
        raise ValueError("laplacian must be finite, got NaN or infinity")
    if abs(laplacian - laplacian.T).max() > 1e-9 * abs(laplacian).max():
        raise ValueError("laplacian must be symmetric, got a matrix that differs from its transpose")
    return laplacian


def _not_negative(eigenvalues: Floats) -> Floats:
    if eigenvalues[0] < -1e-9 * max(1.0, eigenvalues[-1]):
        raise ValueError(
            f"laplacian must have no negative eigenvalue (degree minus adjacency has none), got {eigenvalues[0]:g}"
        )
    return np.maximum(eigenvalues, 0.0)
