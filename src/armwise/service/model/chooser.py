"""An agent that reads JSON: what it sees of a request, the arm that is drawn, the rewards and settings it can have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.agents.budget.accounts import BudgetSpent
from armwise.core import saving
from armwise.core.agent import Agent, Floats
from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.arms import read_arms as read_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler
from armwise.features.encoding.tokens import InvalidInput, Part, Stack, part
from armwise.service.journal.events import ARRIVAL, CLOSE, EARLIEST, LARGEST, PROVISIONAL, SUM, Settings
from armwise.service.model.draws import Draws
from armwise.service.model.optimist import Optimist
from armwise.service.model.seen import Drawn, Seen
from armwise.service.model.sight import Sight
from armwise.service.model.underway import Underway


class Chooser(saving.Saved):
    """The half of a ``Model`` that decides: nothing here changes what was learnt.

    >>> import armwise
    >>> Chooser(armwise.LinUCB(dim=8), HashedRows(8)).choose(b"{}", read_arms([b'"a"', b'"b"']), u=0.7).p
    array([0.5, 0.5])
    """

    def __init__(
        self, agent: Agent, encoder: HashedRows, arms: Sequence[str] = (), rewards: Sequence[float] = ()
    ) -> None:
        self.agent, self.encoder, self.arms, self.rewards = agent, encoder, list(arms), list(rewards)
        if self.rewards and not (len(self.rewards) == 2 and -LARGEST <= self.rewards[0] < self.rewards[1] <= LARGEST):
            raise InvalidInput(f"rewards must be the lowest and the highest reward, got {self.rewards}")
        self.sight = Sight(agent, encoder, self.arms)
        self.draws = Draws(agent)
        self.optimist = Optimist.of(agent, encoder)  # which has no fixed arms
        self.scaler = Scaler()
        self.settings = Settings()
        self.version = 0  # the last event of this application that was folded in
        self.underway: Underway | None = None  # where several decide at once: what copies of this model share

    def choose(self, context: bytes, arms: ArmColumns, u: float, tokens: Part | None = None) -> Drawn:
        """Draw an arm with ``u`` in [0, 1); the answer has the very distribution it was drawn from.

        ``tokens`` are the context's, where they are at hand.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> model = build_model(Creation(agent={"class": "Exp3", "n_arms": 2}, arms=["a", "b"]))
        >>> model.choose(b"{}", read_arms([b'"b"']), u=0.9).p
        array([1.])
        """
        if self.optimist is not None:
            return self.optimist.choose(self.scaler, tokens or part(context, "c"), arms.tail, u)
        seen = self.see(context, arms, tokens)
        try:
            p, arm, note, held = self.draws.draw(seen.view, seen.positions, u, self.underway, self.version)
        except BudgetSpent:  # nothing is wrong with the request
            raise
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        chosen = p.item(arm)
        if chosen != chosen:  # NaN could be journaled, but never be read again
            raise ArithmeticError(f"{self.agent} gives the arms the probabilities {p}")
        return Drawn(arm, p, note, seen, held)

    def see(self, context: bytes, arms: ArmColumns, tokens: Part | None = None) -> Seen:
        """What the agent sees of a request now.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation(features={"dim": 8})).see(b"{}", read_arms([b'"a"', b'"b"'])).view.shape
        (2, 8)
        """
        stack = Stack(tokens or part(context, "c"), arms.tail)
        return self.sight.see(context, stack, arms.ids, self.scaler.scaling(stack))

    def estimate(self, context: bytes, arms: ArmColumns) -> tuple[Floats, Floats | None]:
        """What the agent thinks of each arm: estimates, and widths where it has them.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).estimate(b"{}", read_arms([b'"a"', b'"b"']))[0]
        array([0., 0.])
        """
        seen = self.see(context, arms)
        means, widths = self.agent.estimate(seen.view)
        if seen.positions is None:
            return means, widths
        return means[seen.positions], None if widths is None else widths[seen.positions]

    @property
    def hashes_freely(self) -> bool:
        """Whether it decides over hashed pairs of context and arm, quickly enough for more of them: an optimist.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).hashes_freely, build_model(Creation(agent={"class": "SquareCB"})).hashes_freely
        (True, False)
        """
        return self.optimist is not None

    @property
    def learns(self) -> str:
        """When outcomes are learnt, one of ``events.LEARN``.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).learns, build_model(Creation(agent={"class": "UCB1", "n_arms": 2})).learns
        ('provisional', 'close')
        """
        if self.agent.n_costs:  # a cost is known when its reward comes, and a budget cannot wait for the window
            return self.settings.learn or ARRIVAL
        return self.settings.learn or (PROVISIONAL if self.agent.revises else CLOSE)

    def check_settings(self, settings: Settings) -> None:
        """InvalidInput if these settings are not for this agent.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation()).check_settings(Settings(learn="close"))
        """
        if settings.learn == PROVISIONAL and not self.agent.revises:
            raise InvalidInput(f"learn: {type(self.agent).__name__} cannot revise what it learnt: use 'close'")

    def check_cost(self, cost: Any) -> float | list[float] | None:
        """A cost that the agent can count, as the journal keeps it; InvalidInput if it counts costs and none came.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).check_cost(0.002)
        0.002
        """
        if cost is None and not self.agent.n_costs:
            return None
        try:
            values = self.agent._read_cost(cost)
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return values[0] if len(values) == 1 else list(values)

    def check_reward(self, value: float) -> float:
        """A reward that the agent can learn, or InvalidInput.

        >>> from armwise.service.journal.events import Creation
        >>> from armwise.service.model.build import build_model
        >>> build_model(Creation(agent={"class": "LinUCB"})).check_reward(-3.0)
        -3.0
        """
        if abs(value) > LARGEST:
            raise InvalidInput(f"reward must be a number of at most {LARGEST:g} in magnitude, got {value}")
        if self.rewards and not self.rewards[0] <= value <= self.rewards[1]:
            raise InvalidInput(f"reward must lie in {self.rewards}, got {value}")
        try:
            self.agent._read_reward(self.taken(value))
        except ValueError as error:
            raise InvalidInput(str(error)) from None
        return float(value)

    def taken(self, reward: float, rule: str = EARLIEST) -> float:
        """A reward as the agent takes it: mapped onto its range, where it has one and ours is configured.

        A sum of several may lie beyond the ends of the range, and counts as the end then.

        >>> import armwise
        >>> Chooser(armwise.UCB1(n_arms=2), HashedRows(8), rewards=[0, 10]).taken(5.0)
        0.5
        """
        low, high = self.agent.reward_range
        if not self.rewards:
            return min(max(reward, low), high) if rule == SUM else reward
        if low == -np.inf or high == np.inf:
            return reward
        share = (reward - self.rewards[0]) / (self.rewards[1] - self.rewards[0])
        return low + (high - low) * min(max(share, 0.0), 1.0)
