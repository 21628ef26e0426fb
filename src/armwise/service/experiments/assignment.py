"""Answers to assignments and outcomes."""

from __future__ import annotations

from typing import Literal

import msgspec

Reason = Literal["assigned", "not eligible", "outside the ramp", "holdout", "forced", "stopped"]


class Assignment(str):
    """The arm's name, with why the unit has it; a text, so that it can be used as one."""

    unit: str
    reason: Reason
    probability: float  # with which it was drawn; 1 where nothing was

    def __new__(cls, arm: str, unit: str, reason: Reason, probability: float = 1.0) -> Assignment:
        made = super().__new__(cls, arm)
        made.unit, made.reason, made.probability = unit, reason, probability
        return made

    @property
    def counted(self) -> bool:
        """Whether the unit is part of the numbers."""
        return self.reason == "assigned"

    def to_dict(self) -> dict[str, str | float | bool]:
        """Plain values, for JSON."""
        return {"unit": self.unit, "arm": str(self), "reason": self.reason, "probability": self.probability,
                "counted": self.counted}  # fmt: skip


class OutcomeReceipt(msgspec.Struct, frozen=True):
    """The status of an outcome: "taken", "repeated", "late", or "not in the experiment", which changes nothing."""

    unit: str
    metric: str
    status: Literal["taken", "repeated", "late", "not in the experiment"]
