"""Adversarial worlds (survey 5): rewards chosen in advance, or in response to the agent's arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.agents.arms.ucb1 import UCB1
from armwise.core.agent import Floats, count, fraction
from armwise.environments.environment import (
    BEST_ARM_IN_HINDSIGHT,
    BEST_EXPERT,
    Block,
    Blocks,
    Environment,
    block_sizes,
)


class Switching(Environment):
    """An oblivious adversary: the horizon is cut into phases, each with its own good arm, fixed in advance.

    Half of the phases favour one arm, so the best arm in hindsight is worth more than chance.

    >>> block = next(Switching(n_arms=4, phases=3).blocks(horizon=300, seed=1))
    >>> block.competitors.shape
    (300, 4)
    """

    comparator = BEST_ARM_IN_HINDSIGHT

    def __init__(self, n_arms: int = 5, *, phases: int = 8, gap: float = 0.4) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)
        self.phases = count("phases", phases)
        self.gap = fraction("gap", gap, one=True)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        favourites = _favourites(rng, self.n_arms, self.phases)
        start = 0
        for T in block_sizes(horizon, self.n_arms):
            phase = (start + np.arange(T)) * self.phases // horizon
            chance = np.full((T, self.n_arms), 0.5 - self.gap / 2)
            chance[np.arange(T), favourites[phase]] = 0.5 + self.gap / 2
            rewards = (rng.random(chance.shape) < chance).astype(np.float64)
            yield Block({}, rewards, competitors=rewards)
            start += T


class AgainstUCB1(Environment):
    """An adversary that knows UCB1: in every round the arm that UCB1 is about to play pays almost nothing.

    UCB1 is deterministic, so its arms can be computed in advance: rewards are fixed before the first round, and every
    other arm pays 1. UCB1 then loses in all rounds (regret about T (K - 1) / K), while for an agent that randomises no
    arm is much better than another. This is why agents for adversarial rewards randomise.

    >>> block = next(AgainstUCB1(n_arms=4).blocks(horizon=100, seed=1))
    >>> block.rewards[50].round(1).tolist().count(1.0)
    3
    """

    comparator = BEST_ARM_IN_HINDSIGHT

    def __init__(self, n_arms: int = 5) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        victim, low = UCB1(self.n_arms, seed=0), 0.05 * rng.random(self.n_arms)  # different, so that nothing ties
        start = 0
        for T in block_sizes(horizon, self.n_arms):
            rewards = np.ones((T, self.n_arms))
            for t in range(T):
                choice = victim.choose()
                if start + t < self.n_arms:  # the first K rounds try every arm once, in any order
                    rewards[t] = low
                else:
                    rewards[t, choice.arm] = low[choice.arm]
                victim.learn(None, choice, float(low[choice.arm]))
            yield Block({}, rewards, competitors=rewards)
            start += T


class Adaptive(Environment):
    """An adaptive adversary: arms that the agent has played recently pay less; arm 0 never changes.

    Arm a pays 1 with chance 0.8 - 0.7 (its share of the agent's recent plays), arm 0 always with chance 0.6: an agent
    that settles on any other arm loses.

    >>> rounds = Adaptive(n_arms=3).blocks(horizon=10, seed=1)
    >>> block = next(rounds)
    >>> block = rounds.send(np.array([2]))   # the adversary is told the arm before it makes the next round
    >>> len(block)
    1
    """

    comparator = BEST_ARM_IN_HINDSIGHT
    adaptive = True

    def __init__(self, n_arms: int = 5, *, memory: float = 50.0) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)
        self.memory = float(memory)
        if not self.memory >= 1.0:
            raise ValueError(f"memory must be at least 1 round, got {memory}")

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        share = np.full(self.n_arms, 1.0 / self.n_arms)
        for _ in range(horizon):
            chance = 0.8 - 0.7 * share
            chance[0] = 0.6
            rewards = (rng.random((1, self.n_arms)) < chance).astype(np.float64)
            arms = yield Block({}, rewards, competitors=rewards)
            if arms is None:
                raise ValueError("an adaptive world must be sent the arms of each block before it makes the next")
            share *= 1.0 - 1.0 / self.memory
            share[arms[0]] += 1.0 / self.memory


class Experts(Environment):
    """Expert advice with adversarial rewards: each phase favours the arms that one expert recommends.

    Every expert recommends an arm at random each round, the last one all arms alike (the uniform expert that the
    bound of Exp4 asks for); rewards are fixed in advance.

    >>> block = next(Experts(n_experts=6, n_arms=4).blocks(horizon=100, seed=1))
    >>> block.view("advice").shape, block.competitors.shape
    ((100, 6, 4), (100, 6))
    """

    comparator = BEST_EXPERT

    def __init__(self, n_experts: int = 20, n_arms: int = 5, *, phases: int = 8, gap: float = 0.4) -> None:
        self.n_experts = count("n_experts", n_experts, least=2)
        self.n_arms = count("n_arms", n_arms, least=2)
        self.phases = count("phases", phases)
        self.gap = fraction("gap", gap, one=True)

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        N, K, start = self.n_experts, self.n_arms, 0
        favourites = _favourites(rng, N - 1, self.phases)
        for T in block_sizes(horizon, N * K):
            recommended = rng.integers(K, size=(T, N - 1))
            advice = np.full((T, N, K), 1.0 / K)
            advice[:, :-1] = np.eye(K)[recommended]
            phase = (start + np.arange(T)) * self.phases // horizon
            chance = np.full((T, K), 0.5 - self.gap / 2)
            chance[np.arange(T), recommended[np.arange(T), favourites[phase]]] = 0.5 + self.gap / 2
            rewards = (rng.random((T, K)) < chance).astype(np.float64)
            worth: Floats = np.einsum("tnk,tk->tn", advice, rewards)
            yield Block({"advice": advice}, rewards, competitors=worth)
            start += T

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "N": self.n_experts}


def _favourites(rng: np.random.Generator, n: int, phases: int) -> np.ndarray:
    """Draw the favoured arms of each phase: the same one in every other phase, a random one in between."""
    order = rng.integers(n, size=phases)
    order[::2] = rng.integers(n)
    return order
