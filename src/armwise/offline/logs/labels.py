"""Labels: names of the arms of a log, and their indices 0, ..., K - 1.

One rule for numbers: where the number of arms is given (``n_arms``, or something with one entry per arm), they are
places. Otherwise they are ids, categories as names are: as many arms as there are different ones, in their order. What
a policy answers is read alike: in a log of ids a number is an id. Whatever has one entry per arm (a distribution, an
agent) has them in the order of the log's arms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
EXACT = 2.0**53  # from here on a float represents several whole numbers: the id is ambiguous


def labels_of(ids: Iterable[int]) -> list[int] | None:
    """Return whole numbers as names of arms; None if they are 0, 1, ..., K - 1, the indices themselves."""
    names = sorted(int(i) for i in ids)
    return None if names == list(range(len(names))) else names


def are_ids(names: Sequence[Any] | None) -> bool:
    """Return whether these names are numbers."""
    return bool(names) and all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names)  # type: ignore[union-attr]


def whole(values: np.ndarray) -> tuple[np.ndarray, NDArray[np.bool_]]:
    """The whole numbers of a numeric array, and where it has none (there they are -1)."""
    if values.dtype.kind in "iu":
        return values, np.zeros(len(values), np.bool_)
    if values.dtype.kind == "b":
        return values.astype(np.int64), np.zeros(len(values), np.bool_)
    with np.errstate(invalid="ignore"):
        right = (values == np.floor(values)) & (np.abs(values) < EXACT)
    return np.where(right, values, -1.0).astype(np.int64), ~right


def as_places(numbers: np.ndarray) -> Ints:
    """Whole numbers as places; one that no int64 holds is too large for any."""
    if numbers.dtype == np.uint64:
        numbers = np.minimum(numbers, np.uint64(2**63 - 1))
    return numbers.astype(np.int64, copy=False)


def placed(values: np.ndarray, names: Sequence[Any]) -> Ints:
    """The place of each value among the names, -1 where it is not one of them."""
    if values.dtype.kind in "iu" and are_ids(names):
        kind = np.uint64 if values.dtype == np.uint64 else np.int64
        limits = np.iinfo(kind)
        if all(limits.min <= int(name) <= limits.max for name in names):
            return _found(values.astype(kind, copy=False), np.array([int(name) for name in names], kind))
    index = {name: i for i, name in enumerate(names)}
    return np.array([index.get(v, -1) for v in values.tolist()], dtype=np.int64)


def _found(values: np.ndarray, ids: np.ndarray) -> Ints:
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    if (
        values.size
        and values.min() >= ids[0]
        and values.max() <= ids[-1]
        and int(ids[-1]) - int(ids[0]) == len(ids) - 1
    ):
        places: Ints = order[(values - ids[0]).astype(np.int64, copy=False)]  # ids without a gap: nothing to search
        return places
    at = np.minimum(np.searchsorted(ids, values), len(ids) - 1)
    return np.where(ids[at] == values, order[at], -1).astype(np.int64)


class ArmNames:
    """Names of arms that policies may return: a name, an id, or an index if numbers are not ids."""

    def __init__(self, names: Sequence[Any] | None, n_arms: int) -> None:
        self._texts = [str(name) for name in (range(n_arms) if names is None else names)]
        self._by_text = {text: place for place, text in enumerate(self._texts)}
        self.ids: list[int] | None = None  # where a number is an id, and not a place
        if names is not None and all(_is_number(text) for text in self._texts):
            self.ids = [int(text) for text in self._texts]
        self._by_id = {number: place for place, number in enumerate(self.ids or range(n_arms))}

    def __len__(self) -> int:
        return len(self._texts)

    def of(self, places: Sequence[int]) -> ArmNames:
        """Some of these arms, whose places begin at 0 again."""
        return ArmNames([self._texts[i] for i in places], len(places)) if self._named else ArmNames(None, len(places))

    @property
    def _named(self) -> bool:
        return self.ids is not None or self._texts != [str(i) for i in range(len(self._texts))]

    @property
    def expected(self) -> str:
        """Describe the valid answers, for messages."""
        if not self._named:
            return f"0 to {len(self) - 1}"
        return f"one of {', '.join(self._texts)[:200]}"

    def place(self, answer: Any) -> int | None:
        """The place of the arm that is meant; None if there is no such arm."""
        if isinstance(answer, str):
            return self._by_text.get(answer)
        return self._by_id.get(int(answer)) if isinstance(answer, (int, np.integer, np.bool_)) else None

    def places(self, answers: np.ndarray) -> Ints:
        """The places of an array of names or whole numbers, -1 where there is no such arm."""
        if answers.dtype.kind in "UO":
            return placed(answers.astype(object), self._texts)
        numbers, _ = whole(answers)
        if self.ids is not None:
            return placed(numbers, self.ids)
        places = as_places(numbers)
        return np.where((places >= 0) & (places < len(self)), places, -1)

    def shares(self, answer: Mapping[Any, Any]) -> NDArray[np.float64]:
        """A dictionary of probabilities by name as one entry per arm."""
        shares = np.zeros(len(self))
        for name, p in answer.items():
            place = self.place(name)
            if place is None:
                raise KeyError(name)
            shares[place] += float(p)
        return shares


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and text == str(int(text))
