"""Common base of GPUCB, CGPUCB and KernelUCB: optimism over the kernel posterior, step by step or in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.core.agent import Choice, Floats, IndexAgent, Played, Seed, count
from armwise.core.rounds import Batches, loop
from armwise.models.kernel_fit import fit
from armwise.models.kernel_posterior import KernelPosterior, Width, check_size
from armwise.models.kernels import Kernel, KernelLike
from armwise.native import gp


def same_width(model_dim: int | None, X: Floats) -> Floats:
    """X, if it has as many columns as the rows that were learnt before."""
    if model_dim is not None and X.shape[1] != model_dim:
        raise ValueError(f"X must have {model_dim} columns, as the rows learnt so far, got shape {X.shape}")
    return X


def check_block(kernel: Kernel, block: Floats) -> None:
    """Refuse a block of rounds with a row that would overflow, before the first of them is played."""
    if not kernel.bounded:
        check_size(kernel, kernel.diag(block.reshape(-1, block.shape[-1])))


class KernelBatches(Batches["KernelIndexAgent"]):
    """Rounds up to the next fit, and up to the point where the posterior changes its form."""

    def compiled(self, agent: KernelIndexAgent) -> bool:
        return True

    def block(self, agent: KernelIndexAgent, contexts: Floats, rewards: Floats) -> Played | None:
        posterior = agent._posterior
        if posterior.kernel.program is None:
            return None
        n = min(len(rewards), agent._next_fit() or len(rewards))
        played = posterior.play(contexts[:n], rewards[:n], agent._width, agent.t, agent._rng)
        done = len(played.arms)
        if done == 0:  # the posterior is about to change its form, or to refuse the kernel
            return loop(agent, contexts[:1], rewards[:1])
        agent._remember(contexts[np.arange(done), played.arms], played.rewards.tolist())
        return played


class KernelIndexAgent(IndexAgent):
    """Play the largest mean + multiplier * standard deviation, the multiplier fixed or from a schedule."""

    reward_range = (-np.inf, np.inf)
    batches = KernelBatches()
    plain_input = False  # the rows must be as wide as those learnt
    not_exported = "its kernel needs every row that it learnt", "LinUCB over features.Fourier columns"
    _learnt = ("_posterior", "_X", "_rewards")

    def __init__(
        self, kernel: KernelLike, noise: float, width: Width, dim: int | None, budget: int | None,
        fit_at: tuple[int, ...], seed: Seed,
    ) -> None:  # fmt: skip
        super().__init__(seed=seed)
        self.dim = None if dim is None else count("dim", dim)
        self.fit_at = tuple(count("fit_at", n, least=2) for n in fit_at)
        self._posterior = KernelPosterior(kernel, noise, budget)
        self.budget, self._width = self._posterior.budget, width
        # All that was learnt, kept only while a fit lies ahead.
        self._X: list[Floats] = []
        self._rewards: list[float] = []

    @property
    def information_gain(self) -> float:
        """I(r; f) of the rows learnt from, 1/2 ln det(I + K / noise^2); with a budget, an approximation.

        >>> import armwise as aw
        >>> agent = aw.GPUCB(aw.kernels.RBF(), noise=1.0)
        >>> agent.learn(np.zeros((1, 2)), aw.Choice(0, 1.0), 0.5)
        >>> round(agent.information_gain, 4)
        0.3466
        """
        return self._posterior.information_gain

    @property
    def fitted(self) -> tuple[Kernel, float]:
        """The kernel and the noise variance in use, which ``fit_at`` may have changed.

        >>> import armwise as aw
        >>> aw.KernelUCB(aw.kernels.Linear(), gamma=2.0).fitted
        (Linear(), 2.0)
        """
        return self._posterior.kernel, self._posterior.noise

    def _read(self, context: Any) -> Floats:
        return same_width(self._posterior.dim, super()._read(context))

    def _read_block(self, contexts: Any, T: int) -> Any:
        block = super()._read_block(contexts, T)
        check_block(self._posterior.kernel, block)
        return block

    def _scores(self, context: Floats) -> Floats:
        means, deviations = self._posterior.estimate(context)
        return means + gp.multiplier(self._width, len(context), self.t, self.information_gain) * deviations

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        return self._posterior.estimate(context)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        self._posterior.update_arm(context, choice.arm, reward)
        self._remember(context[choice.arm][None], [reward])

    def _next_fit(self) -> int | None:
        """Rewards until the next fit, or None when there is none to come."""
        return min((n - self._n_learnt for n in self.fit_at if n > self._n_learnt), default=None)

    def _remember(self, rows: Floats, rewards: list[float]) -> None:
        """Keep what was just learnt while a fit lies ahead, and fit when it is time; called before they are counted."""
        to_go = self._next_fit()
        if to_go is None:
            return
        self._X.extend(row.copy() for row in rows)
        self._rewards.extend(rewards)
        if len(rewards) == to_go:
            X, r = np.array(self._X), np.array(self._rewards)
            self._posterior.refit(*fit(*self.fitted, X, r), X, r)
            if len(r) == max(self.fit_at):
                self._X, self._rewards = [], []
