"""PerContext: one K-armed agent for each distinct context (survey 3)."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any, Self

import numpy as np

from armwise.agents.wrappers.wrapper import Wrapper, expect_agent, teach
from armwise.core import rounds
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory
from armwise.core.capabilities.merging import Merging, can_merge, why_not_merged
from armwise.core.capabilities.noting import Noting
from armwise.core.capabilities.per_arm import PerArm, has_arms
from armwise.core.outcomes import check_choice
from armwise.core.rounds import Batches
from armwise.core.saving import CannotSave
from armwise.theory import bounds, hypotheses


class PerContextBatches(Batches["PerContext"]):
    """Copies share nothing, so each plays its own rounds in one block."""

    def compiled(self, agent: PerContext) -> bool:
        return agent.agent.compiled

    def block(self, agent: PerContext, contexts: Sequence[Hashable], rewards: Floats) -> Played:
        places: dict[Hashable, list[int]] = {}
        for t, key in enumerate(contexts):
            places.setdefault(key, []).append(t)
        T = len(rewards)
        arms, probabilities, got = np.empty(T, np.int64), np.empty(T), np.empty(T)
        for key, at in places.items():
            arms[at], probabilities[at], got[at] = rounds.play(agent._of(key), None, rewards[at])[:3]
        return Played(arms, probabilities, got)


class PerContext(Wrapper, Merging, PerArm, Noting):
    """A fresh copy of ``agent`` for each context, made when the context is first chosen for or learnt from.

    A context is any hashable value; nothing is shared between contexts. Copies are seeded from this agent's own
    generator in the order in which they are made. A file can hold contexts that are strings, numbers, booleans,
    None, and tuples of these. The bound is for Exp3, each copy tuned to the rounds of its own context.

    >>> import armwise as aw
    >>> agent = PerContext(aw.UCB1(n_arms=2), seed=1)
    >>> for _ in range(50):
    ...     for who in ("anna", "ben"):
    ...         choice = agent.choose(who)
    ...         agent.learn(who, choice, reward=float(choice.arm == (who == "anna")))
    >>> agent.choose("anna").arm, agent.choose("ben").arm, agent.probabilities("carla")
    (1, 0, array([0.5, 0.5]))
    """

    theory = Theory(
        section="3",
        regret="O(sqrt(T C K ln K))",
        comparator="the best map from contexts to arms",
        assumes="C distinct contexts; rewards in [0, 1], chosen by anyone",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        regret_bound=bounds.per_context,
        hypotheses=hypotheses.per_context,
        needs_horizon=True,
        adversarial=True,
        call="aw.PerContext(aw.Exp3.theoretical(n_arms={K}, horizon={T}))",
        survey_row="Reduce to MAB",
    )
    sees = "key"
    n_arms: int
    batches = PerContextBatches()

    def __init__(self, agent: Agent, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)  # copies are seeded from its own stream
        self.agent = expect_agent("agent", agent)
        if agent.sees != "nothing" or agent.n_arms is None:
            raise ValueError(f"agent must see nothing, as Exp3 or UCB1 do; {type(agent).__name__} sees {agent.sees!r}")
        self.n_arms, self.reward_range = agent.n_arms, agent.reward_range
        self.n_costs, self.negative_costs = (
            agent.n_costs,
            agent.negative_costs,
        )  # of each copy: a budget is one per context
        self.merges, self.per_arm = can_merge(agent), has_arms(agent)
        self._agents: dict[Hashable, Agent] = {}

    @property
    def contexts(self) -> list[Hashable]:
        """The contexts that have a copy, oldest first.

        >>> import armwise as aw
        >>> agent = PerContext(aw.UCB1(n_arms=2))
        >>> choice = agent.choose(("news", 3))
        >>> agent.contexts
        [('news', 3)]
        """
        return list(self._agents)

    def _copy(self, rng: np.random.Generator) -> Agent:
        return self.agent.clone(seed=int(rng.integers(2**63)))

    def _of(self, key: Hashable) -> Agent:
        if key not in self._agents:
            self._agents[key] = self._copy(self._rng)
        return self._agents[key]

    def _probabilities(self, context: Hashable) -> Floats:
        # For a new context: the copy that ``choose`` would make, made from a copy of the stream.
        agent = self._agents[context] if context in self._agents else self._copy(copy.deepcopy(self._rng))
        return agent._probabilities(None)

    def _choose(self, context: Hashable) -> Choice:
        return self._of(context)._choose(None)

    def _learn(self, context: Hashable, choice: Choice, reward: float) -> None:
        teach(self._of(context), None, choice, reward)

    def _estimates(self, context: Hashable) -> tuple[Floats, Floats | None]:
        return (self._agents[context] if context in self._agents else self.agent.clone())._estimates(None)

    def _merge(self, other: Self) -> None:
        for key, theirs in other._agents.items():
            mine: Any = self._of(key)
            mine.merge(theirs)

    def _why_not_merged(self) -> str:
        return why_not_merged(self.agent)

    def _add_arm(self) -> None:
        agents: list[Any] = [self.agent, *self._agents.values()]
        for agent in agents:
            agent.add_arm()

    def _remove_arm(self, arm: int) -> None:
        agents: list[Any] = [self.agent, *self._agents.values()]
        for agent in agents:
            agent.remove_arm(arm)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        check_choice(self.agent, choice, n_arms)

    def _state(self) -> dict[str, Any]:
        for key in self._agents:
            _check_key(key)
        return super()._state() | {"_agents": self._agents}


def _check_key(key: Any) -> None:
    if isinstance(key, tuple):
        for part in key:
            _check_key(part)
    elif key is not None and not isinstance(key, (bool, int, float, str, np.generic)):
        raise CannotSave(
            f"context {key!r:.80} cannot be saved: it is a {type(key).__name__}; expected a string, a number, a "
            "boolean, None, or a tuple of these"
        )
