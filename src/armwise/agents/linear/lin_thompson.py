"""LinThompson: posterior sampling over a ridge estimate (survey 4.1.4, Algorithm 4; Agrawal and Goyal 2013)."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.linear_agent import LinearAgent
from armwise.agents.linear.ridge_batches import SampledBatches
from armwise.core import saving
from armwise.core.agent import Agent, Choice, Floats, Seed, Theory, count, fraction, positive
from armwise.models.noise import Noise
from armwise.native import regression, thompson, winning
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses

MONTE_CARLO = 1000  # posterior draws behind ``probabilities`` where choosing takes a single one
PRACTICAL = 0.2  # v of ``v=None``, in deviations of the noise: see docs/choose.md
EXTRA, BEYOND, MAX_SCALE = 1.0, 2.0, 1.0  # v^2 of arms with less data than the leading one: docs/choose.md
NO_TIES = np.empty(
    0
)  # what the kernels get for tie-breaking at first: ties are rare, and numbers for them are drawn then


class ThompsonScale(saving.Saved):
    """The posterior scale that the regret bound asks for: v_t = R sqrt((24 / epsilon) d ln(t / delta)).

    Rewards are R-sub-Gaussian (``noise``); the bound grows as T^((1 + epsilon) / 2) / epsilon.

    >>> round(ThompsonScale(noise=0.1, epsilon=0.5, delta=0.05).at(t=10, dim=4), 4)
    3.1895
    """

    def __init__(self, noise: float, epsilon: float, delta: float) -> None:
        self.noise, self.epsilon = positive("noise", noise), fraction("epsilon", epsilon)
        self.delta = fraction("delta", delta)

    def at(self, t: int, dim: int) -> float:
        """v_t in dimension ``dim``.

        >>> ThompsonScale(noise=1.0, epsilon=0.24, delta=np.exp(-1.0)).at(t=1, dim=1)
        10.0
        """
        return float(thompson.scale(t, 0.0, self.coefficient(dim), self.delta))

    def coefficient(self, dim: int) -> float:
        """The factor of sqrt(ln(t / delta)).

        >>> ThompsonScale(noise=1.0, epsilon=0.24, delta=0.1).coefficient(dim=4)
        20.0
        """
        return self.noise * math.sqrt(24 / self.epsilon * dim)

    def __repr__(self) -> str:
        return f"ThompsonScale(noise={self.noise}, epsilon={self.epsilon}, delta={self.delta})"


class SamplingAgent(Agent):
    """An agent that plays the winner of a posterior draw.

    With ``draws`` = 1 it is just that: an arm's probability is the one of its winning, but the choice does not know it
    (None). ``draws`` = M > 1 asks for the probability: where the arms' chances to win can be computed (two arms, arms
    with independent posteriors or with one common factor: see ``native/choices/winning.hpp``), the arm is drawn from
    these, and M does not matter; elsewhere it is drawn from the wins of M draws and one more vote that is spread
    evenly, so that no arm's probability is zero. Either way ``choose`` draws from exactly what it reports.

    ``probabilities`` is what ``choose`` draws from; with one draw, where it cannot be computed, an estimate from 1000.
    """

    not_exported = "it draws from a posterior, and what it draws has no formula", "LinUCB or SquareCB"
    draws: int

    @abstractmethod
    def _wins(self, context: Any, draws: int, rng: np.random.Generator) -> Floats:
        """The number of ``draws`` draws that each arm wins; ``rng`` also breaks ties."""

    @abstractmethod
    def _score_posterior(self, context: Any) -> tuple[Floats, Floats]:
        """Mean and covariance of the arms' scores under the posterior."""

    def _choose(self, context: Any) -> Choice:
        if self.draws == 1:
            return Choice(int(self._wins(context, 1, self._rng).argmax()), None)
        p = self._win_probabilities(context, self.draws, self._rng)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]))

    def _probabilities(self, context: Any) -> Floats:
        # On a copy of the stream: nothing changes, and with draws > 1 this is what the next choice is drawn from.
        draws = MONTE_CARLO if self.draws == 1 else self.draws
        return self._win_probabilities(context, draws, copy.deepcopy(self._rng))

    def _win_probabilities(self, context: Any, draws: int, rng: np.random.Generator) -> Floats:
        if self._count_arms(context) > thompson.MAX_EXACT_ARMS:
            return winning.smoothed_wins(self._wins(context, draws, rng))
        with np.errstate(over="ignore", invalid="ignore"):
            means, covariance = self._score_posterior(context)
        if not (np.isfinite(means).all() and np.isfinite(covariance).all()):
            raise ValueError("context must be finite (and its square must not overflow)")
        exact = winning.gaussian(means, covariance)
        return winning.smoothed_wins(self._wins(context, draws, rng)) if exact is None else exact


class LinThompson(LinearAgent, SamplingAgent):
    """Draw a parameter mu ~ N(mu_hat, v_t^2 B^-1) and play the arm that is best under it.

    Shared parameters over per-arm features, or, with ``n_arms``, one model for each arm over a shared context, like
    LinUCB, whose ``dim``, ``lam``, ``discount``, ``window`` and ``prior_mean`` it has too. ``scale`` multiplies the
    posterior's deviation: larger explores more. ``v=None``, the practical default, is a fifth of the noise of the
    rewards around the model, as it is learnt (see ``Noise``), and up to all of it for an arm that is known less than
    half as well as the leading one; otherwise ``v`` is a number, or a ``ThompsonScale``,
    which is what the bound needs: ``LinThompson.theoretical``. ``draws`` > 1 makes every choice know its probability
    (see ``SamplingAgent``).

    >>> agent = LinThompson(dim=2, draws=10, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(50):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.probabilities(X).round(3)
    array([0., 1.])
    """

    theory = Theory(
        section="4.1.4",
        regret="O(d^2 / epsilon sqrt(T^(1 + epsilon)) ln(T d) ln(1 / delta))",
        comparator="the best arm of each round",
        assumes="linear rewards: E[r | x] = x.theta, with R-sub-Gaussian noise",
        reference="Agrawal and Goyal 2013",
        regret_bound=bounds.lin_thompson,
        hypotheses=hypotheses.lin_thompson,
        high_probability=True,
        infinite_policies=True,
        call="aw.LinThompson(dim={d}, v=aw.ThompsonScale(noise={R}, epsilon=0.5, delta={delta}))",
        survey_row="Thompson Sampling with Linear Regression",
    )
    batches = SampledBatches()

    def __init__(
        self,
        dim: int | None = None,
        v: float | ThompsonScale | None = None,
        lam: float | None = None,
        *,
        scale: float = 1.0,
        n_arms: int | None = None,
        draws: int = 1,
        discount: float = 1.0,
        window: int | None = None,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.draws = count("draws", draws)
        self.v = v if v is None or isinstance(v, ThompsonScale) else positive("v", v, zero=True)
        self._begin(dim, lam, n_arms, discount, window, prior_mean, scale, Noise() if v is None else None)
        self._knows_probability = self.draws > 1

    @classmethod
    def theoretical(
        cls,
        dim: int,
        *,
        noise: float = 1.0,
        epsilon: float = 0.5,
        delta: float = 0.05,
        n_arms: int | None = None,
        seed: Seed = None,
    ) -> Self:
        """The agent of the theorem: v_t = R sqrt((24 / epsilon) d ln(t / delta)), and lam = 1.

        >>> LinThompson.theoretical(dim=5, noise=0.1).v
        ThompsonScale(noise=0.1, epsilon=0.5, delta=0.05)
        """
        return cls(dim, ThompsonScale(noise, epsilon, delta), 1.0, n_arms=n_arms, seed=seed)

    def _exploration(self) -> tuple[float, float, float, float, float, float]:
        """v_t = a + b sqrt(ln(t / delta)), or the default's, which is more for an arm that is known less."""
        if isinstance(self.v, ThompsonScale):
            return 0.0, self.scale * self.v.coefficient(self._model.dim), self.v.delta, 0.0, 1.0, np.inf
        if self.v is None and self._noise is not None:
            deviation = self.scale * self._noise.deviation
            return PRACTICAL * deviation, 0.0, 1.0, EXTRA * deviation**2, BEYOND, MAX_SCALE * deviation
        return self.scale * (self.v or 0.0), 0.0, 1.0, 0.0, 1.0, np.inf

    def _spread(self) -> tuple[float, float, float, float]:
        """Arguments of one round's kernels: v_t, and the extra width of arms with less data."""
        return thompson.scale(self.t, *self._width[:3]), *self._width[3:]

    def _wins(self, context: Floats, draws: int, rng: np.random.Generator) -> Floats:  # Algorithm 4, lines 3-4
        models, X = self._model.models, context if context.ndim == 2 else context[None]
        v = self._spread()
        Z = rng.standard_normal((draws, len(models) if len(models) > 1 else self._model.dim))
        wins = thompson.compete(models, X, *v, Z, NO_TIES)
        return thompson.compete(models, X, *v, Z, rng.random(draws)) if wins[0] < 0 else wins

    def _win_probabilities(self, context: Floats, draws: int, rng: np.random.Generator) -> Floats:
        if self._spread()[1]:  # then arms that are untried come first
            some, p = regression.untried(self._model.models, self._model.dim)
            if some:
                return p
        return super()._win_probabilities(context, draws, rng)

    def _score_posterior(self, context: Floats) -> tuple[Floats, Floats]:
        X = context if context.ndim == 2 else context[None]
        return thompson.score_posterior(self._model.models, X, *self._spread())
