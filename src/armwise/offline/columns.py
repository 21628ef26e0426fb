"""Tables as logs: which column is what, and rows from blocks of columns."""

from __future__ import annotations

import copy
import difflib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armwise.agent import Floats, count, fraction
from armwise.offline.balance import Balance
from armwise.offline.cells import outcomes, words_as_outcomes
from armwise.offline.diagnostics import WeakLogWarning
from armwise.offline.labels import Ints, are_ids, labels_of, whole
from armwise.offline.lines import Lines
from armwise.offline.rows import ColumnNames, LogBlock, padded, places_of

Block = dict[str, np.ndarray]  # one array a column; a column of lists is an array of objects, or 2-d
_SAMPLE, _FEWEST = 1 << 15, 200  # rows to look for outcomes in
_OPTIONS = ("contexts", "arms", "rewards", "probabilities", "timestamps", "arm_features", "available")
_MANY = 1000  # different strings in a context column: more than that is an identifier, not a feature


@dataclass(frozen=True)
class Columns:
    """Which column is what."""

    contexts: tuple[str, ...]
    arms: str
    rewards: str
    probabilities: str | None
    timestamps: str | None
    arm_features: tuple[str, ...]  # patterns with {arm}
    available: str | None  # pattern with {arm}
    constant: float | None = None  # the probability of every row's arm: a randomised trial
    guessed: bool = False  # whether the contexts are just every other column

    @classmethod
    def read(
        cls,
        names: Sequence[str],
        contexts: Sequence[str] | str | None = None,
        arms: str = "arm",
        rewards: str = "reward",
        probabilities: str | float | None = "probability",
        timestamps: str | None = None,
        arm_features: Sequence[str] | str = (),
        available: str | None = None,
        **unknown: Any,
    ) -> Columns:
        """The mapping that a user gave, checked against the columns that exist."""
        for name in unknown:
            near = difflib.get_close_matches(name, _OPTIONS, n=1)
            raise TypeError(f"there is no option {name!r}" + (f": did you mean {near[0]}=?" if near else
                            f": which column is what is said with {', '.join(_OPTIONS)}"))  # fmt: skip
        constant = None
        if not isinstance(probabilities, (str, type(None))):
            constant, probabilities = fraction("probabilities", probabilities, one=True), None
        if probabilities == "probability" and probabilities not in names:
            probabilities = None  # the default name, and no such column: the log does not say
        patterns = (arm_features,) if isinstance(arm_features, str) else tuple(arm_features)
        for pattern in (*patterns, *([available] if available else [])):
            if "{arm}" not in pattern:
                raise ValueError(
                    f"{pattern!r} must hold '{{arm}}', where the name of each arm goes, as in 'price_{{arm}}'"
                )
        guessed = contexts is None
        if contexts is None:
            used = {arms, rewards, probabilities, timestamps}
            starts = tuple(p.partition("{arm}")[0] for p in (*patterns, *([available] if available else [])))
            contexts = [n for n in names if n not in used and not (starts and n.startswith(starts))]
        wanted = (contexts,) if isinstance(contexts, str) else tuple(contexts)
        for name in (*wanted, arms, rewards, *filter(None, [probabilities, timestamps])):
            check_column(name, names)
        return cls(wanted, arms, rewards, probabilities, timestamps, patterns, available, constant, guessed)

    def needed(self, arm_names: Sequence[Any], contexts: bool) -> list[str]:
        """The columns to read."""
        plain = [self.arms, self.rewards, *filter(None, [self.probabilities, self.timestamps])]
        per_arm = [p.format(arm=a) for p in filter(None, [self.available]) for a in arm_names]
        if contexts:
            per_arm += [p.format(arm=a) for p in self.arm_features for a in arm_names]
            plain += self.contexts
        return list(dict.fromkeys(plain + per_arm))


def check_column(name: str, names: Sequence[str]) -> None:
    """Refuse a column that is not there, with the nearest one that is.

    >>> check_column("rewrd", ["arm", "reward"])
    Traceback (most recent call last):
    ...
    ValueError: there is no column 'rewrd': did you mean 'reward'?
    """
    if name not in names:
        near = difflib.get_close_matches(str(name), [str(n) for n in names], n=1)
        shown = ", ".join(map(str, names[:20]))
        raise ValueError(
            f"there is no column {name!r}: " + (f"did you mean {near[0]!r}?" if near else f"there are {shown}")
        )


class TableSource:
    """Rows from blocks of columns. ``open_blocks(names, size)`` starts again at the first row each time.

    ``ranged``: it also takes (first, last) after them, and then opens only these rows.
    """

    def __init__(
        self,
        open_blocks: Callable[..., Iterable[Block]],
        columns: Columns,
        n_rows: int | None,
        n_arms: int | None,
        arm_names: Sequence[Any] | None,
        ranged: bool = False,
        in_memory: bool = False,
        lines: Lines | None = None,
    ) -> None:
        self.in_memory, self.costs, self._lines = in_memory, None, lines
        self._open, self._columns, self.n_rows, self._ranged = open_blocks, columns, n_rows, ranged
        self._range: tuple[int, int] | None = None  # the rows of a part
        self.has_probabilities = columns.probabilities is not None or columns.constant is not None
        self._categories: dict[str, list[Any]] = {}
        self.left_out: dict[str, str] = {}  # columns that are no contexts, and why
        self.unusable: dict[str, str] = {}  # those that are no numbers, and what they are
        self._read_as = self._words_read()
        if columns.guessed:
            self._leave_out_dates()
            self._leave_out_outcomes()
        self._explore(n_arms, list(arm_names) if arm_names is not None else None)

    # ------------------------------------------------------------------ what must be known before the first row

    def _words_read(self) -> dict[str, str]:
        """Of the columns of rewards and probabilities, how their words are read (yes = 1)."""
        c = self._columns
        names = [c.rewards, *filter(None, [c.probabilities])]
        block = next(iter(self._open(names, 1000)), {})
        return {name: words for name in names if name in block and (words := words_as_outcomes(block[name]))}

    def _leave_out_dates(self) -> None:
        """Of columns that nobody named, take those out that are neither numbers nor words, such as times."""
        c = self._columns
        first = next(iter(self._open([c.arms, *c.contexts], 1000)), {})
        kinds = {name: first[name].dtype for name in c.contexts if name in first}
        for name, kind in kinds.items():
            if kind.kind in "Mm":
                self._without(name, "times" if kind.kind == "M" else "lengths of time")

    def _without(self, name: str, what: str) -> None:
        """Take a column that nobody named out of the contexts."""
        self.unusable[name] = what
        rest = tuple(other for other in self._columns.contexts if other != name)
        self._columns = replace(self._columns, contexts=rest)

    def _leave_out_outcomes(self) -> None:
        """Of columns that nobody named, take those out that were written after the arm was played.

        A column that is not zero just where the reward is not is the reward by another name, and one that is not zero
        only there comes after it. One that differs between the arms of a randomised log is what the arms did; where
        most columns differ, the probabilities are wrong.
        """
        c = self._columns
        names = [c.arms, c.rewards, *filter(None, [c.probabilities]), *c.contexts]
        block = next(iter(self._open(names, _SAMPLE)), {})
        numbers = [name for name in c.contexts if name in block and block[name].dtype.kind in "biuf"]
        if not numbers or len(block[c.arms]) < _FEWEST or block[c.rewards].dtype.kind not in "biuf":
            return
        arms = np.unique(block[c.arms].astype(str), return_inverse=True)[1]
        p, _ = self._probabilities(block, len(arms))
        X = np.nan_to_num(_matrix([block[name] for name in numbers]))
        balance = Balance(int(arms.max()) + 1, numbers)
        known = p is not None and bool(np.all((p > 0) & (p <= 1)))
        balance.add(LogBlock(arms, np.nan_to_num(block[c.rewards].astype(np.float64)), int(arms.max()) + 1, contexts=X,
                         probabilities=p if known else np.ones(len(arms))))  # fmt: skip
        self.left_out = dict.fromkeys(balance.implying(), "is not zero only where the reward is not")
        self.left_out |= dict.fromkeys(balance.copies(), "nearly determines the reward")
        if not known:  # then nothing tells an effect of the arm from a cause of it, but a step on the way to the reward
            self.left_out = dict.fromkeys(balance.needed(), "is not zero wherever there is a reward") | self.left_out
        unequal = balance.unequal() if known else []
        if 2 * len(unequal) <= len(c.contexts):
            self.left_out |= {name: "differs between the arms" for name in unequal if name not in self.left_out}
        if self.left_out:
            self._columns = replace(c, contexts=tuple(name for name in c.contexts if name not in self.left_out))
            said = "; ".join(f"{name} {why}" for name, why in self.left_out.items())
            warnings.warn(WeakLogWarning(
                f"left out of the contexts, because they look like outcomes: {said} (name the contexts to decide)"
            ), stacklevel=2)  # fmt: skip

    @property
    def context_names(self) -> list[str]:
        """The names of the columns of a context, strings spelt out."""
        return list(self._names.contexts)

    @property
    def columns_used(self) -> str:
        """Which column is what, in one line."""
        c = self._columns
        read = {name: f"{name} ({words})" for name, words in self._read_as.items()}
        p = f"{c.constant:.4g} in every row" if c.constant is not None else "unknown"
        p = read.get(c.probabilities, c.probabilities) if c.probabilities is not None else p
        text = f"arm: {c.arms}; reward: {read.get(c.rewards, c.rewards)}; probability: {p}"
        text += f"; contexts: {', '.join(c.contexts) or 'none'}"
        text += f"; left out as outcomes: {', '.join(self.left_out)}" if self.left_out else ""
        unusable = ", ".join(f"{name} ({what})" for name, what in self.unusable.items())
        return text + (f"; left out: {unusable}" if unusable else "")

    def _explore(self, n_arms: int | None, arm_names: list[Any] | None) -> None:
        """Find strings to turn into numbers, and how many arms there are; reads only the columns this needs."""
        c = self._columns
        first = next(iter(self._open([c.arms, *c.contexts], 1000)), {})
        words = [name for name in c.contexts if name in first and _is_words(first[name])]
        listed = [name for name in c.contexts if name in first and _is_lists(first[name])]
        if listed and len(c.contexts) > 1:
            raise ValueError(f"column {listed[0]!r} holds lists: then it must be the only column of contexts")
        self._per_arm = bool(listed) and first[listed[0]].dtype == object and _depth(first[listed[0]][0]) == 2
        named = c.arms in first and _is_words(first[c.arms])
        look = list(dict.fromkeys(words + ([c.arms] if arm_names is None and (named or n_arms is None) else [])
                                  + (listed if self._per_arm and n_arms is None else [])))  # fmt: skip
        seen: dict[str, set[Any]] = {name: set() for name in [*words, c.arms]}
        most = 0
        for block in self._open(look, 1 << 18) if look else ():
            for name in list(words):
                seen[name].update(x for x in block[name] if _there(x))
                if len(seen[name]) > _MANY and c.guessed:
                    words.remove(name)
                    self._without(name, f"more than {_MANY:,} different strings")
                elif len(seen[name]) > _MANY:
                    raise ValueError(
                        f"column {name!r} has more than {_MANY:,} different strings: leave it out, or encode it"
                    )
            if c.arms in block and named:
                seen[c.arms].update(x for x in block[c.arms] if _there(x))
            elif c.arms in block and len(block[c.arms]):
                seen[c.arms] |= _distinct(block[c.arms])
            if self._per_arm and n_arms is None:
                most = max([most, *(len(x) for x in block[listed[0]] if x is not None)])
        self._categories = {name: sorted(seen[name], key=str) for name in words}
        if arm_names is None and named:
            arm_names = sorted(seen[c.arms], key=str)
        elif arm_names is None and n_arms is None and not self._per_arm:
            arm_names = labels_of(seen[c.arms])
            most = len(seen[c.arms])
        self.arm_names = arm_names
        self._ids = n_arms is None and are_ids(arm_names)  # whether numbers are ids: otherwise they are places
        if self.arm_names is not None and n_arms is not None and n_arms != len(self.arm_names):
            raise ValueError(f"n_arms is {n_arms}, but the arms are {self.arm_names!r:.200}")
        self.n_arms = count("n_arms", n_arms or (len(self.arm_names) if self.arm_names is not None else max(most, 1)))

    @property
    def _names(self) -> ColumnNames:
        c = self._columns
        words = [[f"{name}={word}" for word in self._categories.get(name, [])] or [name] for name in c.contexts]
        return ColumnNames(
            c.arms, c.rewards, c.probabilities, tuple(one for some in words for one in some), self._lines
        )

    # ------------------------------------------------------------------ rows

    def batches(self, size: int, contexts: bool, extra: tuple[str, ...] = ()) -> Iterator[LogBlock]:
        """Blocks of rows, with the ``extra`` columns by name."""
        labels = self.arm_names if self.arm_names is not None else list(range(self.n_arms))
        start = 0 if self._range is None else self._range[0]
        wanted = list(dict.fromkeys([*self._columns.needed(labels, contexts), *extra]))
        for block in self._open(wanted, size, *(self._range or ())):
            rows = self._rows(block, start, contexts, labels)
            start += len(rows)
            yield replace(rows, extra={name: block[name] for name in extra}) if extra else rows

    def part(self, first: int, last: int) -> TableSource:
        """The rows from ``first`` up to ``last``, which keep their numbers."""
        if not self._ranged:
            raise ValueError(
                "this log can only be read from its beginning, so it cannot be split into parts for a cluster: write "
                "it as Parquet (Log.from_parquet) first"
            )
        other = copy.copy(self)
        other._range, other.n_rows = (first, last), last - first
        return other

    def _rows(self, block: Block, start: int, contexts: bool, labels: list[Any]) -> LogBlock:
        c = self._columns
        unread: dict[str, dict[int, str]] = {}
        arms, unread["arms"] = self._arms(block[c.arms])
        n = len(arms)
        rewards, unread["rewards"] = outcomes("reward", c.rewards, block[c.rewards])
        probabilities, unread["probabilities"] = self._probabilities(block, n)
        matrix, available = self._contexts(block, n) if contexts and c.contexts else (None, None)
        features = None
        if contexts and c.arm_features:
            features = np.stack([_matrix([block[p.format(arm=a)] for a in labels]) for p in c.arm_features], axis=2)
        if c.available:
            available = np.column_stack([block[c.available.format(arm=a)].astype(bool) for a in labels])
        return LogBlock(
            arms=arms, rewards=rewards, n_arms=self.n_arms, contexts=matrix, probabilities=probabilities,
            arm_features=features, available=available, start=start, unread=unread, names=self._names,
            timestamps=block[c.timestamps] if c.timestamps else None,
        )  # fmt: skip

    def _probabilities(self, block: Block, n: int) -> tuple[Floats | None, dict[int, str]]:
        c = self._columns
        if c.constant is not None:
            return np.full(n, c.constant), {}
        return outcomes("probability", c.probabilities, block[c.probabilities]) if c.probabilities else (None, {})

    def _arms(self, values: np.ndarray) -> tuple[Ints, dict[int, str]]:
        """The places of the arms, and what stands where there is none."""
        unread: dict[int, str] = {}
        if not (_is_words(values) and self.arm_names is not None) and values.dtype.kind not in "biu":
            values, unread = outcomes("arm", self._columns.arms, values)
        places, no_arms = places_of(values, self.arm_names, ids=self._ids, column=self._columns.arms)
        return places, no_arms | unread

    def _contexts(self, block: Block, n: int) -> tuple[Any, Any]:
        names = self._columns.contexts
        only = block[names[0]]
        if self._per_arm:
            X, there = padded([[[float(v) for v in arm] for arm in row] for row in only])
            short = self.n_arms - X.shape[1]
            X, there = np.pad(X, ((0, 0), (0, short), (0, 0))), np.pad(there, ((0, 0), (0, short)))
            return X, there
        if _is_lists(only):
            return (only if only.ndim == 2 else np.array([list(row) for row in only], dtype=np.float64)), None
        return _matrix([column for name in names for column in self._encoded(name, block[name])]), None

    def _encoded(self, name: str, values: np.ndarray) -> list[np.ndarray]:
        """A column of numbers is itself; a column of strings becomes one indicator for each string."""
        if name in self._categories:
            return [np.asarray(values == category, dtype=np.float64) for category in self._categories[name]]
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} holds {values.dtype}, expected numbers or strings: leave it out of contexts"
            )
        return [values]


def _distinct(values: np.ndarray) -> set[int]:
    """The different whole numbers in a column; what is missing or no whole number is for the check of the rows."""
    numbers, wrong = whole(values if values.dtype.kind in "biuf" else values.astype(np.float64))
    numbers = numbers[~wrong] if wrong.any() else numbers
    if numbers.size and numbers.min() >= 0 and numbers.max() < 1 << 20:
        return set(np.flatnonzero(np.bincount(numbers.astype(np.int64, copy=False))).tolist())
    return set(np.unique(numbers).tolist())


def _matrix(columns: list[np.ndarray]) -> Floats:
    """Columns side by side; each stays contiguous, which is how they come from Arrow."""
    if not columns:
        return np.empty((0, 0))
    by_column = np.empty((len(columns), len(columns[0])))
    for i, column in enumerate(columns):
        by_column[i] = column
    return by_column.T


def _there(value: Any) -> bool:
    return value is not None and value == value


def _is_lists(values: np.ndarray) -> bool:
    return values.ndim == 2 or (values.dtype == object and len(values) > 0 and _depth(values[0]) > 0)


def _is_words(values: np.ndarray) -> bool:
    return values.dtype.kind in "USTO" and not _is_lists(values)


def _depth(value: Any) -> int:
    if isinstance(value, (list, tuple, np.ndarray)):
        return 1 + (_depth(value[0]) if len(value) else 0)
    return 0
