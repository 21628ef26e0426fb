"""Common base of HardStop and Pacing: an account of every choice, whose entry travels in the choice's note."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from armwise.agents.wrappers.transparent import TransparentWrapper
from armwise.agents.wrappers.wrapper import expect_agent
from armwise.core.agent import Agent, Choice, Floats, Seed
from armwise.core.capabilities.counting import choosing_changes
from armwise.core.outcomes import check_choice


class Accounting(TransparentWrapper):
    """A wrapper that enters each choice into an account; the note is [the entry, the note of the agent inside]."""

    def __init__(self, agent: Agent, *, seed: Seed = None) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent = agent
        self._wrap(agent)
        self.choosing_changes, self.negative_costs = True, False

    @abstractmethod
    def _entry(self, context: Any, arm: int) -> Any:
        """The entry of a choice that came without a note."""

    @abstractmethod
    def _is_entry(self, value: Any) -> bool:
        """Return whether ``choose`` could have written this entry."""

    @abstractmethod
    def _enter(self, entry: Any) -> None:
        """Enter a choice into the account."""

    def record_choice(self, context: Any, choice: Choice) -> None:
        entry, note = (self._entry(context, choice.arm), None) if choice.note is None else choice.note
        self._enter(entry)
        if choosing_changes(self.agent):
            self.agent.record_choice(context, choice._replace(note=note))

    def _estimates(self, context: Any) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(context)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        note = choice.note
        if note is None:
            return
        if not (isinstance(note, (list, tuple)) and len(note) == 2 and self._is_entry(note[0])):
            raise ValueError(f"choice.note must be [entry, note] as choose wrote it, got {note!r:.80}")
        check_choice(self.agent, choice._replace(note=note[1]), n_arms)
