"""LinThompson: posterior sampling over a ridge estimate (survey 4.1.4, Algorithm 4; Agrawal and Goyal 2013)."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.linear.ridge_rounds import RidgeAgent
from armwise.core import saving
from armwise.core.agent import Agent, Choice, Choices, Floats, Played, Seed, Theory, count, fraction, positive
from armwise.models.noise import Noise
from armwise.native import thompson, winning
from armwise.native.choice import draw
from armwise.theory import bounds, hypotheses

MONTE_CARLO = 1000  # posterior draws behind ``probabilities`` where choosing takes a single one
PRACTICAL = 0.25  # v of ``v=None``, in deviations of the noise: see docs/choose.md
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
        """What multiplies sqrt(ln(t / delta)).

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
    with independent posteriors or with one common factor: see ``numerics.winning``), the arm is drawn from these, and
    M does not matter; elsewhere it is drawn from the wins of M draws and one more vote that is spread evenly, so that
    no arm's probability is zero. Either way ``choose`` draws from exactly what it reports.

    ``probabilities`` is what ``choose`` draws from; with one draw, where it cannot be computed, an estimate from 1000.
    """

    draws: int

    @abstractmethod
    def _wins(self, context: Any, draws: int, rng: np.random.Generator) -> Floats:
        """How many of ``draws`` draws each arm wins; ties are broken with ``rng`` too."""

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
        with np.errstate(over="ignore", invalid="ignore"):
            means, covariance = self._score_posterior(context)
        if not (np.isfinite(means).all() and np.isfinite(covariance).all()):
            raise ValueError("context must be finite (and its square must not overflow)")
        exact = winning.gaussian(means, covariance)
        return winning.smoothed_wins(self._wins(context, draws, rng)) if exact is None else exact


class LinThompson(RidgeAgent, SamplingAgent):
    """Draw a parameter mu ~ N(mu_hat, v_t^2 B^-1) and play the arm that is best under it.

    Shared parameters over per-arm features, or, with ``n_arms``, one model for each arm over a shared context, like
    LinUCB, whose ``dim``, ``lam``, ``discount``, ``window`` and ``prior_mean`` it has too. ``scale`` multiplies the
    posterior's deviation: larger explores more. ``v=None``, the practical default, is a quarter of the noise of the
    rewards around the model, as it is learnt (see ``Noise``); otherwise ``v`` is a number, or a ``ThompsonScale``,
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
    )

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
        """As the theorem wants it: v_t = R sqrt((24 / epsilon) d ln(t / delta)), and lam = 1.

        >>> LinThompson.theoretical(dim=5, noise=0.1).v
        ThompsonScale(noise=0.1, epsilon=0.5, delta=0.05)
        """
        return cls(dim, ThompsonScale(noise, epsilon, delta), 1.0, n_arms=n_arms, seed=seed)

    def _set_width(self) -> None:
        if isinstance(self.v, ThompsonScale):
            self._scale = (0.0, self.scale * self.v.coefficient(self._model.dim), self.v.delta)
        elif self._noise is not None:
            self._scale = (self.scale * PRACTICAL * self._noise.deviation, 0.0, 1.0)
        else:
            assert self.v is not None
            self._scale = (self.scale * self.v, 0.0, 1.0)

    def _wins(self, context: Floats, draws: int, rng: np.random.Generator) -> Floats:  # Algorithm 4, lines 3-4
        models, X = self._model.models, context if context.ndim == 2 else context[None]
        v = thompson.scale(self.t, *self._scale)
        Z = rng.standard_normal((draws, len(models) if len(models) > 1 else self._model.dim))
        wins = thompson.compete(models, X, v, Z, NO_TIES)
        return thompson.compete(models, X, v, Z, rng.random(draws)) if wins[0] < 0 else wins

    def _score_posterior(self, context: Floats) -> tuple[Floats, Floats]:
        X = context if context.ndim == 2 else context[None]
        return thompson.score_posterior(self._model.models, X, thompson.scale(self.t, *self._scale))

    def _choose_many(self, contexts: Any, n: int) -> Choices:
        if isinstance(contexts, list) or not n or self.draws > 1:
            return super()._choose_many(contexts, n)
        v = thompson.scale(self.t, *self._scale)
        return Choices(*thompson.choose_many(self._model.models, self._block(contexts), v, self._rng))

    def _play_piece(self, block: Floats, rewards: Floats) -> Played:
        return Played(*self._model.play_sampled(block, rewards, self.t, *self._scale, self.draws, self._rng))
