"""PolicyArms: each policy is an arm of a K-armed agent (survey 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from armwise.agents.arms.arm_batches import ArmBatches
from armwise.agents.wrappers.wrapper import Wrapper, expect_agent, teach
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Sees, Theory, count
from armwise.core.capabilities.noting import Noting
from armwise.core.outcomes import check_choice
from armwise.core.rounds import Batches
from armwise.native import kary
from armwise.native.choice import draw
from armwise.policies import distribution, distributions
from armwise.theory import bounds, hypotheses

_ENTRIES = 1 << 18  # of the recommendations that are held at once: 2 MB


class PolicyBatches(Batches["PolicyArms"]):
    """Rounds whose policies are asked at once; compiled, but for the policies, where the agent inside has a kernel."""

    def compiled(self, agent: PolicyArms) -> bool:
        return agent.agent.compiled and isinstance(agent.agent.batches, ArmBatches)

    def block(self, agent: PolicyArms, contexts: Any, rewards: Floats) -> Played:
        now = slice(0, max(1, _ENTRIES // (len(agent.policies) * rewards.shape[1])))
        tables = agent._tables(contexts[now], rewards.shape[1])
        inside = agent.agent
        if not self.compiled(agent) or not isinstance(inside.batches, ArmBatches):
            return self._loop(agent, contexts[now], tables, rewards[now])
        played = Played(*inside.batches.policies(inside, tables, rewards[now], agent._rng))
        inside._n_learnt += len(tables)
        return played

    def _loop(self, agent: PolicyArms, contexts: Any, tables: Floats, rewards: Floats) -> Played:
        T = len(rewards)
        arms, probabilities, got = np.empty(T, np.int64), np.full(T, np.nan), np.empty(T)
        for t in range(T):
            choice = agent._choose_from(tables[t])
            arms[t], got[t] = choice.arm, rewards[t, choice.arm]
            if choice.probability is not None:
                probabilities[t] = choice.probability
            agent._learn(contexts[t], choice, float(got[t]))
            agent._n_learnt += 1
        return Played(arms, probabilities, got)


class PolicyArms(Wrapper, Noting):
    """Let a K-armed agent with N arms choose among N policies, and play what the chosen policy recommends.

    An arm's probability is the total probability of the policies that recommend it. The agent inside learns about one
    policy, the one it drew, with the probability of drawing it: the note carries [policy, its share of the arm's
    probability, arm, the agent's own note]. If another arm was played in the end (``Explore`` may do that) or the
    choice has no note, a policy that recommends the arm learns, drawn at random, and every policy's importance-weighted
    reward stays unbiased.

    A policy is called with the context (``sees`` says which view of a round that is) and returns an arm or a
    distribution over arms; a frozen agent will do too. ``n_arms`` may be left out if a policy says it
    (``policy.n_arms``); otherwise each round has as many arms as its policies name.

    >>> import armwise as aw, numpy as np
    >>> policies = [lambda x: 0, lambda x: 1, lambda x: int(x[0] > 0)]
    >>> agent = PolicyArms(aw.Exp3(n_arms=3, gamma=0.3), policies, n_arms=2)
    >>> agent.probabilities(np.array([1.0])).round(3), agent.probabilities(np.array([-1.0])).round(3)
    (array([0.333, 0.667]), array([0.667, 0.333]))
    """

    theory = Theory(
        section="3",
        regret="O(sqrt(T N ln N))",
        comparator="the best of N policies",
        assumes="rewards in [0, 1], chosen by anyone",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        regret_bound=bounds.policy_arms,
        hypotheses=hypotheses.policy_arms,
        needs_horizon=True,
        adversarial=True,
        call="aw.PolicyArms(aw.Exp3.theoretical(n_arms={N}, horizon={T}), "
        "[aw.Constant(i % {K}) for i in range({N})], n_arms={K})",
        survey_row="Reduce to MAB",
    )
    sees: Sees = "shared"
    batches = PolicyBatches()

    def __init__(
        self,
        agent: Agent,
        policies: Sequence[Any],
        n_arms: int | None = None,
        *,
        sees: Literal["shared", "features", "key"] = "shared",
        seed: Seed = None,
    ) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent, self.policies = agent, list(policies)
        if agent.sees != "nothing":
            raise ValueError(f"agent must see nothing, as Exp3 or UCB1 do; {type(agent).__name__} sees {agent.sees!r}")
        if agent.n_arms != len(self.policies):
            raise ValueError(f"policies must be {agent.n_arms}, one for each arm of agent, got {len(self.policies)}")
        for i, policy in enumerate(self.policies):
            if not callable(policy) and not isinstance(policy, Agent):
                raise ValueError(f"policies[{i}] must be a policy or a function of a context, got {policy!r:.80}")
        if sees not in ("shared", "features", "key"):
            raise ValueError(f"sees must be 'shared', 'features' or 'key': what the policies take; got {sees!r}")
        self.sees, self.reward_range = sees, agent.reward_range
        self.n_costs, self.negative_costs = agent.n_costs, agent.negative_costs
        known = (getattr(policy, "n_arms", None) for policy in self.policies)
        n_arms = n_arms if n_arms is not None else next((n for n in known if n is not None), None)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)

    def recommendations(self, context: Any) -> Floats:
        """Row i is policy i's distribution over the arms.

        >>> import armwise as aw, numpy as np
        >>> PolicyArms(aw.UCB1(n_arms=2), [lambda x: 1, lambda x: [0.5, 0.5]]).recommendations(np.zeros(1))
        array([[0. , 1. ],
               [0.5, 0.5]])
        """
        K = self.n_arms or (len(context) if self.sees == "features" else self._arms_named(context))
        return self._recommended(context, K)

    def _recommended(self, context: Any, K: int) -> Floats:
        return np.stack([self._ask(distribution, i, context, K) for i in range(len(self.policies))])

    def _tables(self, contexts: Any, K: int) -> Floats:
        """The recommendations of many rounds, (T, N, K); each policy is asked once for all of them where it can be."""
        if self.sees != "shared" or len({np.shape(context) for context in contexts}) != 1:
            return np.stack([self._recommended(context, K) for context in contexts])
        block = np.stack(contexts)
        return np.stack([self._ask(distributions, i, block, K) for i in range(len(self.policies))], axis=1)

    def _arms_named(self, context: Any) -> int:
        answers = [self._ask(lambda policy, x: np.asarray(policy(x)), i, context) for i in range(len(self.policies))]
        return max(1 + int(answer) if answer.ndim == 0 else answer.size for answer in answers)

    def _ask(self, read: Callable[..., Any], i: int, context: Any, *more: int) -> Any:
        try:
            return read(self.policies[i], context, *more)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"policies[{i}] cannot recommend an arm for this context: {error}") from error

    def _read_block(self, contexts: Any, T: int) -> Any:
        if not hasattr(contexts, "__len__") or len(contexts) != T:
            raise ValueError(f"contexts must have one row for each of the {T} rows of rewards, got {contexts!r:.80}")
        rows = []
        for t, context in enumerate(contexts):
            try:
                rows.append(self._read(context))
            except ValueError as error:
                raise ValueError(f"contexts, row {t}: {error}") from None
        return rows

    def play(self, contexts: Any, rewards: Any, costs: Any = None) -> Played:
        """As for every agent; where ``n_arms`` is not known, the columns of ``rewards`` say it.

        >>> import armwise as aw, numpy as np
        >>> agent = PolicyArms(aw.UCB1(n_arms=2), [lambda x: 0, lambda x: 1])
        >>> agent.play(np.zeros((4, 1)), np.ones((4, 3))).rewards
        array([1., 1., 1., 1.])
        """
        known = self.n_arms
        if known is None and np.ndim(rewards) == 2:
            self.n_arms = np.shape(rewards)[1] or None
        try:
            return super().play(contexts, rewards, costs)
        finally:
            self.n_arms = known

    def _count_arms(self, context: Any) -> int:
        return self.n_arms or self.recommendations(context).shape[1]

    def _probabilities(self, context: Any) -> Floats:
        return self.agent._probabilities(None) @ self.recommendations(context)

    def _choose(self, context: Any) -> Choice:
        return self._choose_from(self.recommendations(context))

    def _choose_from(self, table: Floats) -> Choice:
        """``table[i]`` is policy i's distribution over the arms of this round."""
        q = self.agent._probabilities(None)  # before the agent's own draw moves its stream on
        drawn = self.agent._choose(None)
        advice = table[drawn.arm]
        arm = int(np.argmax(advice)) if advice.max() == 1.0 else draw(advice, self._rng.random())
        if drawn.probability is None:
            return Choice(arm, None, [drawn.arm, None, arm, drawn.note])
        p = kary.arm_probability(q, table, arm)
        return Choice(arm, p, [drawn.arm, drawn.probability / p, arm, drawn.note])

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        # With p the arm's probability now and J the policy that learns, J's weight 1 / (p share) makes every policy's
        # estimate unbiased: given the arm a, J is i with probability q_i pi_i(a) / P(a) and share q_i / P(a) if its
        # own arm was played, and with probability pi_i(a) / S and share 1 / S, S = sum_i pi_i(a), if it was not.
        policy, share, arm, note = choice.note if choice.note is not None else (0, None, -1, None)
        if arm != choice.arm:
            advice = self.recommendations(context)[:, choice.arm]
            total = float(advice.sum())
            if total == 0.0:
                return  # no policy would have played this arm: it says nothing about any of them
            policy, share, note = draw(advice / total, self._rng.random()), 1.0 / total, None
        p = None if choice.probability is None or share is None else choice.probability * share
        teach(self.agent, None, Choice(policy, p, note, choice.cost), reward)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        note = choice.note if choice.note is not None else [0, None, -1, None]
        N = len(self.policies)
        if not (isinstance(note, (list, tuple)) and len(note) == 4 and type(note[0]) is int and 0 <= note[0] < N):
            raise ValueError(f"choice.note must be [policy, share, arm, note] as choose wrote it, got {note!r:.80}")
        check_choice(self.agent, Choice(note[0], choice.probability, note[3]), N)
