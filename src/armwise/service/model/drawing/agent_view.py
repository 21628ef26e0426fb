"""The agent's view of a request, for a new one and for one in the journal."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from armwise.core.agent import Agent, Choice, make_choice
from armwise.core.capabilities.one_row import learns_one_row
from armwise.features.encoding.arms import read_arm
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import ArmTokens, InvalidInput, RequestTokens, part, read_json
from armwise.service.journal.events import Decision
from armwise.service.model.drawing.encoded import AtHand, EncodedRequest, offered, stack_of
from armwise.service.model.inside import counts_choices


class AgentView:
    """Turns JSON into what an agent declares that it ``sees``; ``arms`` are the names of fixed ones."""

    def __init__(self, agent: Agent, encoder: HashedRows, arms: Sequence[str] = ()) -> None:
        if agent.sees not in ("features", "nothing", "shared", "key", "advice"):
            raise InvalidInput(f"agent: the service cannot give what {type(agent).__name__} sees: {agent.sees}")
        if agent.sees in ("features", "shared") and agent.dim not in (None, encoder.dim):
            raise InvalidInput(f"agent: dim is {agent.dim}, but the features have {encoder.dim}")
        if len(set(arms)) != len(arms):
            raise InvalidInput(f"arms: {max(arms, key=list(arms).count)!r} is named twice")
        if arms and agent.n_arms != len(arms):
            raise InvalidInput(f"arms: {len(arms)} are named, but the agent has {agent.n_arms}")
        self._agent, self._encoder, self._arms = agent, encoder, arms
        self.any_arms = agent.sees == "features" and agent.n_arms is None  # whichever are on offer, each by its row
        self._by_itself = not (arms or agent.n_costs or counts_choices(agent)) and (
            agent.sees == "features" and agent.plain_input
        )  # each arm's row stands for itself: where the agent reads one alone, the others need not be made

    def of_copy(self, agent: Agent) -> AgentView:
        """The same for a copy of the agent."""
        twin = copy.copy(self)
        twin._agent = agent
        return twin

    def see(self, context: bytes, stack: RequestTokens, ids: Sequence[str], scaling: Scaling) -> EncodedRequest:
        """The agent's view of a request, whose tokens are ``stack``."""
        if self._agent.sees == "features" and not self._arms:
            return EncodedRequest(self._encoder.rows(stack, scaling), None, scaling, stack)
        arm_indices = self._arm_indices(ids)
        return EncodedRequest(self._view(context, stack, arm_indices, scaling), arm_indices, scaling, stack)

    def _arm_indices(self, ids: Sequence[str]) -> list[int]:
        """Which of the agent's arms are offered."""
        if self._arms:
            try:
                return [self._arms.index(id) for id in ids]
            except ValueError:
                strange = next(id for id in ids if id not in self._arms)
                raise InvalidInput(f"this application has fixed arms, and {strange!r} is not one of them") from None
        if len(ids) != (self._agent.n_arms or len(ids)):
            known = self._agent.n_arms or 0
            fewer = "" if len(ids) > known else (
                ": lists and excluded arms leave fewer, which needs an agent without n_arms, or arms with names "
                "(arms = [...] of a service's application)"
            )  # fmt: skip
            raise InvalidInput(f"this application has {known} arms, got {len(ids)}{fewer}")
        return list(range(len(ids)))

    def _view(self, context: bytes, stack: RequestTokens, arm_indices: list[int], scaling: Scaling) -> Any:
        agent, encoder = self._agent, self._encoder
        if agent.sees == "features":  # with weights of each arm's own, so that its row has a place of its own
            if sorted(arm_indices) != list(range(len(self._arms))):
                named = [self._arms[k] for k in arm_indices]
                raise InvalidInput(f"{type(agent).__name__} needs all its arms in every request, got {named}")
            return encoder.rows(stack, scaling)[np.argsort(arm_indices)]
        if agent.sees == "nothing":
            return None
        if agent.sees == "shared":
            return encoder.shared(stack, scaling)
        decoded = read_json(context)
        if agent.sees == "key":
            return msgspec.json.encode(decoded, order="sorted").decode()
        advice = decoded.get("advice") if isinstance(decoded, dict) else None
        if advice is None:
            raise InvalidInput(
                "context must hold the experts' advice: one distribution over the arms for each, as 'advice'"
            )
        try:
            return np.array(advice, np.float64)
        except (ValueError, TypeError):
            raise InvalidInput("context.advice must be a table of numbers") from None

    @property
    def reads_one_row(self) -> bool:
        """Whether all that the agent learns of a decision is in the row of the arm that was drawn."""
        return self._by_itself and learns_one_row(self._agent)

    def recall(self, decision: Decision, at_hand: AtHand = None) -> EncodedRequest:
        """The agent's view when a journaled decision was made, or the part that it learns from: where it
        ``reads_one_row``, that of the arm that was drawn. ``at_hand`` spares reading it again.
        """
        if isinstance(at_hand, EncodedRequest):
            return at_hand
        scaling = Scaling(decision.scaling)
        if self.reads_one_row:
            context = part(bytes(decision.context), "c") if at_hand is None else at_hand.context
            alone = RequestTokens(context, ArmTokens(1, read_arm(bytes(decision.arms[decision.arm])).words))
            return EncodedRequest(self._encoder.rows(alone, scaling), None, scaling, at_hand, True)
        if at_hand is not None and self._agent.sees == "features" and not self._arms:
            return EncodedRequest(self._encoder.rows(at_hand, scaling), None, scaling, at_hand)
        return self.see(bytes(decision.context), stack_of(decision), offered(decision).ids, scaling)

    def recall_choice(self, decision: Decision, at_hand: AtHand, name: str) -> tuple[Any, Choice]:
        """The agent's view when a journaled decision was made, and its choice; ``name`` is the version's."""
        seen = self.recall(decision, at_hand)
        note = decision.note if decision.drawn_by in ("", name) else None  # another version's says nothing here
        return seen.view, make_choice((seen.place(decision.arm), decision.p[decision.arm], note, None))

    def kept(self, seen: EncodedRequest, arm: int) -> EncodedRequest | None:
        """The part of the view to keep in memory until the decision is learnt: the chosen row, or None."""
        if not self.reads_one_row:
            return None
        return EncodedRequest(seen.view[arm : arm + 1].copy(), None, seen.scaling, seen.stack, True)
