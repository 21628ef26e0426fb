"""KernelUCB and SupKernelUCB: LinUCB and SupLinUCB in the kernel's space (survey 4.2.2; Valko et al. 2013)."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from armwise.agents.kernel.kernel_agent import KernelIndexAgent, check_block, same_width
from armwise.agents.linear.staged.staging import Staged
from armwise.core.agent import Choice, Floats, Played, Seed, Theory, count, positive
from armwise.core.rounds import Batches, loop
from armwise.models.kernel_posterior import KernelPosterior
from armwise.models.kernels import KernelLike, as_kernel
from armwise.native import gp
from armwise.theory import bounds, hypotheses


class KernelUCB(KernelIndexAgent):
    """Play the largest f_hat(x) + eta sigma_hat(x), kernel ridge regression with regulariser ``gamma``.

    f_hat = k'(K + gamma I)^-1 r and sigma_hat = gamma^-1/2 sqrt(k(x, x) - k'(K + gamma I)^-1 k). With a linear kernel
    it is LinUCB with lam = gamma and alpha = eta. Costs and ``budget`` as for GPUCB. No regret bound is known for
    KernelUCB itself, whose rewards are not independent; SupKernelUCB has one.

    >>> from armwise.models.kernels import Linear
    >>> agent = KernelUCB(kernel=Linear(), gamma=0.5, eta=0.1, seed=1)
    >>> X = np.eye(2)
    >>> for _ in range(20):
    ...     choice = agent.choose(X)
    ...     agent.learn(X, choice, reward=[0.1, 0.9][choice.arm])
    >>> agent.choose(X).arm
    1
    """

    theory = Theory(
        section="4.2.2",
        regret="no bound known; SupKernelUCB has O~(sqrt(B d~ T))",
        comparator="the best arm of each round",
        assumes="E[r | x] = f(x), f of bounded norm in the kernel's space",
        reference="Valko, Korda, Munos, Flaounas, Cristianini 2013",
        infinite_policies=True,
        call="aw.KernelUCB(aw.kernels.RBF(length_scale=1.0), gamma=1.0, eta=1.0)",
        survey_row="KernelUCB",
    )

    def __init__(
        self,
        kernel: KernelLike,
        gamma: float = 1.0,
        eta: float = 1.0,
        *,
        dim: int | None = None,
        budget: int | None = None,
        seed: Seed = None,
    ) -> None:
        self.kernel, self.gamma = as_kernel(kernel), positive("gamma", gamma)
        self.eta = positive("eta", eta, zero=True)
        width = (gp.FIXED, self.eta / math.sqrt(self.gamma), 0.0)
        super().__init__(self.kernel, self.gamma, width, dim, budget, (), seed)


class StagedKernelBatches(Batches["SupKernelUCB"]):
    """Rounds up to the point where the posterior of a stage changes its form."""

    def compiled(self, agent: SupKernelUCB) -> bool:
        return True

    def block(self, agent: SupKernelUCB, contexts: Floats, rewards: Floats) -> Played | None:
        if agent.kernel.program is None:
            return None
        played = (self._pooled if agent.pooled else self._separate)(agent, contexts, rewards)
        return played if len(played.arms) else loop(agent, contexts[:1], rewards[:1])

    def _pooled(self, agent: SupKernelUCB, contexts: Floats, rewards: Floats) -> Played:
        (model,), multiplier = agent._models, agent._multiplier(contexts.shape[1])
        return model.play(contexts, rewards, (gp.STAGED, multiplier, float(agent.horizon)), agent.t, agent._rng)

    def _separate(self, agent: SupKernelUCB, contexts: Floats, rewards: Floats) -> Played:
        if not all(model.joint or model.dim is None for model in agent._models):
            return Played(np.empty(0, np.int64), np.empty(0), np.empty(0))
        T, stages = len(rewards), [model.joint for model in agent._models]
        arms, probabilities, got, learnt = np.empty(T, np.int64), np.empty(T), np.empty(T), np.empty(T, np.int64)
        settings = (agent.kernel.program, agent._multiplier(contexts.shape[1]), agent.horizon)
        play: Any = gp.play_stages
        done = play(stages, *settings, contexts, rewards, agent._rng, arms, probabilities, got, learnt)
        return Played(arms[:done], probabilities[:done], got[:done])


class SupKernelUCB(Staged[KernelPosterior]):
    """The staging of SupLinUCB around KernelUCB's mean and width scale eta sigma_hat, eta = sqrt(2 ln(2TN/delta)).

    N is the number of arms of the round. Each of max(1, ceil(ln T)) stages has its own posterior, with ``budget``
    inducing points where given. ``scale`` = 1 and separate stages are what the bound is for
    (``SupKernelUCB.theoretical``); the default is smaller, because with it thousands of rounds explore in stage 1, and
    one posterior answers for all stages (``pooled``). Erratum: the survey prints eta = sqrt(2 ln(2TN/eta)).

    >>> from armwise.models.kernels import RBF
    >>> agent = SupKernelUCB(kernel=RBF(), horizon=1000, delta=0.1, seed=1)
    >>> agent.choose(np.eye(2)).note
    4
    """

    theory = Theory(
        section="4.2.2",
        regret="O~(sqrt(B d~ T))",
        comparator="the best arm of each round",
        assumes="E[r | x] = f(x), f of bounded norm in the kernel's space, rewards in [0, 1]",
        reference="Valko, Korda, Munos, Flaounas, Cristianini 2013",
        regret_bound=bounds.sup_kernel_ucb,
        hypotheses=hypotheses.sup_kernel_ucb,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        erratum="eta = sqrt(2 ln(2TN/delta)); the survey prints eta on both sides",
        call="aw.SupKernelUCB(aw.kernels.RBF(length_scale=1.0), horizon={T}, delta={delta})",
        survey_row="KernelUCB",
    )
    reward_range = (-np.inf, np.inf)
    plain_input = False  # the rows must be as wide as those learnt
    batches = StagedKernelBatches()

    def __init__(
        self,
        kernel: KernelLike,
        horizon: int,
        delta: float = 0.05,
        gamma: float = 1.0,
        *,
        scale: float = 0.02,
        pooled: bool = True,
        dim: int | None = None,
        budget: int | None = None,
        seed: Seed = None,
    ) -> None:
        self.kernel, self.gamma = as_kernel(kernel), positive("gamma", gamma)
        self.dim = None if dim is None else count("dim", dim)
        self.budget = None if budget is None else count("budget", budget)
        super().__init__(horizon, delta, self._stage, scale, pooled=pooled, seed=seed)

    def _stage(self) -> KernelPosterior:
        return KernelPosterior(self.kernel, self.gamma, self.budget)

    @classmethod
    def theoretical(
        cls, kernel: KernelLike, horizon: int, delta: float = 0.05, gamma: float = 1.0, *, seed: Seed = None
    ) -> Self:
        """With the theorem's widths and separate stages.

        >>> from armwise.models.kernels import RBF
        >>> SupKernelUCB.theoretical(RBF(), horizon=100).scale
        1.0
        """
        return cls(kernel, horizon, delta, gamma, scale=1.0, pooled=False, seed=seed)

    def _read(self, context: Any) -> Floats:
        X: Floats = super()._read(context)
        for model in self._models:
            same_width(model.dim, X)
        return X

    def _read_block(self, contexts: Any, T: int) -> Any:
        block = super()._read_block(contexts, T)
        check_block(self.kernel, block)
        return block

    def _multiplier(self, n_arms: int) -> float:
        """The factor of a posterior's standard deviation: scale eta / sqrt(gamma)."""
        eta = math.sqrt(2.0 * math.log(2.0 * self.horizon * n_arms / self.delta))
        return self.scale * eta / math.sqrt(self.gamma)

    def _estimate(self, model: KernelPosterior, X: Floats, n_arms: int) -> tuple[Floats, Floats]:
        means, deviations = model.estimate(X)
        return means, self._multiplier(n_arms) * deviations

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        model = self._learning(choice)
        if model is not None:  # with all arms of the round: rows that come back are kept as one
            model.update_arm(context, choice.arm, reward)
