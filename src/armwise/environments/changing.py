"""Worlds that change: any world whose expected rewards change suddenly, seasonally or gradually."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count
from armwise.core.seeds import purpose_seed
from armwise.environments.environment import Block, Blocks, Environment


class _Changing(Environment):
    """A world whose rewards are rearranged by modes; mode 0 leaves them as they are.

    If arms have features, an odd mode reverses rewards, r -> 1 - r (theta -> -theta, so that a linear world stays
    linear); otherwise a mode is a permutation of the arms, drawn from the seed. Contexts do not change. Regret is
    against the best arm of each round, whatever the comparator of the inner world is.
    """

    def __init__(self, world: Environment) -> None:
        if not isinstance(world, Environment) or world.adaptive:
            raise ValueError(f"world must be an environment that does not react to the arms, got {world!r:.80}")
        self.world, self.n_arms, self.span = world, world.n_arms, world.span

    @abstractmethod
    def _modes(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, Floats]:
        """For rounds counted from 0: the current mode, the next mode, and the weight of the next."""

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        seed = int(rng.integers(2**63))
        start = 0
        for block in self.world._blocks(horizon, rng):
            rounds = np.arange(start, start + len(block))
            now, following, share = self._modes(rounds)
            both = [self._turned(block, modes, seed) for modes in (now, following)]
            moved = rng.random(len(block)) < share
            rewards = np.where(moved[:, None], both[1][0], both[0][0])
            expected = (1.0 - share[:, None]) * both[0][1] + share[:, None] * both[1][1]
            yield Block(block._views, rewards, expected)
            start += len(block)

    def _turned(self, block: Block, modes: np.ndarray, seed: int) -> tuple[Floats, Floats]:
        rewards, expected = block.rewards.copy(), block.expected.copy()
        for mode in np.unique(modes):
            rows = modes == mode
            if mode == 0:
                continue
            if self.world.native == "features":
                if mode % 2:
                    rewards[rows], expected[rows] = 1.0 - rewards[rows], 1.0 - expected[rows]
            else:
                order = np.random.default_rng(purpose_seed(seed, f"mode {mode}")).permutation(self.n_arms)
                rewards[rows], expected[rows] = rewards[rows][:, order], expected[rows][:, order]
        return rewards, expected

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms}  # no bound of the survey holds where rewards change


class Switch(_Changing):
    """The rewards of the arms are rearranged suddenly, every ``every`` rounds.

    >>> import armwise as aw
    >>> world = Switch(aw.environments.Linear(n_arms=3, dim=4, noise=0.0), every=10)
    >>> block = next(world.blocks(20, seed=1))
    >>> still = next(aw.environments.Linear(n_arms=3, dim=4, noise=0.0).blocks(20, seed=1))
    >>> block.view("features").shape == still.view("features").shape
    True
    """

    def __init__(self, world: Environment, every: int = 2_000) -> None:
        super().__init__(world)
        self.every = count("every", every)

    def _modes(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, Floats]:
        modes = rounds // self.every
        return modes, modes, np.zeros(len(rounds))


class Seasonal(_Changing):
    """``seasons`` arrangements of rewards recur cyclically; one cycle has ``period`` rounds.

    >>> import armwise as aw
    >>> world = Seasonal(aw.environments.Tabular(n_contexts=3, n_arms=4), period=100, seasons=4)
    >>> len(next(world.blocks(50, seed=1)))
    50
    """

    def __init__(self, world: Environment, period: int = 4_000, seasons: int = 2) -> None:
        super().__init__(world)
        self.period, self.seasons = count("period", period, least=2), count("seasons", seasons, least=2)
        if self.seasons > self.period:
            raise ValueError(f"seasons must be at most period={self.period}, got {seasons}")

    def _modes(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, Floats]:
        modes = (rounds % self.period) * self.seasons // self.period
        return modes, modes, np.zeros(len(rounds))


class Drift(_Changing):
    """Rewards move gradually from one arrangement to the next in ``period`` rounds: a round is drawn from the next one
    with a probability that grows from 0 to 1, and the expected reward is the weighted mean of the two.

    >>> import armwise as aw
    >>> world = Drift(aw.environments.Linear(n_arms=3, dim=4, noise=0.0), period=100)
    >>> middle = next(world.blocks(100, seed=1)).expected[50]
    >>> bool(np.allclose(middle, 0.5))
    True
    """

    def __init__(self, world: Environment, period: int = 10_000) -> None:
        super().__init__(world)
        self.period = count("period", period)

    def _modes(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, Floats]:
        now = rounds // self.period
        return now, now + 1, (rounds % self.period) / self.period
