"""Rows: a block of rounds in memory, how it is made from what users have, and everything that can be wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats, count
from armwise.offline.logs.formats.cells import WHOLE_COLUMN
from armwise.offline.logs.formats.lines import Lines
from armwise.offline.logs.labels import EXACT, are_ids, as_places, labels_of, placed, whole
from armwise.offline.logs.labels import Ints as Ints

SURE = 1.0 - 1e-9  # a logged probability this large leaves nothing for other arms
_LARGEST, _SMALLEST = 1e150, 1e-100  # a reward, a probability: their squares must be numbers
_UNKNOWN = ": leave such decisions out, or read the log without probabilities and estimate them (PropensityModel)"
_PLACE = re.compile(r"((?:.*, )?(?:row|line)) (\d+): (.*)", re.DOTALL)
_SHOWN, _FEW = 20, 3  # problems printed by an error, and rows named for each; all of them are in its attribute


class WeakLogWarning(UserWarning):
    """The log hardly supports the estimate; the message says why.

    >>> issubclass(WeakLogWarning, UserWarning)
    True
    """


class LogError(ValueError):
    """A log that cannot be used; ``problems`` lists everything that is wrong with it, with row numbers.

    >>> from armwise.offline import Log
    >>> Log(arms=[0, 5], rewards=[1.0, float("nan")], n_arms=2)
    Traceback (most recent call last):
    ...
    armwise.offline.logs.rows.LogError: the log has 2 problems:
      row 1: arm is 5, expected a whole number from 0 to 1
      row 1: reward is nan, expected a finite number
    """

    def __init__(self, problems: Sequence[str], total: int | None = None) -> None:
        self.problems = list(problems)
        self._total = total = len(self.problems) if total is None else total
        lines = _grouped(self.problems)
        more = [f"... and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
        more += [f"... and {total - len(self.problems):,} problems beyond these"] if total > len(self.problems) else []
        plural = "problem" if total == 1 else "problems"
        super().__init__("\n  ".join([f"the log has {total:,} {plural}:", *lines[:_SHOWN], *more]))

    @property
    def of_rows(self) -> bool:
        """Whether a problem is that of a row, not of a whole column or file.

        >>> LogError(["row 3: arm is 5"]).of_rows, LogError(["arm has no column"]).of_rows
        (True, False)
        """
        return any(_PLACE.match(problem) for problem in self.problems)

    def add_remedy(self, text: str) -> None:
        """Say at the end of the message what may help."""
        self.args = (f"{self.args[0]}\n  {text}",)

    def __reduce__(self) -> tuple[Any, ...]:  # it comes back from the workers of a cluster
        return LogError, (self.problems, self._total)


def _grouped(problems: Sequence[str]) -> list[str]:
    """The problems, those that say the same of several rows in one line."""
    places: dict[tuple[str, str], list[str]] = {}
    for problem in problems:
        match = _PLACE.match(problem)
        kind, number, text = match.groups() if match else ("", "", problem)
        places.setdefault((kind, text), []).append(number)
    found = []
    for (kind, text), (first, *others) in places.items():
        some = ", ".join(others[:_FEW]) + (f" and {len(others) - _FEW:,} more" if len(others) > _FEW else "")
        also = f" (also {kind.rpartition(' ')[2]}{'s' if len(others) > 1 else ''} {some})" if others else ""
        found.append(f"{kind} {first}: {text}{also}" if kind else text)
    return found


@dataclass(frozen=True)
class ColumnNames:
    """The names of a table's columns, for messages about wrong values."""

    arms: str
    rewards: str
    probabilities: str | None
    contexts: tuple[str, ...]  # one for each feature
    lines: Lines | None = None  # where the rows of a CSV file stand


@dataclass(frozen=True)
class LogBlock:
    """A block of rounds in memory; ``start`` is the number of its first row in the whole log."""

    arms: Ints
    rewards: Floats
    n_arms: int
    contexts: Any = None  # (n, d) shared, (n, K, d) per arm, (n,) keys, or None
    probabilities: Floats | None = None
    arm_features: Floats | None = None  # (K, d) or (n, K, d)
    available: NDArray[np.bool_] | None = None  # (n, K)
    support: NDArray[np.bool_] | None = None  # (n, K): which arms could have been drawn, where the log says so
    timestamps: Any = None
    extra: dict[str, Any] | None = None  # other columns by name, where they were asked for
    start: int = 0
    names: ColumnNames | None = None
    unread: dict[str, dict[int, str]] | None = None  # by field and row: what stands where it should, for ``problems``

    def __len__(self) -> int:
        return len(self.arms)

    def place(self, row: int) -> str:
        """Where a row of the block stands: its line in a CSV file, else its number in the log."""
        lines = None if self.names is None else self.names.lines
        return f"row {self.start + row}" if lines is None else lines.place(self.start + row)

    def take(self, which: Any) -> LogBlock:
        """The rows that a slice, a mask or row numbers select (numbering starts again where it is not a slice)."""
        moved = self.start + (which.start or 0) if isinstance(which, slice) else 0
        which = row_numbers(which, len(self))
        per_row = {name: _pick(getattr(self, name), which) for name in PER_ROW}
        features = self.arm_features
        if features is not None and features.ndim == 3:
            features = _pick(features, which)
        extra = None if self.extra is None else {name: _pick(values, which) for name, values in self.extra.items()}
        return replace(self, **per_row, arm_features=features, extra=extra, start=moved, unread=None)

    def features(self) -> Floats:
        """The contexts of an agent that sees ``features``: (n, K, d), shared features repeated before an arm's own."""
        if ndim(self.contexts) == 3:
            return self.contexts  # type: ignore[no-any-return]
        if self.arm_features is None:
            raise ValueError(
                "the log has no features of the arms: give contexts of shape (n, K, d), or arm_features of shape "
                "(K, d) or (n, K, d)"
            )
        own = np.broadcast_to(self.arm_features, (len(self), self.n_arms, self.arm_features.shape[-1]))
        if ndim(self.contexts) != 2:
            return own
        shared = np.broadcast_to(self.contexts[:, None, :], (*own.shape[:2], self.contexts.shape[1]))
        return np.concatenate([shared, own], axis=2)


PER_ROW = ("contexts", "arms", "rewards", "probabilities", "available", "support", "timestamps")


def row_numbers(which: Any, n: int) -> Any:
    """A mask of n rows as their numbers, which every column is then spared to look for; anything else as it is."""
    is_mask = isinstance(which, np.ndarray) and which.dtype == bool and which.shape == (n,)
    return np.flatnonzero(which) if is_mask else which


def _pick(values: Any, which: Any) -> Any:
    if values is None:
        return None
    numbered = isinstance(which, np.ndarray) and which.dtype == np.int64 and isinstance(values, np.ndarray)
    return values.take(which, axis=0) if numbered else values[which]  # the same; take is faster by row numbers


def by_group(groups: Ints, n: int) -> Ints:
    """Row numbers by group, of which there are n, in their order within each; small numbers are sorted by digits."""
    small = groups.astype(np.uint8 if n <= 1 << 8 else np.uint16) if n <= 1 << 16 else groups
    return np.argsort(small, kind="stable")


def ndim(values: Any) -> int:
    return -1 if values is None else int(values.ndim)


# ---------------------------------------------------------------------- from arrays


def floats(name: str, values: Any) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise LogError([f"{name} must be numbers, got {values!r:.80}"]) from None


def as_rows(
    contexts: Any, arms: Any, rewards: Any, probabilities: Any, n_arms: int | None, arm_features: Any,
    available: Any, timestamps: Any, support: Any = None, arm_names: Sequence[Any] | None = None,
) -> tuple[LogBlock, list[Any] | None]:  # fmt: skip
    """Rows from arrays, and the names of the arms where the log's own labels are names."""
    if isinstance(contexts, list) and contexts and all(np.ndim(x) == 2 for x in contexts):
        contexts, offered = padded(contexts)
        available = offered if available is None else available
    elif contexts is not None:
        contexts = np.asarray(contexts)
        if contexts.ndim > 1:
            contexts = floats("contexts", contexts)
    features = None if arm_features is None else floats("arm_features", arm_features)
    mask = None if available is None else np.asarray(available, dtype=bool)
    if n_arms is None:
        shapes = [mask.shape[-1]] if mask is not None else []
        shapes += [features.shape[-2]] if features is not None and features.ndim > 1 else []
        shapes += [contexts.shape[1]] if ndim(contexts) == 3 else []
        n_arms = shapes[0] if shapes else None
    arm_numbers, names, no_arms = _numbered(arms, n_arms, arm_names)
    if n_arms is None:
        n_arms = len(names) if names is not None else int(arm_numbers.max(initial=0)) + 1
    if mask is not None and mask.shape == (len(arm_numbers), n_arms) and mask.all():
        mask = None
    if names is not None and len(names) != n_arms:
        raise LogError([f"arm_names has {len(names)} names, but there are {n_arms} arms"])
    rows = LogBlock(
        arms=arm_numbers, rewards=floats("rewards", rewards), n_arms=count("n_arms", n_arms), contexts=contexts,
        probabilities=None if probabilities is None else _probabilities(probabilities, len(arm_numbers)),
        arm_features=features, available=mask,
        support=None if support is None else np.asarray(support, dtype=bool),
        timestamps=None if timestamps is None else np.asarray(timestamps), unread={"arms": no_arms},
    )  # fmt: skip
    return rows, names


def _probabilities(values: Any, n: int) -> Floats:
    """One probability per row; a single number is that of a randomised trial, the same in every row."""
    return np.full(n, float(values)) if np.ndim(values) == 0 else floats("probabilities", values)


def _numbered(
    arms: Any, n_arms: int | None, names: Sequence[Any] | None
) -> tuple[Ints, list[Any] | None, dict[int, str]]:
    """The arms as places, their names (texts, and numbers where nothing says how many arms there are), and no arms."""
    array = np.asarray(arms)
    if array.dtype.kind in "UO" and array.ndim == 1 and all(isinstance(a, str) for a in array.tolist()):
        found = list(names) if names is not None else sorted(set(array.tolist()))
        places, no_arms = places_of(array, found, ids=False)
        return places, found, no_arms
    if array.dtype.kind not in "biu":
        array = _numbers(arms)
    if array.ndim == 1 and n_arms is None and names is None:
        numbers, wrong = whole(array)
        names = labels_of(np.unique(numbers[~wrong]).tolist())
    places, no_arms = places_of(array.ravel(), names, ids=n_arms is None and are_ids(names))
    return places.reshape(array.shape), list(names) if names is not None else None, no_arms


def _numbers(arms: Any) -> np.ndarray:
    """Numbers of any kind; whole ones stay whole, since as floats large ids would become one another."""
    if not isinstance(arms, np.ndarray) or arms.dtype == object:
        array = np.array(arms, dtype=object)
        if array.size and all(isinstance(a, (int, np.integer)) and not isinstance(a, bool) for a in array.flat):
            for kind in (np.int64, np.uint64):
                if np.iinfo(kind).min <= min(array.flat) and max(array.flat) <= np.iinfo(kind).max:
                    return array.astype(kind)
    return floats("arms", arms)


def places_of(
    values: np.ndarray, names: Sequence[Any] | None, *, ids: bool, column: str | None = None
) -> tuple[Ints, dict[int, str]]:
    """The places of arms called by names, by ids or by their places; what stands where there is no arm (place -1)."""
    if values.dtype.kind in "biuf":
        numbers, wrong = whole(values)
        if not ids or names is None:
            return as_places(numbers), {int(i): not_an_arm(values[i], column) for i in np.flatnonzero(wrong)}
        places = np.where(wrong, -1, placed(numbers, names)) if wrong.any() else placed(numbers, names)
    else:
        places = placed(values, names or ())
    where = "" if column is None else f" in column {column!r}"
    no_arms = {}
    for i in np.flatnonzero(places < 0) if len(places) and places.min() < 0 else ():
        value = values[i : i + 1].tolist()[0]
        known = isinstance(value, (str, int)) or (
            isinstance(value, float) and abs(value) < EXACT and value.is_integer()
        )
        no_arms[int(i)] = (
            f"arm is {value!r}{where}, expected one of {list(names or ())!r:.200}"
            if known
            else not_an_arm(value, column)
        )
    return places, no_arms


def not_an_arm(value: Any, column: str | None = None) -> str:
    """The message for an arm that is neither a whole number nor a name, with its column."""
    missing = value is None or value != value
    remedy = ": leave out decisions without an arm" if missing else " (give texts, if such numbers are names)"
    if isinstance(value, float) and not missing and abs(value) >= EXACT:
        remedy = " (as a float it may have been any of several: give whole numbers, or texts)"
    where = "" if column is None else f" in column {column!r}"
    return f"arm is {'missing' if value is None else value}{where}, expected a whole number or a name{remedy}"


def padded(contexts: Sequence[Any]) -> tuple[Floats, NDArray[np.bool_]]:
    """Arm sets of different sizes as one (n, K, d) array of zeros past each end, and which arms are there."""
    arrays = [np.asarray(x, dtype=np.float64) for x in contexts]
    dims = sorted({x.shape[1] for x in arrays if x.size})
    if len(dims) > 1:
        raise LogError([f"contexts: rows have {dims} features an arm, expected the same number in every row"])
    K = max(len(x) for x in arrays)
    X = np.zeros((len(arrays), K, dims[0] if dims else 0))
    there = np.zeros((len(arrays), K), dtype=bool)
    for i, x in enumerate(arrays):
        X[i, : len(x)], there[i, : len(x)] = x, True
    return X, there


def joined(blocks: list[LogBlock], n_arms: int) -> LogBlock:
    if not blocks:
        return LogBlock(np.empty(0, np.int64), np.empty(0), n_arms)
    first = blocks[0]
    per_row: dict[str, Any] = {
        name: None if getattr(first, name) is None else np.concatenate([getattr(b, name) for b in blocks])
        for name in PER_ROW
    }
    features = first.arm_features
    if features is not None and features.ndim == 3:
        features = np.concatenate([b.arm_features for b in blocks])
    extra = None
    if first.extra is not None:
        extra = {name: np.concatenate([b.extra[name] for b in blocks if b.extra is not None]) for name in first.extra}
    return replace(first, **per_row, arm_features=features, extra=extra)


# ---------------------------------------------------------------------- checks


def problems(rows: LogBlock) -> list[str]:
    """Everything that is wrong with these rows, each with its row number or its line."""
    found = _wrong_shapes(rows)
    if found:
        return found
    whole = [texts[WHOLE_COLUMN] for texts in (rows.unread or {}).values() if WHOLE_COLUMN in texts]
    return whole + [f"{rows.place(i)}: {text}" for i, _, text in row_problems(rows)]


def row_problems(rows: LogBlock) -> list[tuple[int, str, str]]:
    """Row, field and text of everything that is wrong with single rows, in the order of the rows."""
    n, K = len(rows), rows.n_arms
    found: list[tuple[int, str, str]] = []

    def report(field: str, wrong: NDArray[np.bool_], say: Callable[[int], str]) -> None:
        found.extend((int(i), field, say(int(i))) for i in np.flatnonzero(wrong))

    arms, rewards, p = rows.arms, rows.rewards, rows.probabilities
    unread = {name: (rows.unread or {}).get(name, {}) for name in ("arms", "rewards", "probabilities")}
    if n and not (arms.min() >= 0 and arms.max() < K):
        expected = f"expected a whole number from 0 to {K - 1}"
        report("arm", (arms < 0) | (arms >= K), lambda i: unread["arms"].get(i) or f"arm is {arms[i]}, {expected}")
    if n and not (rewards.min() >= -_LARGEST and rewards.max() <= _LARGEST):  # NaN fails, too
        wrong = ~np.isfinite(rewards) & (WHOLE_COLUMN not in unread["rewards"])
        report("reward", wrong, lambda i: unread["rewards"].get(i) or _no_reward(rows, i))
        large = np.isfinite(rewards) & (np.abs(rewards) > _LARGEST)
        report("reward", large, lambda i: f"reward is {rewards[i]}, expected one of at most {_LARGEST:g} in magnitude")
    if p is not None and n and not (p.min() > _SMALLEST and p.max() <= 1.0 + 1e-9):
        wrong = ~((p > _SMALLEST) & (p <= 1 + 1e-9)) & ~(np.isnan(p) & (WHOLE_COLUMN in unread["probabilities"]))
        report("probability", wrong, lambda i: unread["probabilities"].get(i) or _no_probability(rows, i))
    for name in ("contexts", "arm_features"):
        values = getattr(rows, name)
        if ndim(values) > 1 and not np.isfinite(values.sum()) and len(values) == n:
            bad = ~np.isfinite(values).reshape(n, -1).all(axis=1)
            report("context", bad, lambda i, name=name: _not_finite(name, rows, i))  # type: ignore[misc]
    legal = (arms >= 0) & (arms < K)
    for name, mask in (("available", rows.available), ("support", rows.support)):
        if mask is not None:
            there = mask[np.arange(n), np.where(legal, arms, 0)]
            said = "is not among the available arms" if name == "available" else "is outside the support"
            report("arm", ~there & legal, lambda i, said=said: f"arm {arms[i]} {said}")  # type: ignore[misc]
    return sorted(found, key=lambda each: each[0])


def _no_reward(rows: LogBlock, i: int) -> str:
    value = rows.rewards[i]
    if rows.names is None:
        return f"reward is {value}, expected a finite number"
    said = f"reward is {'missing' if np.isnan(value) else value} in column {rows.names.rewards!r}"
    return f"{said}, expected a number: if no outcome is an outcome (no click), fill in what it is worth, such as 0"


def _no_probability(rows: LogBlock, i: int) -> str:
    value = rows.probabilities[i]  # type: ignore[index]
    if rows.names is None or rows.names.probabilities is None:
        return f"probability is {value}, expected a number in (0, 1]"
    said = f"probability is {'missing' if np.isnan(value) else value} in column {rows.names.probabilities!r}"
    return f"{said}, expected a number in (0, 1]{_UNKNOWN if np.isnan(value) else ''}"


def _not_finite(name: str, rows: LogBlock, i: int) -> str:
    """The message for a row with NaN or infinity: its column, where that has a name, and the remedy."""
    values = getattr(rows, name)
    if name == "contexts" and rows.names is not None and values.shape[1:] == (len(rows.names.contexts),):
        bad = ", ".join(repr(rows.names.contexts[j]) for j in np.flatnonzero(~np.isfinite(values[i])))
        return f"contexts holds NaN or infinity in column {bad}: fill it, or leave the column out of contexts"
    return f"{name} holds NaN or infinity, expected finite numbers"


def _wrong_shapes(rows: LogBlock) -> list[str]:
    n, K, found = len(rows), rows.n_arms, []
    for name in PER_ROW:
        values = getattr(rows, name)
        if values is not None and len(values) != n:
            found.append(f"{name} has {len(values)} rows, but arms has {n}")
    for name in ("arms", "rewards", "probabilities"):
        if ndim(getattr(rows, name)) not in (-1, 1):
            found.append(f"{name} must have one value a row, got shape {getattr(rows, name).shape}")
    for name in ("available", "support"):
        mask = getattr(rows, name)
        if mask is not None and mask.shape != (n, K):
            found.append(f"{name} must have shape ({n}, {K}), got {mask.shape}")
    if ndim(rows.contexts) not in (-1, 1, 2, 3):
        found.append(f"contexts must have shape (n,), (n, d) or (n, K, d), got {rows.contexts.shape}")
    features = rows.arm_features
    if features is not None and features.shape[:-1] not in ((K,), (n, K)):
        found.append(f"arm_features must have shape ({K}, d) or ({n}, {K}, d), got {features.shape}")
    return found
