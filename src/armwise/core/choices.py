"""The values that choosing returns and learning takes: a choice, many choices, a block of played rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Choice(NamedTuple):
    """One decision: the arm, the probability with which it was drawn, what learning must remember, and what it cost.

    ``probability`` is None where the agent cannot know it; ``note`` is a small JSON-able value; ``cost`` (one number
    per resource, as a tuple) is None until it is known: ``learn(..., cost=...)`` fills it in.

    >>> Choice(arm=2, probability=0.5)
    Choice(arm=2, probability=0.5, note=None)
    >>> Choice(arm=2, probability=0.5, cost=(0.1,))
    Choice(arm=2, probability=0.5, note=None, cost=(0.1,))
    """

    arm: int
    probability: float | None
    note: Any = None
    cost: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        cost = "" if self.cost is None else f", cost={self.cost!r}"
        return f"Choice(arm={self.arm!r}, probability={self.probability!r}, note={self.note!r}{cost})"


# Calling the class costs twice as much, which shows in a decision of a few microseconds.
make_choice: Callable[[tuple[int, float | None, Any, None]], Choice] = partial(tuple.__new__, Choice)


class Choices(Sequence[Choice]):
    """The choices of many rounds, kept as columns; each item is a ``Choice``.

    ``probabilities`` is NaN where a choice does not know its own (or None: nowhere known); ``notes`` is None where no
    choice has one, ``costs`` (n, resources) is None where they are not known.

    >>> choices = Choices(arms=[2, 0], probabilities=[0.5, np.nan])
    >>> choices[0], choices[1:].arms
    (Choice(arm=2, probability=0.5, note=None), array([0]))
    """

    arms: Ints
    probabilities: Floats
    notes: list[Any] | None
    costs: Floats | None

    def __init__(
        self, arms: Any, probabilities: Any = None, notes: Sequence[Any] | None = None, costs: Any = None
    ) -> None:
        given = np.asarray(arms)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise ValueError(f"arms must be whole numbers, one per round, got shape {given.shape} of {given.dtype}")
        self.arms = given.astype(np.int64, copy=False)
        unknown = probabilities is None
        self.probabilities = np.full(len(given), np.nan) if unknown else np.asarray(probabilities, np.float64)
        self.notes = None if notes is None else list(notes)
        self.costs = None if costs is None else np.asarray(costs, np.float64).reshape(len(costs), -1)
        lengths = {len(column) for column in (self.notes, self.costs) if column is not None}
        if self.probabilities.shape != given.shape or lengths - {len(given)}:
            raise ValueError(f"probabilities, notes and costs must have one entry for each of the {len(given)} arms")

    @classmethod
    def of(cls, choices: Iterable[Choice]) -> Self:
        """The columns of single choices.

        >>> Choices.of([Choice(1, 0.5), Choice(0, None)]).probabilities
        array([0.5, nan])
        """
        rows = list(choices)
        notes = [choice.note for choice in rows]
        probabilities = [np.nan if choice.probability is None else choice.probability for choice in rows]
        arms = np.array([choice.arm for choice in rows], np.int64)
        costs = [choice.cost for choice in rows]
        return cls(
            arms,
            probabilities,
            None if all(note is None for note in notes) else notes,
            None if not rows or any(cost is None for cost in costs) else costs,
        )

    def with_costs(self, costs: Any) -> Choices:
        """The same choices with their costs.

        >>> Choices(arms=[0, 1]).with_costs([0.5, 0.1])[1].cost
        (0.1,)
        """
        return Choices(self.arms, self.probabilities, self.notes, costs)

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, t: int) -> Choice: ...
    @overload
    def __getitem__(self, t: slice) -> Choices: ...
    def __getitem__(self, t: int | slice) -> Choice | Choices:
        note = None if self.notes is None else self.notes[t]
        cost = None if self.costs is None else self.costs[t]
        if isinstance(t, slice):
            return Choices(self.arms[t], self.probabilities[t], note, cost)
        p = float(self.probabilities[t])
        return Choice(int(self.arms[t]), None if p != p else p, note, None if cost is None else tuple(cost.tolist()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<Choices of {len(self)} rounds>"


class Played(NamedTuple):
    """A block of rounds: the arms, their probabilities (NaN where unknown), the rewards they brought and their costs.

    ``costs`` is (T,) or (T, n), as the table of costs was (T, K) or (T, K, n); None without one.

    >>> import armwise as aw
    >>> aw.UCB1(n_arms=2).play(None, np.ones((3, 2))).rewards
    array([1., 1., 1.])
    """

    arms: Ints
    probabilities: Floats
    rewards: Floats
    costs: Floats | None = None


def joined(parts: Sequence[Played]) -> Played:
    """Concatenate blocks that were played one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Played(*(np.concatenate(column) for column in list(zip(*parts))[:3]))
