"""Requests as agents see them, and the arms drawn from them."""

from __future__ import annotations

import collections
from typing import Any

import msgspec
import numpy as np

from armwise.core.agent import Floats
from armwise.features.encoding.arms import ArmColumns, read_arm, read_arms
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import ArmTokens, RequestTokens, part
from armwise.service.journal.events import Decision
from armwise.service.model.drawing.in_flight import Reservation

MAX_KEPT_BYTES = 8192  # of a row that is kept for a reward, and of the tokens of its arms


class EncodedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request as an agent saw it: its view, which of its arms were offered (None: these, in order), the scaling."""

    view: Any
    arm_indices: list[int] | None
    scaling: Scaling
    stack: RequestTokens | None
    chosen_row_only: bool = False  # the view has the row of the arm that was drawn, and no other

    def place(self, arm: int) -> int:
        """The row in the view of an arm, given its index among the offered arms."""
        return 0 if self.chosen_row_only else arm if self.arm_indices is None else self.arm_indices[arm]

    def kept(self, arm: int) -> EncodedRequest | None:
        """What to keep until the reward comes: the row of the arm that was drawn, if it is short, and the tokens; where
        the arms have many, those of that arm.
        """
        if not self.chosen_row_only or self.view.nbytes > MAX_KEPT_BYTES:
            return None
        if self.stack is None or len(self.stack.tail.words) <= MAX_KEPT_BYTES:
            return self
        return EncodedRequest(self.view, None, self.scaling, self.stack.only(arm), True)


AtHand = EncodedRequest | RequestTokens | None  # of a journaled decision: what was seen, its tokens, or neither
# A reward of a decision, for compiled calls: the tokens of its context, of its arms and how many these are, the row of
# the arm that was drawn, the reward as the agent takes it, the arm, and the scaling that the decision was made with.
Lesson = tuple[bytes, bytes, int, Floats, float, int, bytes]


def lesson_of(seen: EncodedRequest, decision: Decision, reward: float) -> Lesson:
    """A reward of a decision for compiled calls, from what was seen of it."""
    stack, arm, row = seen.stack or chosen_tokens(decision), decision.arm, seen.view
    if not seen.chosen_row_only:
        place = seen.place(arm)
        row = row[place : place + 1]
    arms = stack.tail
    return stack.context.counted, arms.words, arms.n, row, reward, arm if arms.n > 1 else 0, seen.scaling.packed


def stack_of(decision: Decision) -> RequestTokens:
    """The tokens of a journaled decision."""
    global _last
    known, stack = _last
    if known is not decision or stack is None:
        stack = RequestTokens(part(bytes(decision.context), "c"), offered(decision).tail)
        _last = decision, stack
    return stack


def chosen_tokens(decision: Decision) -> RequestTokens:
    """The tokens of a journaled decision's context and of the arm that was drawn; no other arm is read."""
    arm = read_arm(bytes(decision.arms[decision.arm]))
    return RequestTokens(part(bytes(decision.context), "c"), ArmTokens(1, arm.words))


_last: tuple[Decision | None, RequestTokens | None] = None, None  # a fold asks more than once for the same


def offered(decision: Decision) -> ArmColumns:
    """The arms on offer in a journaled decision."""
    arms, n = decision.arms, len(decision.p)
    if len(arms) != n or n < MANY:
        return read_arms([bytes(arm) for arm in arms[:n]])
    for known, columns in list(_catalogues):
        if known is arms:
            return columns
    columns = read_arms([bytes(arm) for arm in arms])
    _catalogues.append((arms, columns))  # a bounded deque: the oldest goes
    return columns


MANY = 64  # arms that are looked for among those of the last decisions: who reads a catalogue has one list for all
_catalogues: collections.deque[tuple[list[msgspec.Raw], ArmColumns]] = collections.deque(maxlen=16)


class Drawn(msgspec.Struct, frozen=True, gc=False):
    """An arm drawn from ``p``, with the agent's note and what it saw; ``held`` counts it while it is under way."""

    arm: int
    p: Floats
    note: Any
    seen: EncodedRequest
    held: Reservation | None = None


def restricted(p: Floats, arm_indices: list[int] | None) -> Floats:
    """The distribution over the offered arms alone, in their order."""
    if arm_indices is None:
        return p
    offered = p[arm_indices]
    total = offered.sum()
    if len(arm_indices) == len(p):
        return offered
    return offered / total if total > 0.0 else np.full(len(arm_indices), 1.0 / len(arm_indices))
