"""Worlds with costs: linear in features, or tables in which the reward and the cost of every arm are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armwise.agents.budget.optimum import Optimum, budget_optimum
from armwise.core.agent import Floats, count, positive
from armwise.core.arguments import as_floats
from armwise.environments.environment import Block, Blocks, Environment, block_sizes

BEST_WITHIN_BUDGET = "the best policy that keeps to the budget (LP)"
BEST_MIXTURE_WITHIN_BUDGET = "the best fixed mixture that keeps to the budget (LP)"

_SAMPLE = 1000  # contexts over which the LP of the linear world is solved


class Budgeted(Environment):
    """Arm 0 costs and pays nothing; any other arm a pays 1 with chance x_a.theta and costs 1 with chance x_a.w.

    Features, theta and w are non-negative, of length at most 1. Regret is measured against the LP: the best policy
    whose mean cost is at most ``rate`` per decision. An agent that overspends can have negative regret: compare its
    costs too.

    >>> block = next(Budgeted(n_arms=4, dim=3, rate=0.2).blocks(horizon=100, seed=1))
    >>> block.costs.shape, float(block.costs[:, 0].max())
    ((100, 4), 0.0)
    """

    comparator = BEST_WITHIN_BUDGET

    def __init__(self, n_arms: int = 5, dim: int = 4, *, rate: float = 0.2) -> None:
        self.n_arms, self.dim = count("n_arms", n_arms, least=2), count("dim", dim)
        self.rate = positive("rate", rate)

    def _contexts(self, rng: np.random.Generator, T: int) -> Floats:
        contexts = rng.random((T, self.n_arms, self.dim)) ** 2
        contexts /= np.maximum(np.linalg.norm(contexts, axis=2, keepdims=True), 1.0)
        contexts[:, 0] = 0.0
        return contexts

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        theta, w = rng.random((2, self.dim)) ** 2
        theta, w = theta / np.linalg.norm(theta), w / np.linalg.norm(w)
        sample = self._contexts(rng, _SAMPLE)
        best = budget_optimum(sample @ theta, sample @ w, self.rate).value
        for T in block_sizes(horizon, self.n_arms * self.dim):
            contexts = self._contexts(rng, T)
            expected, paid = contexts @ theta, contexts @ w
            rewards = (rng.random(expected.shape) < expected).astype(np.float64)
            costs = (rng.random(paid.shape) < paid).astype(np.float64)
            yield Block({"features": contexts}, rewards, expected, np.full((T, 1), best), costs=costs)

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "R": 0.5, "S": 1.0, "L": 1.0, "linear": "features", "rate": self.rate, "null_arm": 0}


class Table(Environment):
    """Rows in which the reward and the cost of every arm are known, in another order for every seed.

    ``rewards`` and ``costs`` are (n, K), ``contexts`` (n, d), seen as a shared context (None: a constant). Past n
    rounds the rows come again, in another order. Regret is measured against the best fixed mixture of arms whose mean
    cost is at most ``rate`` (None: the best arm), because no agent could learn each row's best arm.

    >>> world = Table([[0.2, 0.8], [0.4, 0.6]], [[0.0, 1.0], [0.0, 1.0]], rate=0.5)
    >>> round(world.best.value, 3), world.best.policy.round(3)
    (0.5, array([[0.5, 0.5]]))
    """

    comparator = BEST_MIXTURE_WITHIN_BUDGET

    def __init__(
        self, rewards: ArrayLike, costs: ArrayLike, contexts: ArrayLike | None = None, *, rate: float | None = None
    ) -> None:
        self.rewards, self.costs = as_floats("rewards", rewards), as_floats("costs", costs)
        if self.rewards.ndim != 2 or 0 in self.rewards.shape or self.costs.shape != self.rewards.shape:
            raise ValueError(
                f"rewards and costs must be (n, K) arrays, got shapes {self.rewards.shape} and {self.costs.shape}"
            )
        self.contexts = np.ones((len(self.rewards), 1)) if contexts is None else as_floats("contexts", contexts)
        if self.contexts.ndim != 2 or len(self.contexts) != len(self.rewards):
            raise ValueError(f"contexts must have one row per row of rewards, got shape {self.contexts.shape}")
        self.rate, self.n_arms = None if rate is None else positive("rate", rate), self.rewards.shape[1]

    @property
    def best(self) -> Optimum:
        """The best fixed mixture that keeps to the rate: its value, its cost, and the share of every arm.

        >>> Table([[0.2, 0.8]], [[0.0, 1.0]]).best.value
        0.8
        """
        means = self.rewards.mean(axis=0, keepdims=True), self.costs.mean(axis=0, keepdims=True)
        return budget_optimum(*means, self.costs.max() if self.rate is None else self.rate)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        n, best = len(self.rewards), self.best.value
        rows = np.concatenate([rng.permutation(n) for _ in range(-(-horizon // n))])[:horizon]
        start = 0
        for T in block_sizes(horizon, self.contexts.shape[1]):
            now = rows[start : start + T]
            views = {"shared": np.ascontiguousarray(self.contexts[now])}
            yield Block(views, self.rewards[now], None, np.full((T, 1), best), costs=self.costs[now])
            start += T

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms} | ({} if self.rate is None else {"rate": self.rate})
