"""LinThompson: posterior sampling over a ridge estimate (survey 4.1.4, Algorithm 4; Agrawal and Goyal 2013)."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from typing import Any

import numpy as np

from armwise import bounds, hypotheses, persist
from armwise.agent import Agent, Choice, Floats, Played, Seed, Theory, count, fraction, positive
from armwise.numerics import thompson
from armwise.numerics.choice import draw
from armwise.ridge import Ridge

MONTE_CARLO = 1000  # posterior draws behind ``probabilities`` where choosing takes a single one
NO_TIES = np.empty(
    0
)  # what the kernels get for tie-breaking at first: ties are rare, and numbers for them are drawn then


class ThompsonScale(persist.Saved):
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


class Posterior(Ridge):
    """The ridge model read as a Gaussian posterior N(theta, v^2 A^-1), with Thompson's block of rounds.

    >>> rng = np.random.default_rng(1)
    >>> Posterior(dim=1).play(np.ones((1, 1, 1)), np.ones((1, 1)), 1, 1.0, 0.0, 1.0, 2, rng)
    (array([0]), array([2.]), array([1.]))
    """

    def play(self, contexts: Floats, rewards: Floats, *settings: Any) -> tuple[Any, Any, Any]:
        """Arms, draws won and rewards; ``settings`` are first round, v, coefficient, delta, draws and the generator.

        >>> rng = np.random.default_rng(1)
        >>> Posterior(dim=1).play(np.ones((1, 1, 1)), np.ones((1, 1)), 1, 1.0, 0.0, 1.0, 1, rng)
        (array([0]), array([1.]), array([1.]))
        """
        return thompson.play(
            self.models, self._grams, self._moments, contexts, rewards, self.lam, self.discount, *settings
        )


class SamplingAgent(Agent):
    """An agent that plays the winner of a posterior draw, or one of the winners of ``draws`` = M draws.

    With M > 1 the arm is drawn from the winners' frequencies, and its probability is exactly its frequency. With M = 1
    the probability is unknown (None), and ``probabilities`` is a Monte Carlo estimate over 1000 draws.
    """

    draws: int

    @abstractmethod
    def _wins(self, context: Any, draws: int, rng: np.random.Generator) -> Floats:
        """How many of ``draws`` draws each arm wins; ties are broken with ``rng`` too."""

    def _choose(self, context: Any) -> Choice:
        wins = self._wins(context, self.draws, self._rng)
        if self.draws == 1:
            return Choice(int(wins.argmax()), None)
        arm = draw(wins, self.draws * self._rng.random())
        return Choice(int(arm), float(wins[arm] / self.draws))

    def _probabilities(self, context: Any) -> Floats:
        draws = MONTE_CARLO if self.draws == 1 else self.draws
        # On a copy of the stream: nothing changes, and with draws > 1 these are the frequencies of the next choice.
        return self._wins(context, draws, copy.deepcopy(self._rng)) / draws


class LinThompson(SamplingAgent):
    """Draw a parameter mu ~ N(mu_hat, v^2 B^-1) and play the arm that is best under it.

    Shared parameters over per-arm features, or, with ``n_arms``, one model for each arm over a shared context, like
    LinUCB. ``v`` is a number or a ``ThompsonScale``. With ``draws`` = M > 1 the arm is drawn from the frequencies of M
    posterior winners, and its probability is exactly that frequency; with one draw it is unknown (None), and
    ``probabilities`` is a Monte Carlo estimate over 1000 draws.

    >>> agent = LinThompson(dim=2, v=0.2, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(50):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X)
    Choice(arm=1, probability=None, note=None)
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
    reward_range = (-np.inf, np.inf)
    dim: int
    _learnt = ("_model",)

    def __init__(
        self,
        dim: int,
        v: float | ThompsonScale = 1.0,
        lam: float = 1.0,
        *,
        n_arms: int | None = None,
        draws: int = 1,
        discount: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self._model = Posterior(dim, lam, self.n_arms or 1, discount)
        self.dim, self.lam, self.discount = self._model.dim, self._model.lam, self._model.discount
        self.draws = count("draws", draws)
        self.v = v if isinstance(v, ThompsonScale) else positive("v", v, zero=True)
        self.sees = "features" if n_arms is None else "shared"
        if isinstance(self.v, ThompsonScale):
            self._scale = (0.0, self.v.coefficient(self.dim), self.v.delta)
        else:
            self._scale = (self.v, 0.0, 1.0)

    def _wins(self, context: Floats, draws: int, rng: np.random.Generator) -> Floats:  # Algorithm 4, lines 3-4
        models, X = self._model.models, context if context.ndim == 2 else context[None]
        v = thompson.scale(self.t, *self._scale)
        Z = rng.standard_normal((draws, len(models) if len(models) > 1 else self.dim))
        wins = thompson.compete(models, X, v, Z, NO_TIES)
        return thompson.compete(models, X, v, Z, rng.random(draws)) if wins[0] < 0 else wins

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:  # line 6
        if self.n_arms is None:
            self._model.learn(context, choice.arm, reward)
        else:
            self._model.learn(context[None], 0, reward, choice.arm)

    def _play(self, contexts: Any, rewards: Floats) -> Played:
        block = contexts if contexts.ndim == 3 else contexts[:, None]
        arms, wins, got = self._model.play(block, rewards, self.t, *self._scale, self.draws, self._rng)
        self._n_learnt += len(rewards)
        return Played(arms, np.full(len(arms), np.nan) if self.draws == 1 else wins / self.draws, got)
