"""New arms beside arms that are known: at most a share of a decision's probability, until they were tried.

An arm is *new* until it was drawn ``TRIED`` times, where another arm on offer was drawn ``KNOWN`` times; arms that
began together are not held back by one another. The counts are a fold of the decisions in the journal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core import saving
from armwise.core.agent import Floats
from armwise.features.encoding.tokens import ArmTokens
from armwise.native.tokens import found_by_arm

TRIED, KNOWN = 100, 1000
MAX_COUNTED = 10_000  # arms; the one that was drawn longest ago goes


class DrawCounts(saving.Saved):
    """The draws of each arm, by the hash of its id, the one drawn longest ago first."""

    _learnt = ("drawn", "known")

    def __init__(self) -> None:
        self.drawn: dict[int, int] = {}
        self.known = 0  # arms that were drawn ``KNOWN`` times

    def add(self, id: int, draws: int) -> None:
        """Count draws of an arm, by the hash of its id."""
        before = self.drawn.pop(id, 0)
        self.drawn[id] = before + draws
        self.known += before < KNOWN <= before + draws
        if len(self.drawn) > MAX_COUNTED:
            self.known -= self.drawn.pop(next(iter(self.drawn))) >= KNOWN

    def new(self, arms: ArmTokens) -> list[bool] | None:
        """Which of these arms are new; None where none is, or no other is known."""
        if not self.known:
            return None
        draws = found_by_arm(self.drawn, arms.words, arms.n)
        return [n < TRIED for n in draws] if max(draws) >= KNOWN and min(draws) < TRIED else None

    def exported(self, share: float) -> dict[str, Any] | None:
        """What an exported policy has of new arms: the share, and hashes of arms that are tried, or even known; None
        where nothing holds a new arm back.
        """
        if share >= 1.0 or not self.known:
            return None
        tried, known = (
            [f"{id:016x}" for id, draws in self.drawn.items() if low <= draws < high]
            for low, high in ((TRIED, KNOWN), (KNOWN, float("inf")))
        )
        return {"share": share, "tried": sorted(tried), "known": sorted(known)}

    def merge(self, other: DrawCounts) -> None:
        """Add what another has counted."""
        for id, draws in other.drawn.items():
            self.add(id, draws)

    def copy(self) -> DrawCounts:
        """An equal one that shares nothing."""
        twin = DrawCounts()
        twin.drawn, twin.known = dict(self.drawn), self.known
        return twin

    def _state(self) -> dict[str, Any]:
        return {"drawn": {f"{id:016x}": draws for id, draws in self.drawn.items()}, "known": self.known}

    def _restore(self, state: dict[str, Any]) -> None:
        self.drawn = {int(id, 16): draws for id, draws in state["drawn"].items()}
        self.known = state["known"]


def beyond_ramp(p: list[float], new: list[bool], share: float) -> bool:
    """Whether the agent gives the new arms that it wants more than the share, and more than the arm it wants least."""
    least = min(p)
    wanted = [chance for chance, is_new in zip(p, new) if is_new and chance > least]
    return sum(wanted) > max(share, least * len(wanted))


def ramped(p: Floats, known: Floats, new: NDArray[np.bool_], share: float) -> Floats:
    """The distribution with at most ``share`` for the new arms that the agent wants, and no arm below the least of
    ``p``: what an arm gets that it does not want.

    ``p`` is the agent's own; ``known`` is its distribution over the other arms, if they were offered alone.
    """
    least = float(p.min())
    found, excess = np.full(len(p), least), p[new] - least
    room = max(0.0, share - least * int((excess > 0.0).sum()))
    found[new] += excess * (room / excess.sum())
    above = known - known.min()
    weights = above / above.sum() if above.sum() > 0.0 else np.full(len(known), 1.0 / len(known))
    found[~new] += weights * (1.0 - room - least * len(p))
    return found
