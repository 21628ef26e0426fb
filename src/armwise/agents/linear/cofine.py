"""CoFineUCB: coarse-to-fine exploration along a subspace (Yue, Hong, Guestrin 2012; empty in the survey)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.core.agent import Choice, Floats, IndexAgent, Seed, Theory, count, fraction, positive
from armwise.core.arguments import refuse_masked
from armwise.core.capabilities.merging import Merging
from armwise.core.policy_document import FrozenAgent, LinearModel
from armwise.core.rounds import CompiledBlocks
from armwise.models.hierarchical_ridge import HierarchicalRidge
from armwise.native import cofine
from armwise.theory import bounds, hypotheses


def _play(agent: CoFineUCB, contexts: Floats, rewards: Floats) -> tuple[Any, Any, Any]:
    widths = (agent.scale, agent.alpha, agent.alpha_coarse)
    return cofine.play(*agent._model.arrays, agent.lam, *widths, contexts, rewards, agent._rng)


class CoFineUCB(Merging, IndexAgent):
    """Optimism with two widths: w.x + scale (alpha ||x||_(M^-1) + alpha_coarse lam ||U' M^-1 x||_(M~^-1)).

    ``subspace`` is U, (d, k): where past users' parameters mostly lie (see ``learn_subspace``). Exploring k coarse
    directions is cheap, and what they do not explain is still learnt in all d. The defaults trust the subspace (a heavy
    ridge around it, a light one within), which is what it is for.
    ``prior_mean`` (d,) is what theta is believed to be before any reward.
    Beyond the survey, whose section is empty: Yue, Hong, Guestrin 2012.

    >>> agent = CoFineUCB(dim=3, subspace=np.eye(3)[:, :1], alpha=0.5, seed=1)
    >>> agent.choose(np.eye(3)).arm  # nothing known: the coarse direction is the most uncertain
    0
    """

    theory = Theory(
        section="4.1.3",
        regret="O((alpha sqrt(d) + alpha_coarse sqrt(k)) sqrt(T ln T)) (Yue et al. 2012)",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, theta close to the subspace",
        reference="Yue, Hong, Guestrin 2012",
        regret_bound=bounds.cofine_ucb,
        hypotheses=hypotheses.cofine_ucb,
        high_probability=True,
        infinite_policies=True,
        erratum="the survey's section is empty",
        call="aw.CoFineUCB(dim={d}, subspace=np.eye({d})[:, :2])",
    )
    reward_range = (-np.inf, np.inf)
    batches = CompiledBlocks(_play)
    dim: int
    _learnt = ("_model",)

    def __init__(
        self,
        dim: int,
        subspace: Any,
        lam: float = 10.0,
        lam_coarse: float = 0.1,
        alpha: float = 1.0,
        alpha_coarse: float = 1.0,
        *,
        scale: float = 0.1,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.scale = positive("scale", scale, zero=True)
        self.dim = count("dim", dim)
        self.subspace = _read_matrix("subspace", subspace)
        if self.subspace.shape[0] != self.dim:
            raise ValueError(f"subspace must have shape ({self.dim}, k), one row a feature, got {self.subspace.shape}")
        self.lam, self.lam_coarse = positive("lam", lam), positive("lam_coarse", lam_coarse)
        self.alpha = positive("alpha", alpha, zero=True)
        self.alpha_coarse = positive("alpha_coarse", alpha_coarse, zero=True)
        self._model = HierarchicalRidge(self.subspace, self.lam, self.lam_coarse, prior_mean)
        self.prior_mean = self._model.prior_mean

    @classmethod
    def theoretical(
        cls,
        dim: int,
        subspace: Any,
        horizon: int,
        *,
        noise: float = 1.0,
        norm_rest: float = 0.0,
        norm_coarse: float = 1.0,
        length: float = 1.0,
        delta: float = 0.05,
        seed: Seed = None,
    ) -> Self:
        """Widths that cover both estimates' errors over the horizon, so that the bound holds, with lam = max(1, L^2).

        theta = U theta~ + rest with ||theta~|| <= ``norm_coarse`` and ||rest|| <= ``norm_rest``; rewards are
        R-sub-Gaussian (``noise``), rows at most ``length`` long.

        >>> CoFineUCB.theoretical(3, np.eye(3)[:, :1], horizon=1000, noise=0.1).alpha_coarse.__round__(2)
        1.38
        """
        U, T = _read_matrix("subspace", subspace), count("horizon", horizon)
        L, share = positive("length", length), fraction("delta", delta) / 2.0
        lam, (d, k) = max(1.0, L**2), U.shape
        rest, longest = positive("norm_rest", norm_rest, zero=True), L * float(np.linalg.norm(U, 2))
        noise = positive("noise", noise)
        alpha = noise * _ellipsoid(T, d, L, lam, share) + math.sqrt(lam) * rest
        coarse = noise * _ellipsoid(T, k, longest, 1.0, share) + positive("norm_coarse", norm_coarse, zero=True)
        return cls(dim, U, lam, 1.0, alpha, coarse + L * rest * math.sqrt(T), scale=1.0, seed=seed)

    @staticmethod
    def learn_subspace(profiles: Any, k: int) -> Floats:
        """The subspace U (d, k) of past users' weight vectors, the columns of ``profiles`` W (d, n).

        U = U0 chol((k / tr(W0 W0')) W0 W0') with U0 the top k left singular vectors of W and W0 = U0' W: the coarse
        ridge then costs least along the directions in which past users differ most (LearnU of Yue et al. 2012).

        >>> W = np.array([[2.0, -2.0, 2.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
        >>> np.abs(CoFineUCB.learn_subspace(W, k=1)).round(3).ravel()
        array([1., 0., 0.])
        """
        W = _read_matrix("profiles", profiles)
        k = count("k", k)
        if k > min(W.shape):
            raise ValueError(f"k must be at most {min(W.shape)} for profiles of shape {W.shape}, got {k}")
        U, s, _ = np.linalg.svd(W, full_matrices=False)
        if s[k - 1] <= 1e-12 * s[0]:
            raise ValueError(f"k is {k}, but profiles span fewer than {k} directions: expected a smaller k")
        # W0 W0' = diag(s_1^2 .. s_k^2), so its Cholesky factor is diagonal.
        return U[:, :k] * (s[:k] * np.sqrt(k / np.sum(s[:k] ** 2)))  # type: ignore[no-any-return]

    def _scores(self, context: Floats) -> Floats:
        means, fine, coarse = self._model.estimate(context)
        return means + self.scale * (self.alpha * fine + self.alpha_coarse * coarse)

    def freeze(self) -> FrozenAgent:
        """The weights and both widths.

        >>> [alpha for alpha, _ in CoFineUCB(2, np.eye(2)[:, :1], alpha=0.5).freeze().models[0].widths]
        [0.05, 0.1]
        """
        model = self._model
        weights, _, _ = model.estimate(np.eye(self.dim))
        fine = model._fine.factor()
        coarse = model.lam * (model._coarse.factor() @ model.subspace.T @ (fine.T @ fine))
        widths = ((self.scale * self.alpha, fine), (self.scale * self.alpha_coarse, coarse))
        return FrozenAgent((LinearModel(weights, widths),), {"kind": "optimism", "extra": 0.0, "beyond": 1.0})

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        means, fine, _ = self._model.estimate(context)
        return means, fine

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        self._model.update(context[choice.arm], reward)

    def _merge(self, other: Self) -> None:
        self._model.merge(other._model)


def _ellipsoid(T: int, d: int, L: float, lam: float, delta: float) -> float:
    """sqrt(2 ln(det(A_T)^1/2 det(lam I)^-1/2 / delta)) at its largest, after T rows of length L."""
    return math.sqrt(d * math.log1p(T * L**2 / (d * lam)) + 2.0 * math.log(1.0 / delta))


def _read_matrix(name: str, value: Any) -> Floats:
    refuse_masked(name, value)
    try:
        matrix = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {type(value).__name__}") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a matrix with one row for each feature, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return matrix
