"""Common base of agents over several agents: bases with one view, and notes that name the base that chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from armwise.agents.wrappers.wrapper import Wrapper, expect_agent, teach
from armwise.core.agent import Agent, Choice, Seed
from armwise.core.capabilities.counting import CountsChoices, choosing_changes
from armwise.core.capabilities.noting import Noting
from armwise.core.inputs import dense, is_sparse
from armwise.core.outcomes import check_choice
from armwise.core.seeds import purpose_seed


class Ensemble(Wrapper, CountsChoices, Noting):
    """An agent over ``agents``, its bases, of which one decides each round and learns what it brought.

    The note is [base, what the master must remember, the base's own note]; without one the base that is most likely to
    decide now learns.
    """

    agents: list[Agent]

    def __init__(self, agents: Sequence[Agent], *, seed: Seed = None) -> None:
        self.agents = [expect_agent(f"agents[{i}]", agent) for i, agent in enumerate(agents)]
        if len(self.agents) < 2 or len({id(agent) for agent in self.agents}) < len(self.agents):
            raise ValueError(f"agents must be at least two different objects, got {len(self.agents)}")
        first = self.agents[0]
        for i, agent in enumerate(self.agents):
            for name in ("sees", "dim", "n_arms", "n_experts", "plain_input", "n_costs"):
                mine, other = getattr(agent, name), getattr(first, name)
                if mine != other:
                    raise ValueError(f"agents[{i}].{name} is {mine!r}, expected {other!r} as in agents[0]")
            if not agent.reward_range[0] <= 0.0 < 1.0 <= agent.reward_range[1]:
                raise ValueError(f"agents[{i}] must take rewards in [0, 1], and takes {agent.reward_range}")
        super().__init__(seed=seed)
        self._unseeded = [i for i, agent in enumerate(self.agents) if agent.seed is None]
        self._seed_bases(seed)
        self.sees, self.dim, self.n_arms, self.n_experts = first.sees, first.dim, first.n_arms, first.n_experts
        self.plain_input, self.n_costs = first.plain_input, first.n_costs
        self.negative_costs = all(agent.negative_costs for agent in self.agents)
        self.choosing_changes = any(map(choosing_changes, self.agents))

    def _seed_bases(self, seed: Seed) -> None:
        if seed is None:
            return
        for i in self._unseeded:
            self.agents[i]._reseed(int(self._rng.integers(2**63)) if not isinstance(seed, int) else
                                   purpose_seed(seed, f"base {i}"))  # fmt: skip

    def _reseed(self, seed: Seed) -> None:
        super()._reseed(seed)
        self._seed_bases(seed)

    def clone(self, seed: Seed = None) -> Self:
        """An agent over clones of the same bases, all of which have learnt nothing.

        >>> import armwise as aw
        >>> agent = aw.D3RB([aw.UCB1(2), aw.Exp3(2)])
        >>> agent.clone(seed=1).agents[0] is agent.agents[0]
        False
        """
        return type(self)(**(self.params() | {"agents": [agent.clone() for agent in self.agents]}), seed=seed)

    def _leader(self) -> int:
        raise NotImplementedError

    def _read(self, context: Any) -> Any:
        for agent in self.agents[1:]:
            agent._read(context)
        read = self.agents[0]._read(context)
        return dense(read) if is_sparse(read) and not all(agent.keeps_sparse for agent in self.agents) else read

    def _read_block(self, contexts: Any, T: int) -> Any:
        for agent in self.agents[1:]:
            agent._read_block(contexts, T)
        return self.agents[0]._read_block(contexts, T)

    def _count_arms(self, context: Any) -> int:
        return self.agents[0]._count_arms(context)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        base, _, note = self._note(choice)
        check_choice(self.agents[base], choice._replace(note=note), n_arms)

    def _note(self, choice: Choice) -> tuple[int, Any, Any]:
        note = choice.note
        if note is None:
            return self._leader(), None, None
        if not (isinstance(note, (list, tuple)) and len(note) == 3 and type(note[0]) is int
                and 0 <= note[0] < len(self.agents)):  # fmt: skip
            raise ValueError(f"choice.note must be [base, remembered, note] as choose wrote it, got {note!r:.80}")
        return note[0], note[1], note[2]

    def _teach(self, base: int, context: Any, choice: Choice, reward: float) -> None:
        teach(self.agents[base], context, choice, reward)
