"""Tables as logs: roles of columns, and rows from blocks of columns."""

from __future__ import annotations

import copy
import difflib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armwise.core.agent import Floats, count, fraction
from armwise.offline.logs.checks.duplicates import MAX_SAMPLE, copies
from armwise.offline.logs.checks.leaks import are_probabilities, outcomes_among
from armwise.offline.logs.formats.cells import (
    DECIMAL_REMEDY,
    WHOLE_COLUMN,
    has_decimal_commas,
    number,
    outcomes,
    shown,
    words_as_outcomes,
)
from armwise.offline.logs.formats.lines import Lines
from armwise.offline.logs.labels import Ints, are_ids, labels_of, whole
from armwise.offline.logs.rows import ColumnNames, LogBlock, LogError, WeakLogWarning, padded, places_of, row_problems

Block = dict[str, np.ndarray]  # one array a column; a column of lists is an array of objects, or 2-d
_SAMPLE, _MIN_ROWS = 1 << 15, 200  # rows to look for outcomes in
_OPTIONS = ("contexts", "arms", "rewards", "probabilities", "timestamps", "arm_features", "available")
MAX_STRINGS = 1000  # different strings in a context column: more than that is an identifier, not a feature
_FEW_NUMBERS = 12  # different numbers up to which a column of strings is one of categories


@dataclass(frozen=True)
class ColumnRoles:
    """The roles of columns."""

    contexts: tuple[str, ...]
    arms: str
    rewards: str
    probabilities: str | None
    timestamps: str | None
    arm_features: tuple[str, ...]  # patterns with {arm}
    available: str | None  # pattern with {arm}
    constant: float | None = None  # the probability of every row's arm: a randomised trial
    guessed: bool = False  # whether the contexts are all other columns
    repeated: tuple[str, ...] = ()  # duplicate column names, which are not used as contexts
    declined: bool = False  # True: stated to have no probabilities

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
    ) -> ColumnRoles:
        """Check a user's mapping against the existing columns."""
        for name in unknown:
            near = difflib.get_close_matches(name, _OPTIONS, n=1)
            raise TypeError(f"there is no option {name!r}" + (f": did you mean {near[0]}=?" if near else
                            f": which column is what is said with {', '.join(_OPTIONS)}"))  # fmt: skip
        constant, declined = None, probabilities is None
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
        repeated = [name for name, times in Counter(names).items() if times > 1]
        if contexts is None:
            used = {arms, rewards, probabilities, timestamps, *repeated}
            starts = tuple(p.partition("{arm}")[0] for p in (*patterns, *([available] if available else [])))
            contexts = [n for n in names if n not in used and not (starts and n.startswith(starts))]
        wanted = (contexts,) if isinstance(contexts, str) else tuple(contexts)
        for name in (*wanted, arms, rewards, *filter(None, [probabilities, timestamps])):
            check_column(name, names)
            if name in repeated:
                raise ValueError(f"two columns are called {name!r}: rename one of them")
        twice = tuple(repeated) if guessed else ()
        return cls(wanted, arms, rewards, probabilities, timestamps, patterns, available, constant, guessed, twice,
                   declined)  # fmt: skip

    def needed(self, arm_names: Sequence[Any], contexts: bool) -> list[str]:
        """The columns to read."""
        plain = [self.arms, self.rewards, *filter(None, [self.probabilities, self.timestamps])]
        per_arm = [p.format(arm=a) for p in filter(None, [self.available]) for a in arm_names]
        if contexts:
            per_arm += [p.format(arm=a) for p in self.arm_features for a in arm_names]
            plain += self.contexts
        return list(dict.fromkeys(plain + per_arm))


def check_column(name: str, names: Sequence[str]) -> None:
    """Refuse a missing column and suggest the nearest one."""
    if name not in names:
        near, known = nearest(str(name), [str(n) for n in names]), ", ".join(map(str, names[:20]))
        raise ValueError(
            f"there is no column {name!r}: " + (f"did you mean {near!r}?" if near else f"there are {known}")
        )


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name with the same word, else the nearest in spelling; None if no name is near."""
    for each in names:
        if name.lower().strip() in (each.lower().strip(), *re.split(r"[\W_]+", each.lower())):
            return each
    lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    return lower[near[0]] if near else None


class TableSource:
    """Rows from blocks of columns. ``open_blocks(names, size)`` starts again at the first row each time.

    ``ranged``: it also takes (first, last) after them, and then opens only these rows.
    """

    def __init__(
        self,
        open_blocks: Callable[..., Iterable[Block]],
        columns: ColumnRoles,
        n_rows: int | None,
        n_arms: int | None,
        arm_names: Sequence[Any] | None,
        ranged: bool = False,
        in_memory: bool = False,
        lines: Lines | None = None,
        names: Sequence[str] = (),
        skip: bool = False,
    ) -> None:
        self.in_memory, self.costs, self._lines = in_memory, None, lines
        self._skip = skip
        self.rows_left_out: dict[str, int] = {}  # why, and how many; known after a pass
        self._remarks: list[str] = []
        if skip:
            n_rows, ranged = None, False
        self._open, self._columns, self.n_rows, self._ranged = open_blocks, columns, n_rows, ranged
        self._range: tuple[int, int] | None = None  # the rows of a part
        self.has_probabilities = columns.probabilities is not None or columns.constant is not None
        self.constant_probability = columns.constant is not None
        self.offers_vary = columns.available is not None
        self._categories: dict[str, list[Any]] = {}
        self.left_out: dict[str, str] = {}  # columns that are no contexts, and why
        self.unusable: dict[str, str] = {}  # those that are no numbers, and what they are
        self._mixed: dict[str, StringColumn] = {}
        first = self._first_rows([name for name, times in Counter(names).items() if times == 1])
        self._read_as = self._words_read(first)
        self.copies = self._copies(first)  # what to say of rows that equal others in every column of the table
        if columns.guessed:
            self.unusable = dict.fromkeys(columns.repeated, "the name of two columns")
            self._leave_out_dates(first)
            self._leave_out_leaks(first)
        self._explore(n_arms, list(arm_names) if arm_names is not None else None, first)
        labels = self.arm_names if self.arm_names is not None else list(range(self.n_arms))
        rows = self._rows(first, 0, False, labels) if first else None
        self.first_rows = _usable(rows, Counter()) if rows is not None and skip else rows  # without contexts

    # ------------------------------------------------------------------ what must be known before the first row

    def _first_rows(self, names: list[str]) -> Block:
        """The first rows with every column; the types, the outcomes and the copies among them are found in these."""
        blocks: list[Block] = []
        for block in self._open(names, MAX_SAMPLE):
            blocks.append(block)
            if sum(len(each[names[0]]) for each in blocks) >= MAX_SAMPLE:
                break
        if not blocks or not names:
            return {}
        return {name: _joined([block[name] for block in blocks])[:MAX_SAMPLE] for name in names}

    def _words_read(self, first: Block) -> dict[str, str]:
        """For the columns of rewards and probabilities: the numbers that their words stand for (yes = 1)."""
        c = self._columns
        names = [c.rewards, *filter(None, [c.probabilities])]
        return {name: words for name in names if name in first and (words := words_as_outcomes(first[name][:1000]))}

    def _copies(self, first: Block) -> str:
        c = self._columns
        if not first:
            return ""
        p, _ = self._probabilities(first, len(first[c.arms]))
        others = [values for name, values in first.items() if name not in (c.arms, c.rewards, c.probabilities)]
        return copies([first[c.arms], first[c.rewards]], others, p)

    def _leave_out_dates(self, first: Block) -> None:
        """Take unnamed columns out of the contexts that are neither numbers nor words, such as times."""
        kinds = {name: first[name].dtype.kind for name in self._columns.contexts if name in first}
        for name, kind in kinds.items():
            if kind in "Mm":
                self._without(name, "times" if kind == "M" else "lengths of time")

    def _without(self, name: str, what: str) -> None:
        """Take an unnamed column out of the contexts."""
        self.unusable[name] = what
        rest = tuple(other for other in self._columns.contexts if other != name)
        self._columns = replace(self._columns, contexts=rest)

    def _leave_out_leaks(self, first: Block) -> None:
        """Take unnamed columns out of the contexts that tell the outcome or the arm."""
        c = self._columns
        block = {name: values[:_SAMPLE] for name, values in first.items()}
        if not block or len(block[c.arms]) < _MIN_ROWS:
            return self._warn(())
        rewards = np.nan_to_num(outcomes("reward", c.rewards, block[c.rewards])[0])
        arms = np.unique(block[c.arms].astype(str), return_inverse=True)[1]
        candidates = {name: block[name] for name in c.contexts if not _is_lists(block[name])}
        odds = [name for name, values in candidates.items() if are_probabilities(name, values, arms)]
        for name in odds:
            self._without(name, "probabilities of the arms")
            del candidates[name]
        self.left_out = outcomes_among(candidates, arms, rewards, self._probabilities(block, len(arms))[0])
        kept = tuple(name for name in self._columns.contexts if name not in self.left_out)
        self._columns = replace(self._columns, contexts=kept)
        return self._warn(odds)

    def _warn(self, odds: Iterable[str]) -> None:
        """Warn which columns are not used as contexts, and why."""
        c, found = self._columns, []
        if self.left_out:
            said = "; ".join(f"{name} {why}" for name, why in self.left_out.items())
            found.append(f"left out of the contexts, because they look like outcomes: {said} (name the contexts to "
                         "decide)")  # fmt: skip
        if c.probabilities is None and c.constant is None and not c.declined:
            found += [f"{name} looks like the probabilities of the arms and is not used: name it "
                      f"(probabilities={name!r}, --probability {name})" for name in odds]  # fmt: skip
        found += [f"two columns are called {name}: neither is a context, rename one of them" for name in c.repeated]
        self._remarks = found
        for text in found:
            warnings.warn(WeakLogWarning(text), stacklevel=2)

    @property
    def remarks(self) -> list[str]:
        """Return remarks on how the table was read."""
        left = sum(self.rows_left_out.values())
        verb = "row was" if left == 1 else "rows were"
        rows = [f"{left:,} {verb} left out ({', '.join(self.rows_left_out)}): the answer is about the others, which "
                "may differ from them"] if left else []  # fmt: skip
        return [*self._remarks, *rows]

    @property
    def context_names(self) -> list[str]:
        """The names of the columns of a context, strings spelt out."""
        return list(self._names.contexts)

    @property
    def columns_used(self) -> str:
        """Describe the roles of columns in one line."""
        c = self._columns
        read = {name: f"{name} ({words})" for name, words in self._read_as.items()}
        p = f"{c.constant:.4g} in every row" if c.constant is not None else "unknown"
        p = read.get(c.probabilities, c.probabilities) if c.probabilities is not None else p
        text = f"arm: {c.arms}; reward: {read.get(c.rewards, c.rewards)}; probability: {p}"
        mixed = {name: f"{name} ({column})" for name, column in self._mixed.items()}
        text += f"; contexts: {', '.join(mixed.get(name, name) for name in c.contexts) or 'none'}"
        text += f"; left out as outcomes: {', '.join(self.left_out)}" if self.left_out else ""
        unusable = ", ".join(f"{name} ({what})" for name, what in self.unusable.items())
        return text + (f"; left out: {unusable}" if unusable else "")

    def _explore(self, n_arms: int | None, arm_names: list[Any] | None, first: Block) -> None:
        """Find strings to turn into numbers, and how many arms there are; reads only the columns this needs."""
        c = self._columns
        words = [name for name in c.contexts if name in first and _is_words(first[name])]
        listed = [name for name in c.contexts if name in first and _is_lists(first[name])]
        if listed and len(c.contexts) > 1:
            raise ValueError(f"column {listed[0]!r} holds lists: then it must be the only column of contexts")
        self._per_arm = bool(listed) and first[listed[0]].dtype == object and _depth(first[listed[0]][0]) == 2
        named = c.arms in first and _is_words(first[c.arms])
        look = list(dict.fromkeys(words + ([c.arms] if arm_names is None and (named or n_arms is None) else [])
                                  + (listed if self._per_arm and n_arms is None else [])))  # fmt: skip
        seen: set[Any] = set()
        strings = {name: StringColumn() for name in words}
        most = 0
        for block in self._open(look, 1 << 18) if look else ():
            for name in list(words):
                strings[name].add(block[name])
                if not strings[name].too_many:
                    continue
                if not c.guessed:
                    raise ValueError(
                        f"column {name!r} has more than {MAX_STRINGS:,} different strings: leave it out, or encode it"
                    )
                words.remove(name)
                self._without(name, f"more than {MAX_STRINGS:,} different strings")
            if c.arms in block and named:
                seen.update(x for x in block[c.arms] if _there(x))
            elif c.arms in block and len(block[c.arms]):
                seen |= _distinct(block[c.arms])
            if self._per_arm and n_arms is None:
                most = max([most, *(len(x) for x in block[listed[0]] if x is not None)])
        for name in words:
            strings[name].check(name)
        self._mixed = {name: strings[name] for name in words if strings[name].is_numbers}
        self._categories = {name: strings[name].categories for name in words if name not in self._mixed}
        if arm_names is None and named:
            arm_names = sorted(seen, key=str)
        elif arm_names is None and n_arms is None and not self._per_arm:
            arm_names = labels_of(seen)
            most = len(seen)
        self.arm_names = arm_names
        self._ids = n_arms is None and are_ids(arm_names)  # whether numbers are ids: otherwise they are places
        if self.arm_names is not None and n_arms is not None and n_arms != len(self.arm_names):
            raise ValueError(f"n_arms is {n_arms}, but the arms are {self.arm_names!r:.200}")
        self.n_arms = count("n_arms", n_arms or (len(self.arm_names) if self.arm_names is not None else max(most, 1)))

    def _labels(self, name: str) -> list[str]:
        """The features that a column becomes."""
        if name in self._mixed:
            return [name, *(f"{name}={word}" for word in self._mixed[name].categories)]
        return [f"{name}={word}" for word in self._categories.get(name, [])] or [name]

    @property
    def _names(self) -> ColumnNames:
        c = self._columns
        contexts = tuple(label for name in c.contexts for label in self._labels(name))
        lines = None if self._skip else self._lines  # rows that are left out are not counted
        return ColumnNames(c.arms, c.rewards, c.probabilities, contexts, lines)

    # ------------------------------------------------------------------ rows

    def batches(self, size: int, contexts: bool, extra: tuple[str, ...] = ()) -> Iterator[LogBlock]:
        """Blocks of rows, with the ``extra`` columns by name."""
        labels = self.arm_names if self.arm_names is not None else list(range(self.n_arms))
        start = 0 if self._range is None else self._range[0]
        wanted = list(dict.fromkeys([*self._columns.needed(labels, contexts), *extra]))
        left_out: Counter[str] = Counter()
        for block in self._open(wanted, size, *(self._range or ())):
            rows = self._rows(block, start, contexts, labels)
            rows = replace(rows, extra={name: block[name] for name in extra}) if extra else rows
            if self._skip:
                rows = _usable(rows, left_out)
            start += len(rows)
            yield rows
        self.rows_left_out = {f"without a usable {field}": n for field, n in left_out.most_common()}
        ragged = sum(self._lines.left_out.values()) if self._lines is not None else 0
        self.rows_left_out |= {"with more or fewer cells than the header": ragged} if ragged else {}

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
        if name in self._mixed:
            return self._mixed[name].encoded(values)
        if name in self._categories:
            return [np.asarray(values == category, dtype=np.float64) for category in self._categories[name]]
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"column {name!r} holds {values.dtype}, expected numbers or strings: leave it out of contexts"
            )
        return [values]


class StringColumn:
    """A column of strings: categories, or numbers with a few words among them such as "unknown"."""

    def __init__(self) -> None:
        self._words: set[Any] = set()
        self._numerals: set[Any] = set()  # up to MAX_STRINGS + 1
        self._n = self._n_words = 0
        self._sum = 0.0

    def add(self, values: np.ndarray) -> None:
        """Take in a block of the column."""
        for value, times in Counter(value for value in values.tolist() if _there(value)).items():
            x = number(value)
            self._n += times
            if x is None or x != x:
                self._words.add(value)
                self._n_words += times
            else:
                self._sum += x * times
                if len(self._numerals) <= MAX_STRINGS:
                    self._numerals.add(value)

    @property
    def is_numbers(self) -> bool:
        """Whether it is a column of numbers: most cells are, and not all of them are codes written in digits."""
        if len(self._numerals) <= max(_FEW_NUMBERS, len(self._words)) or 2 * self._n_words > self._n:
            return False
        texts = [cell.strip() for cell in self._numerals if isinstance(cell, str)]
        padded_codes = any(len(text) > 1 and text[0] == "0" and text.isdigit() for text in texts)
        only_digits = not self._words and len(texts) == len(self._numerals) and all(map(str.isdigit, texts))
        return not (padded_codes or only_digits)

    @property
    def categories(self) -> list[Any]:
        """The cells that become indicators, in order."""
        return sorted(self._words if self.is_numbers else self._words | self._numerals, key=str)

    @property
    def too_many(self) -> bool:
        """Whether it has more categories than a context can have."""
        found = len(self._words) + (0 if self.is_numbers else len(self._numerals))
        return found > MAX_STRINGS

    def check(self, name: str) -> None:
        """Refuse a column of numbers with too many words among them."""
        words = list(self._words)
        if len(words) > _FEW_NUMBERS and has_decimal_commas(words):
            raise LogError([f"contexts has {shown(words)} in column {name!r}: {DECIMAL_REMEDY}"])

    def encoded(self, values: np.ndarray) -> list[np.ndarray]:
        """The numbers, the mean where a word stands, and an indicator of each word."""
        mean = self._sum / max(self._n - self._n_words, 1)
        read = {value: number(value) for value in set(values.tolist())}
        numbers = np.array([mean if value in self._words else read[value] for value in values.tolist()], np.float64)
        return [numbers, *(np.asarray(values == word, dtype=np.float64) for word in self.categories)]

    def __str__(self) -> str:
        if not self._words:
            return "numbers"
        words = ", ".join(map(repr, self.categories[:3])) + (", ..." if len(self._words) > 3 else "")
        return f"numbers, and {words} in {self._n_words / self._n:.1%} of the rows"


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _usable(rows: LogBlock, left_out: Counter[str]) -> LogBlock:
    """The rows without a problem; the others are counted by the field that is to blame."""
    wrong = {i: field for i, field, _ in reversed(row_problems(rows))}  # of several problems the first
    if not wrong or any(WHOLE_COLUMN in texts for texts in (rows.unread or {}).values()):
        return rows
    left_out.update(wrong.values())
    kept = np.setdiff1d(np.arange(len(rows)), list(wrong))
    return replace(rows.take(kept), start=rows.start)


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
