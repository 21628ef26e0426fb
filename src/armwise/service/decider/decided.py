"""The answers of ``Decider`` and ``Client``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arm


class Decided(msgspec.Struct, frozen=True, gc=False):
    """A decision: the arm to show, the probability it was drawn with, and the id that its reward is given by.

    >>> Decided("e1", "red", 0.9, {"red": 0.9, "green": 0.1}).arm
    'red'
    """

    id: str
    arm: str
    probability: float
    chances: dict[str, float] | Sequence[float]  # by name, or in the order of the arms
    context: bytes = b"{}"  # as JSON
    offered: ArmColumns | Sequence[bytes] = ()  # the arms, parsed or as JSON
    fallback: bool = False  # True: the service could not be reached; the arm is the caller's, its probability nan

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of each arm.

        >>> Decided("e1", "red", 0.9, {"red": 0.9, "green": 0.1}).probabilities
        {'red': 0.9, 'green': 0.1}
        """
        if isinstance(self.chances, dict):
            return self.chances
        ids = self.offered.ids if isinstance(self.offered, ArmColumns) else [read_arm(arm).id for arm in self.arms]
        return dict(zip(ids, self.chances))

    @property
    def arms(self) -> list[bytes]:
        """The arms on offer, each as JSON.

        >>> Decided("e1", "red", 1.0, {"red": 1.0}).arms
        []
        """
        return [bytes(raw) for raw in (self.offered.raws if isinstance(self.offered, ArmColumns) else self.offered)]

    def __repr__(self) -> str:
        marked = ", fallback=True" if self.fallback else ""
        return f"Decided(id={self.id!r}, arm={self.arm!r}, probability={self.probability!r}{marked})"


class Ranked(msgspec.Struct, frozen=True, gc=False):
    """A list: the decision of each slot from the top, and the one id that its rewards are given by."""

    id: str
    slots: tuple[Decided, ...]

    @property
    def arms(self) -> list[str]:
        """The arms to show, from the top."""
        return [slot.arm for slot in self.slots]

    @property
    def probabilities(self) -> list[float]:
        """The probability of each slot's arm given the arms above it."""
        return [slot.probability for slot in self.slots]

    @property
    def probability(self) -> float:
        """The probability of the whole list."""
        return math.prod(self.probabilities)

    def __getitem__(self, slot: int) -> Decided:
        """The decision of a slot, which ``explain`` takes."""
        return self.slots[slot]

    def __len__(self) -> int:
        return len(self.slots)

    def __repr__(self) -> str:
        return f"Ranked(id={self.id!r}, arms={self.arms!r}, probability={self.probability:.4g})"


# Rewards of a list: by arm, by slot, or one per slot, None where nothing is said.
ListRewards = Mapping[str, float] | Mapping[int, float] | Sequence[float | None]


class UnknownDecision(KeyError):
    """No decision has this id.

    >>> str(UnknownDecision("e9"))
    "no decision has the id 'e9'"
    """

    def __str__(self) -> str:
        return f"no decision has the id {self.args[0]!r}"


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The status of a reward: ``"taken"``, or ``"late"`` (its window was over) or ``"repeated"``, which are kept in the
    log and not learnt; or ``"fallback"``: the decision was not the model's, and nothing was sent.

    >>> Receipt("e1", "late").status
    'late'
    """

    id: str
    status: Literal["taken", "late", "repeated", "fallback"]


@dataclass(frozen=True)
class Explanation:
    """Why an arm was likely: per arm its estimate, width and probability, and what each name of the context adds.

    >>> Explanation({"red": {"estimate": 0.5}}, {"red": {}}).arms["red"]["estimate"]
    0.5
    """

    arms: dict[str, dict[str, float]]
    contributions: dict[str, dict[str, float]]

    def __str__(self) -> str:
        lines = []
        for arm, numbers in self.arms.items():
            lines.append(f"{arm}: " + ", ".join(f"{name} {value:.4g}" for name, value in numbers.items()))
            ranked = sorted(self.contributions[arm].items(), key=lambda pair: -abs(pair[1]))
            lines += [f"  {value:+.4g}  {name}" for name, value in ranked]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries, for JSON.

        >>> Explanation({}, {}).to_dict()
        {'arms': {}, 'contributions': {}}
        """
        return {"arms": self.arms, "contributions": self.contributions}
