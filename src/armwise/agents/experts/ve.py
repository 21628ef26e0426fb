"""VE: expert advice for infinitely many policies, through one representative a labelling (survey 5.3, Algorithm 14)."""

from __future__ import annotations

import math

import numpy as np

from armwise.agents.experts.exp4p import noted_probabilities
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory, count, fraction
from armwise.core.capabilities.noting import Noting
from armwise.core.rounds import Batches
from armwise.native import experts
from armwise.native.choice import draw
from armwise.policies.classes import PolicyClass, Representatives
from armwise.theory import bounds, hypotheses

_VOTES = 1 << 20  # votes that ``play`` holds at once


class RepresentativeBatches(Batches["VE"]):
    """VE's rounds: the uniform ones, then as many at a time as their votes are held."""

    def compiled(self, agent: VE) -> bool:
        return True

    def block(self, agent: VE, contexts: Floats, rewards: Floats) -> Played:
        if agent.representatives is None:
            n = agent.tau - len(agent._contexts)
            return self._uniform(agent, contexts[:n], rewards[:n])
        n = max(1, _VOTES // len(agent.representatives))
        votes = agent.representatives.votes(contexts[:n])
        return Played(*experts.voted_play(agent._log_weights, *agent._schedule(), votes, rewards[:n], agent._rng))

    def _uniform(self, agent: VE, contexts: Floats, rewards: Floats) -> Played:
        T, K = rewards.shape
        p = np.full(K, 1.0 / K)
        arms = np.minimum(np.searchsorted(np.cumsum(p), agent._rng.random(T), side="right"), K - 1)  # as `draw` does
        agent._gather(contexts)
        return Played(arms, p[arms], rewards[np.arange(T), arms])


class VE(Agent, Noting):
    """Play uniformly for tau rewards, then Exp4P on one policy for each way the class labels the tau contexts.

    tau = sqrt(T (2 d ln(e T / d) + ln(2 / delta))), d the VC dimension of the class. The representatives hold the
    constant policies, whose average is the uniform expert that the bound of Exp4P asks for; Exp4P runs for the
    other T - tau rounds with delta / 2, as in the proof. The first tau rewards learnt bring the contexts; a reward of
    a uniform round that comes later is learnt by Exp4P, with the probabilities 1 / K of its round.

    >>> from armwise.policies import Stumps
    >>> agent = VE(Stumps(dim=1), n_arms=2, horizon=1000, delta=0.05, seed=1)
    >>> agent.tau
    181
    >>> x = np.linspace(0.0, 1.0, 1000)[:, None]
    >>> np.random.default_rng(1).shuffle(x)
    >>> played = agent.play(x, np.column_stack([x <= 0.3, x > 0.3]).astype(float))
    >>> len(agent.representatives), bool(played.rewards[-200:].mean() > 0.8)
    (362, True)
    """

    theory = Theory(
        section="5.3",
        regret="O(sqrt(T d ln(T / d)))",
        comparator="the best policy of the class",
        assumes="two arms, contexts in an exchangeable order, rewards in [0, 1], a class of VC dimension d",
        reference="Beygelzimer, Langford, Li, Reyzin, Schapire 2011",
        regret_bound=bounds.ve,
        hypotheses=hypotheses.ve,
        high_probability=True,
        infinite_policies=True,
        needs_horizon=True,
        call="aw.VE(aw.policies.Stumps(dim={d}), n_arms=2, horizon={T}, delta={delta})",
    )
    sees = "shared"
    batches = RepresentativeBatches()
    needs_probability = True
    n_arms: int
    dim: int
    _learnt = ("_contexts", "representatives", "_log_weights")

    def __init__(
        self, policy_class: PolicyClass, n_arms: int, horizon: int, delta: float = 0.05, *, seed: Seed = None
    ) -> None:
        super().__init__(seed=seed)
        if not isinstance(policy_class, PolicyClass):
            raise ValueError(f"policy_class must be a class of policies such as Stumps(dim), got {policy_class!r:.80}")
        self.policy_class, self.dim = policy_class, policy_class.dim
        self.n_arms, self.horizon = count("n_arms", n_arms, least=2), count("horizon", horizon)
        self.delta = fraction("delta", delta)
        T, d = self.horizon, policy_class.dimension(self.n_arms)
        self.tau = math.ceil(math.sqrt(T * (2 * d * math.log(math.e * T / min(d, T)) + math.log(2 / self.delta))))
        most = math.log(policy_class.most(self.tau, self.n_arms))
        if T - self.tau < self.n_arms * most:  # then p_min of Exp4P could exceed 1 / K
            raise ValueError(
                f"horizon is {T}, too short: {self.tau} uniform rounds leave {T - self.tau} for Exp4P, which needs "
                f"K ln N = {self.n_arms * most:.0f}"
            )
        self._contexts = np.empty((0, self.dim))
        self.representatives: Representatives | None = None
        self._log_weights = np.empty(0)

    @property
    def weights(self) -> Floats:
        """The representatives' weights, scaled so that they sum to 1; empty in the uniform rounds.

        >>> from armwise.policies import Stumps
        >>> VE(Stumps(dim=1), n_arms=2, horizon=1000).weights
        array([], dtype=float64)
        """
        w = np.exp(self._log_weights)
        return w / w.sum() if w.size else w

    def _schedule(self) -> tuple[float, float]:
        """p_min and the confidence bonus of Exp4P."""
        N, KT = self._log_weights.size, self.n_arms * (self.horizon - self.tau)
        return math.sqrt(math.log(N) / KT), math.sqrt(math.log(2 * N / self.delta) / KT)

    def _probabilities(self, x: Floats) -> Floats:
        if self.representatives is None:
            return np.full(self.n_arms, 1.0 / self.n_arms)
        return experts.voted(
            self._log_weights, self.representatives.votes(x[None])[0], self._schedule()[0], self.n_arms
        )

    def _choose(self, x: Floats) -> Choice:
        p = self._probabilities(x)
        arm = draw(p, self._rng.random())
        return Choice(arm, float(p[arm]), None if self.representatives is None else p.tolist())

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        if choice.note is not None:
            noted_probabilities(choice, n_arms)

    def _learn(self, x: Floats, choice: Choice, reward: float) -> None:
        if self.representatives is None:
            self._gather(x[None])
            return
        assert choice.probability is not None
        p = np.full(self.n_arms, 1.0 / self.n_arms) if choice.note is None else np.array(choice.note)
        votes = self.representatives.votes(x[None])[0]
        experts.voted_learn(self._log_weights, votes, *self._schedule(), p, choice.arm, choice.probability, reward)

    def _gather(self, contexts: Floats) -> None:
        """Contexts of uniform rounds; the last of tau brings the representatives."""
        self._contexts = np.concatenate([self._contexts, contexts])
        if len(self._contexts) == self.tau:
            found = self.policy_class.representatives(self._contexts, self.n_arms, self._rng)
            self.representatives, self._log_weights = found, np.zeros(len(found))
            self._contexts = self._contexts[:0]
