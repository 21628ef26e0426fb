"""LinUCB: optimism over a ridge estimate (survey 4.1.1, Algorithm 1; Li et al. 2010, Abbasi-Yadkori et al. 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise import bounds, hypotheses, persist
from armwise.agent import (
    Choice,
    Floats,
    IndexAgent,
    Played,
    Seed,
    Theory,
    count,
    fraction,
    glance,
    make_choice,
    positive,
)
from armwise.numerics.ridge import choose_optimistic, learn_row
from armwise.ridge import Ridge


class Ellipsoid(persist.Saved):
    """The width multiplier of the confidence ellipsoid (survey Theorem 2), which grows as det A grows.

    alpha_t = R sqrt(2 ln(det(A_t)^1/2 det(lam I)^-1/2 / delta)) + lam^1/2 S, where rewards are R-sub-Gaussian
    (``noise``) and ||theta*|| <= S (``norm``).

    >>> LinUCB(dim=2, alpha=Ellipsoid(noise=0.1, norm=1.0, delta=0.05)).alpha.norm
    1.0
    """

    def __init__(self, noise: float, norm: float, delta: float) -> None:
        self.noise, self.norm = positive("noise", noise), positive("norm", norm, zero=True)
        self.delta = fraction("delta", delta)

    def __repr__(self) -> str:
        return f"Ellipsoid(noise={self.noise}, norm={self.norm}, delta={self.delta})"


class LinUCB(IndexAgent):
    """Play the arm whose estimated reward plus confidence width is largest: x.theta + alpha sqrt(x' A^-1 x).

    Shared parameters over per-arm features (K may change every round), or, with ``n_arms``, one model for each arm
    over a shared context (*disjoint*, Li et al. 2010). ``alpha`` is a number or an ``Ellipsoid``; ``discount`` < 1
    forgets (each model fades by that factor whenever it learns; a step then costs O(d^3)).
    Erratum: where the survey writes lam^1/2 in Theorem 2, det(lam I)^1/2 = lam^(d/2) is meant.

    >>> agent = LinUCB(dim=2, alpha=0.5, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(20):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X)
    Choice(arm=1, probability=1.0, note=None)
    """

    theory = Theory(
        section="4.1.1",
        regret="O(d sqrt(T) ln(1 + T) + sqrt(d T ln(1 + T) ln(1 / delta)))",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta",
        reference="Li, Chu, Langford, Schapire 2010; Abbasi-Yadkori, Pal, Szepesvari 2011",
        regret_bound=bounds.linucb,
        hypotheses=hypotheses.linucb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="Theorem 2 prints lam^(1/2) for det(lam I)^(1/2), and drops the proof's factor 2 sqrt(2); "
        "the table misses a sqrt(ln T)",
    )
    reward_range = (-np.inf, np.inf)
    dim: int
    _learnt = ("_model",)

    def __init__(
        self,
        dim: int,
        alpha: float | Ellipsoid = 1.0,
        lam: float = 1.0,
        *,
        n_arms: int | None = None,
        discount: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self._model = Ridge(dim, lam, self.n_arms or 1, discount)
        self.dim, self.lam, self.discount = self._model.dim, self._model.lam, self._model.discount
        self.alpha = alpha if isinstance(alpha, Ellipsoid) else positive("alpha", alpha, zero=True)
        self.sees = "features" if n_arms is None else "shared"
        if isinstance(self.alpha, Ellipsoid):
            self._width = (float(np.sqrt(self.lam)) * self.alpha.norm, self.alpha.noise, self.alpha.delta)
        else:
            self._width = (self.alpha, 0.0, 1.0)
        self._settings = (self.lam, *self._width)

    _glance = glance

    def _scores(self, context: Floats) -> Floats:  # Algorithm 1, line 7
        return self._model.optimistic(context if context.ndim == 2 else context[None], *self._width)

    def _choose(self, context: Floats) -> Choice:
        X = context if self.n_arms is None else context[None]
        arm, ties = choose_optimistic(self._model.models, X, *self._settings)
        return make_choice((arm, 1.0, None)) if ties == 1 else super()._choose(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:  # lines 11-12
        if self.n_arms is not None:
            self._model.update(context, reward, choice.arm)
        elif self.discount < 1.0:
            self._model.learn(self._read(context), choice.arm, reward)
        else:  # the hot path
            learn_row(self._model.models, 0, context, choice.arm, reward)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        block = contexts if contexts.ndim == 3 else contexts[:, None]
        played = Played(*self._model.play_optimistic(block, rewards, *self._width, self._rng))
        self._n_learnt += len(rewards)
        return played
