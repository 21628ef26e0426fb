"""The values that ranking returns and learning takes: a list of arms, and what it was allowed to hold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armwise.core.arguments import count, short


class Offer(NamedTuple):
    """Limits of a list, where not every arm may stand in every slot.

    ``available`` are the arms that may be shown (None: all), ``pinned`` the arms that have their slot already,
    ``categories`` one label per arm, and ``at_most`` how many arms of a category a list may hold: one number, or a
    number by label.
    """

    available: tuple[int, ...] | None = None
    pinned: Mapping[int, int] = {}
    categories: tuple[Any, ...] | None = None
    at_most: int | Mapping[Any, int] | None = None


class Ranking(NamedTuple):
    """One list: the arm of each slot from the top, and each one's probability given the arms above it.

    ``probabilities`` is None where an agent cannot know them; their product is the probability of the list. ``note``
    is a small JSON-able value that learning needs; ``offer`` is what the list could hold (None: any arm in any slot).

    >>> Ranking(arms=(2, 0), probabilities=(0.5, 1.0)).probability
    0.5
    """

    arms: tuple[int, ...]
    probabilities: tuple[float, ...] | None
    note: Any = None
    offer: Offer | None = None

    @property
    def probability(self) -> float | None:
        """The probability of the whole list, where it is known.

        >>> Ranking(arms=(2, 0), probabilities=None).probability is None
        True
        """
        return None if self.probabilities is None else float(np.prod(self.probabilities))


class OpenSlots:
    """The slots of one list, filled from the top: which arms may still be shown."""

    def __init__(self, n_arms: int, k: int, offer: Offer | None = None) -> None:
        self.k = k
        self.shown: list[int] = []  # from the top
        self._offer = offer or Offer()
        self._open = np.ones(n_arms, np.bool_)
        if self._offer.available is not None:
            self._open[:] = False
            self._open[list(self._offer.available)] = True
        self._left: dict[Any, int] = {}
        self._members: dict[Any, NDArray[np.int64]] = {}
        self._limit()
        for arm in self._offer.pinned.values():
            self._use(arm)

    def _limit(self) -> None:
        categories, at_most = self._offer.categories, self._offer.at_most
        if categories is None or at_most is None:
            return
        places: dict[Any, list[int]] = {}
        for arm, label in enumerate(categories):
            places.setdefault(label, []).append(arm)
        for label, arms in places.items():
            limit = at_most if isinstance(at_most, int) else at_most.get(label, len(arms))
            self._left[label], self._members[label] = limit, np.array(arms)
            if limit == 0:
                self._open[arms] = False

    def _use(self, arm: int) -> None:
        self._open[arm] = False
        if self._left:
            assert self._offer.categories is not None
            label = self._offer.categories[arm]
            self._left[label] -= 1
            if self._left[label] <= 0:
                self._open[self._members[label]] = False

    @property
    def pinned(self) -> int | None:
        """The arm that this slot has already."""
        return self.pinned_at(len(self.shown))

    def pinned_at(self, slot: int) -> int | None:
        """The arm that a slot has already."""
        return self._offer.pinned.get(slot)

    @property
    def free(self) -> NDArray[np.int64]:
        """The arms that this slot may show, in ascending order."""
        return np.flatnonzero(self._open)

    def anew(self) -> OpenSlots:
        """The same slots, none filled yet."""
        return OpenSlots(len(self._open), self.k, self._offer)

    def take(self, arm: int) -> None:
        """Fill the slot, and go on to the next."""
        if self.pinned is None:
            self._use(arm)
        self.shown.append(arm)

    def capacity(self) -> int:
        """The number of slots that can be filled beside the pinned ones."""
        if not self._left:
            return int(self._open.sum())
        return sum(min(self._left[label], int(self._open[arms].sum())) for label, arms in self._members.items())


def read_offer(n_arms: int, k: int, available: Any, pinned: Any, categories: Any, at_most: Any) -> Offer | None:
    """Check what a list may hold, and that k slots can be filled with it; None where any arm may stand anywhere."""
    if k > n_arms:
        raise ValueError(f"k must be at most the number of arms, {n_arms}, got {k}: no list shows an arm twice")
    if available is None and not pinned and categories is None and at_most is None:
        return None
    if (categories is None) != (at_most is None):
        raise ValueError("categories and at_most must be given together: a label per arm, and how many of a label")
    offer = Offer(
        _read_available(n_arms, available), _read_pinned(n_arms, k, pinned), _read_labels(n_arms, categories),
        _read_at_most(at_most),
    )  # fmt: skip
    slots = OpenSlots(n_arms, k, offer)
    for slot, arm in offer.pinned.items():
        if offer.available is not None and arm not in offer.available:
            raise ValueError(f"pinned has arm {arm} in slot {slot}, but it is not available")
    if any(left < 0 for left in slots._left.values()):
        raise ValueError("pinned has more arms of a category than at_most allows")
    if slots.capacity() < k - len(offer.pinned):
        raise ValueError(
            f"k is {k}, but the arms that are available, with at most so many of a category, fill at most "
            f"{slots.capacity() + len(offer.pinned)}"
        )
    return offer


def _read_available(n_arms: int, available: Any) -> tuple[int, ...] | None:
    if available is None:
        return None
    array = np.asarray(available)
    if array.dtype == np.bool_ and array.shape == (n_arms,):
        return tuple(np.flatnonzero(array).tolist())
    return tuple(sorted(read_arms("available", available, n_arms)))


def read_arms(name: str, values: Any, n_arms: int) -> list[int]:
    """Different arms, as a list of numbers; or a ValueError that names the argument."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be numbers of arms, 0 to {n_arms - 1}, got {short(values)}")
    arms: list[int] = array.tolist()
    wrong = next((arm for arm in arms if not 0 <= arm < n_arms), None)
    if wrong is not None:
        raise ValueError(f"{name} must be numbers of arms, 0 to {n_arms - 1}, got {wrong}")
    if len(set(arms)) < len(arms):
        twice = next(arm for i, arm in enumerate(arms) if arm in arms[:i])
        raise ValueError(f"{name} must not name an arm twice, got {twice} twice")
    return arms


def _read_pinned(n_arms: int, k: int, pinned: Any) -> dict[int, int]:
    if not pinned:
        return {}
    if not isinstance(pinned, Mapping):
        raise ValueError(f"pinned must be a dictionary of slot: arm, got {short(pinned)}")
    slots = list(pinned)
    if any(isinstance(slot, bool) or not isinstance(slot, (int, np.integer)) or not 0 <= slot < k for slot in slots):
        raise ValueError(f"pinned must have slots 0 to {k - 1} as keys, got {short(slots)}")
    return {int(slot): arm for slot, arm in zip(slots, read_arms("pinned", list(pinned.values()), n_arms))}


def _read_labels(n_arms: int, categories: Any) -> tuple[Any, ...] | None:
    if categories is None:
        return None
    if isinstance(categories, str) or not isinstance(categories, (Sequence, np.ndarray)) or len(categories) != n_arms:
        raise ValueError(f"categories must have a label for each of the {n_arms} arms, got {short(categories)}")
    labels = tuple(categories.tolist() if isinstance(categories, np.ndarray) else categories)
    if strange := [label for label in labels if not isinstance(label, Hashable)]:
        raise ValueError(f"categories must be labels that a dictionary can have as keys, got {short(strange[0])}")
    return labels


def _read_at_most(at_most: Any) -> Any:
    if isinstance(at_most, Mapping):
        return {label: count(f"at_most[{label!r}]", n, least=0) for label, n in at_most.items()}
    return None if at_most is None else count("at_most", at_most)
