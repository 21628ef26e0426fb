"""GPUCB and CGPUCB: optimism over a Gaussian process (survey 4.2.1, Algorithm 6; Srinivas et al. 2010)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from armwise.agents.kernel.kernel_agent import KernelIndexAgent
from armwise.core import saving
from armwise.core.agent import Floats, Seed, Theory, count, fraction, positive
from armwise.models.kernel_posterior import Width
from armwise.models.kernels import Columns, KernelLike, as_kernel
from armwise.native import gp
from armwise.theory import bounds, hypotheses


class FiniteArmsBeta(saving.Saved):
    """beta_t = 2 ln(K t^2 pi^2 / (6 delta)), K the arms of this round (Srinivas et al. 2010, Theorem 1).

    >>> from armwise.models.kernels import RBF
    >>> GPUCB(kernel=RBF(), noise=0.1, beta=FiniteArmsBeta(delta=0.1)).beta.delta
    0.1
    """

    def __init__(self, delta: float) -> None:
        self.delta = fraction("delta", delta)

    def __repr__(self) -> str:
        return f"FiniteArmsBeta(delta={self.delta})"


class AgnosticBeta(saving.Saved):
    """beta_t = 2 B + 300 gamma_t ln^3(t / delta) for any f with <f, f> <= B (``norm``) in the kernel's space.

    gamma_t is the information gain of the points learnt from so far (Srinivas et al. 2010, Theorem 3).

    >>> from armwise.models.kernels import RBF
    >>> GPUCB(kernel=RBF(), noise=0.1, beta=AgnosticBeta(norm=1.0, delta=0.1)).beta.norm
    1.0
    """

    def __init__(self, norm: float, delta: float) -> None:
        self.norm, self.delta = positive("norm", norm), fraction("delta", delta)

    def __repr__(self) -> str:
        return f"AgnosticBeta(norm={self.norm}, delta={self.delta})"


Beta = float | FiniteArmsBeta | AgnosticBeta


def _width(beta: Any) -> tuple[Beta, Width]:
    if isinstance(beta, FiniteArmsBeta):
        return beta, (gp.FINITE_ARMS, beta.delta, 0.0)
    if isinstance(beta, AgnosticBeta):
        return beta, (gp.AGNOSTIC, beta.delta, beta.norm)
    value = positive("beta", beta, zero=True)
    return value, (gp.FIXED, math.sqrt(value), 0.0)


class GPUCB(KernelIndexAgent):
    """Play the largest mu(x) + sqrt(beta_t) sigma(x) under a Gaussian process with prior mean 0 and a given kernel.

    ``noise`` is the standard deviation of the rewards' noise. ``beta`` is a number, ``FiniteArmsBeta`` or
    ``AgnosticBeta``. A round costs O(K t^2); O(K^2) while the same arms come every round; O(K m^2) for ever with
    ``budget=m`` inducing points (``KernelPosterior`` says how they are chosen). ``fit_at=(100, 400)`` fits
    length-scales, constants and noise by marginal likelihood when so many rewards have been learnt; until the last
    fit all rewards are kept, so that the posterior is then the fitted kernel's own.

    >>> from armwise.models.kernels import RBF
    >>> agent = GPUCB(kernel=RBF(length_scale=0.5), noise=0.1, beta=2.0, seed=1)
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> for _ in range(30):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9, 0.3][choice.arm])
    >>> agent.choose(X).arm
    1
    """

    theory = Theory(
        section="4.2.1",
        regret="O~(sqrt(T) (sqrt(B gamma_T) + gamma_T)); O~(sqrt(T gamma_T ln K)) if f is drawn from the process",
        comparator="the best arm of each round",
        assumes="E[r | x] = f(x), f drawn from the Gaussian process or of bounded norm in the kernel's space",
        reference="Srinivas, Krause, Kakade, Seeger 2010",
        regret_bound=bounds.gp_ucb,
        hypotheses=hypotheses.gp_ucb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="the survey prints B sqrt(gamma_T) for <f, f> <= B; it is sqrt(B gamma_T)",
        call="aw.GPUCB(aw.kernels.RBF(length_scale=1.0), noise={R}, beta=aw.AgnosticBeta(norm={S}, delta={delta}))",
        survey_row="GP-UCB",
    )

    def __init__(
        self,
        kernel: KernelLike,
        noise: float = 0.1,
        beta: Beta = 2.0,
        *,
        dim: int | None = None,
        budget: int | None = None,
        fit_at: tuple[int, ...] = (),
        seed: Seed = None,
    ) -> None:
        self.kernel, self.noise = as_kernel(kernel), positive("noise", noise)
        self.beta, width = _width(beta)
        super().__init__(self.kernel, self.noise**2, width, dim, budget, fit_at, seed)


class CGPUCB(GPUCB):
    """GPUCB over pairs (context, arm) with the product kernel k_Z(z, z') k_D(x, x') (Krause and Ong 2011).

    It ``sees`` features: each row of X is the context z (``context_dim`` numbers, the same in every row) followed by
    the arm's own features x; ``CGPUCB.rows(z, arms)`` lays them out. Each part has its own kernel. Arms without
    features are the rows of an identity matrix under a ``Linear`` kernel: each then learns for itself alone.

    >>> from armwise.models.kernels import RBF, Linear
    >>> agent = CGPUCB(RBF(), Linear(), context_dim=2, noise=0.1, seed=1)
    >>> X = CGPUCB.rows(context=[0.3, 0.7], arms=np.eye(3))
    >>> X
    array([[0.3, 0.7, 1. , 0. , 0. ],
           [0.3, 0.7, 0. , 1. , 0. ],
           [0.3, 0.7, 0. , 0. , 1. ]])
    >>> agent.learn(X, agent.choose(X), reward=1.0)
    """

    theory = Theory(
        section="4.2.1",
        regret="O~(sqrt(T gamma_T ln K)), gamma_T of the product kernel",
        comparator="the best arm of each round",
        assumes="E[r | z, x] = f(z, x), f drawn from the Gaussian process or of bounded norm in the kernel's space",
        reference="Krause, Ong 2011",
        regret_bound=bounds.gp_ucb,
        hypotheses=hypotheses.gp_ucb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        call="aw.CGPUCB(aw.kernels.RBF(length_scale=1.0), aw.kernels.RBF(length_scale=1.0), context_dim=1, "
        "noise={R}, beta=aw.FiniteArmsBeta(delta={delta}))",
        survey_row="GP-UCB",
    )

    def __init__(
        self,
        context_kernel: KernelLike,
        arm_kernel: KernelLike,
        context_dim: int,
        noise: float = 0.1,
        beta: Beta = 2.0,
        *,
        dim: int | None = None,
        budget: int | None = None,
        fit_at: tuple[int, ...] = (),
        seed: Seed = None,
    ) -> None:
        self.context_kernel, self.arm_kernel = as_kernel(context_kernel), as_kernel(arm_kernel)
        self.context_dim = count("context_dim", context_dim)
        kernel = Columns(self.context_kernel, 0, self.context_dim) * Columns(self.arm_kernel, self.context_dim)
        super().__init__(kernel, noise, beta, dim=dim, budget=budget, fit_at=fit_at, seed=seed)

    @staticmethod
    def rows(context: Any, arms: Any) -> Floats:
        """X for one round: the context before the features of every arm.

        >>> CGPUCB.rows(context=[9.0], arms=[[1.0], [2.0]])
        array([[9., 1.],
               [9., 2.]])
        """
        z, features = np.asarray(context, np.float64), np.asarray(arms, np.float64)
        if z.ndim != 1 or features.ndim != 2:
            raise ValueError(f"context must be (c,) and arms (K, d), got shapes {z.shape} and {features.shape}")
        return np.hstack([np.tile(z, (len(features), 1)), features])

    def _read(self, context: Any) -> Floats:
        X: Floats = super()._read(context)
        self._check_contexts(X)
        return X

    def _read_block(self, contexts: Any, T: int) -> Any:
        block = super()._read_block(contexts, T)
        self._check_contexts(block)
        return block

    def _check_contexts(self, X: Floats) -> None:
        if X.shape[-1] <= self.context_dim:
            raise ValueError(
                f"X must have the {self.context_dim} columns of the context and then the arm's own, got shape {X.shape}"
            )
        z = X[..., : self.context_dim]
        if not np.array_equal(z, np.broadcast_to(z[..., :1, :], z.shape)):
            raise ValueError(f"X must have the same context in its first {self.context_dim} columns for every arm")
