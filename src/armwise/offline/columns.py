"""Logs from tables: pandas, Polars and Arrow in memory; Parquet and CSV streamed; obp's dictionaries."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armwise.agent import Floats, count
from armwise.offline import dsjson, service
from armwise.offline.log import Log
from armwise.offline.rows import Ints, LogError, Rows, labels_of, padded, placed

Block = dict[str, np.ndarray]  # one array a column; a column of lists is an array of objects, or 2-d
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

    @classmethod
    def read(
        cls,
        names: Sequence[str],
        contexts: Sequence[str] | str | None = None,
        arms: str = "arm",
        rewards: str = "reward",
        probabilities: str | None = "probability",
        timestamps: str | None = None,
        arm_features: Sequence[str] | str = (),
        available: str | None = None,
    ) -> Columns:
        """The mapping that a user gave, checked against the columns that exist."""
        if probabilities == "probability" and probabilities not in names:
            probabilities = None  # the default name, and no such column: the log does not say
        patterns = (arm_features,) if isinstance(arm_features, str) else tuple(arm_features)
        for pattern in (*patterns, *([available] if available else [])):
            if "{arm}" not in pattern:
                raise ValueError(
                    f"{pattern!r} must hold '{{arm}}', where the name of each arm goes, as in 'price_{{arm}}'"
                )
        if contexts is None:
            used = {arms, rewards, probabilities, timestamps}
            starts = tuple(p.partition("{arm}")[0] for p in (*patterns, *([available] if available else [])))
            contexts = [n for n in names if n not in used and not (starts and n.startswith(starts))]
        wanted = (contexts,) if isinstance(contexts, str) else tuple(contexts)
        for name in (*wanted, arms, rewards, *filter(None, [probabilities, timestamps])):
            check_column(name, names)
        return cls(wanted, arms, rewards, probabilities, timestamps, patterns, available)

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
    """Rows from blocks of columns. ``open_blocks(names, size)`` starts again at the first row each time."""

    def __init__(
        self,
        open_blocks: Callable[[list[str], int], Iterable[Block]],
        columns: Columns,
        n_rows: int | None,
        n_arms: int | None,
        arm_names: Sequence[Any] | None,
    ) -> None:
        self._open, self._columns, self.n_rows = open_blocks, columns, n_rows
        self.has_probabilities = columns.probabilities is not None
        self._categories: dict[str, list[Any]] = {}
        self._explore(n_arms, list(arm_names) if arm_names is not None else None)

    # ------------------------------------------------------------------ what must be known before the first row

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
            for name in words:
                seen[name].update(x for x in block[name] if _there(x))
                if len(seen[name]) > _MANY:
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
            arm_names = labels_of(list(seen[c.arms]))
            most = max(seen[c.arms], default=0) + 1
        self.arm_names = arm_names
        if self.arm_names is not None and n_arms is not None and n_arms != len(self.arm_names):
            raise ValueError(f"n_arms is {n_arms}, but the arms are {self.arm_names!r:.200}")
        self.n_arms = count("n_arms", n_arms or (len(self.arm_names) if self.arm_names is not None else max(most, 1)))

    # ------------------------------------------------------------------ rows

    def batches(self, size: int, contexts: bool) -> Iterator[Rows]:
        """Blocks of rows."""
        labels = self.arm_names if self.arm_names is not None else list(range(self.n_arms))
        start = 0
        for block in self._open(self._columns.needed(labels, contexts), size):
            rows = self._rows(block, start, contexts, labels)
            start += len(rows)
            yield rows

    def _rows(self, block: Block, start: int, contexts: bool, labels: list[Any]) -> Rows:
        c = self._columns
        arms = self._arms(block[c.arms], start)
        n = len(arms)
        matrix, available = self._contexts(block, n) if contexts and c.contexts else (None, None)
        features = None
        if contexts and c.arm_features:
            features = np.stack([_matrix([block[p.format(arm=a)] for a in labels]) for p in c.arm_features], axis=2)
        if c.available:
            available = np.column_stack([block[c.available.format(arm=a)].astype(bool) for a in labels])
        return Rows(
            arms=arms, rewards=_number(c.rewards, block[c.rewards], start), n_arms=self.n_arms, contexts=matrix,
            probabilities=_number(c.probabilities, block[c.probabilities], start) if c.probabilities else None,
            arm_features=features, available=available, start=start,
            timestamps=block[c.timestamps] if c.timestamps else None,
        )  # fmt: skip

    def _arms(self, values: np.ndarray, start: int) -> Ints:
        if self.arm_names is None:
            if values.dtype.kind in "iu":
                return values.astype(np.int64, copy=False)
            numbers = _number(self._columns.arms, values, start)
            with np.errstate(invalid="ignore"):
                return np.where(numbers == np.floor(numbers), numbers, -1.0).astype(np.int64)
        arms = placed(values, self.arm_names)
        if (arms < 0).any():
            raise LogError([f"row {start + i}: arm is {values[i]!r}, expected one of {self.arm_names!r:.200}"
                            for i in np.flatnonzero(arms < 0)])  # fmt: skip
        return arms

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
    """The different whole numbers in a column; what is missing or no number is for the check of the rows."""
    if values.dtype.kind not in "iu":
        numbers = np.nan_to_num(values.astype(np.float64), nan=-1.0, posinf=-1.0, neginf=-1.0)
        values = numbers.astype(np.int64)
    values = values[values >= 0]
    if values.size and values.max() < 1 << 20:
        return set(np.flatnonzero(np.bincount(values)).tolist())
    return set(np.unique(values).tolist())


def _matrix(columns: list[np.ndarray]) -> Floats:
    """Columns side by side; each stays contiguous, which is how they come from Arrow."""
    if not columns:
        return np.empty((0, 0))
    by_column = np.empty((len(columns), len(columns[0])))
    for i, column in enumerate(columns):
        by_column[i] = column
    return by_column.T


def _number(name: str, values: np.ndarray, start: int) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        wrong = [
            f"row {start + i}: {name} is {v!r}, expected a number" for i, v in enumerate(values) if not _numeric(v)
        ]
        raise LogError(wrong or [f"column {name!r} must hold numbers, got {values.dtype}"]) from None


def _numeric(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True


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


# ---------------------------------------------------------------------- readers


def _log(source: TableSource) -> Log:
    return Log.from_source(source, source.arm_names)


def from_frame(frame: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any) -> Log:
    """A log in memory from anything with named columns that turn into arrays (pandas, Polars)."""
    names = list(frame.columns)
    columns = Columns.read(names, **mapping)

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for name in wanted:
            check_column(name, names)
        yield {name: _array(frame[name]) for name in wanted}

    return _in_memory(_log(TableSource(blocks, columns, len(frame), n_arms, arm_names)))


def _in_memory(log: Log) -> Log:
    log.validate()
    _ = log.rows
    return log


def _array(column: Any) -> np.ndarray:
    array = np.asarray(column.to_numpy())
    # pandas' own types for strings, categories and missing values all turn into objects
    return array if array.dtype.kind in "biufMO" else array.astype(object)


def from_arrow(table: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any) -> Log:
    """A log in memory from an Arrow table."""
    columns = Columns.read(table.column_names, **mapping)

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for name in wanted:
            check_column(name, table.column_names)
        for batch in table.select(wanted).to_batches(max_chunksize=size):
            yield _block(batch)

    return _in_memory(_log(TableSource(blocks, columns, table.num_rows, n_arms, arm_names)))


def from_parquet(
    path: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any
) -> Log:
    """A streamed log from one Parquet file, several, a pattern, or a folder; the service's own are known as such."""
    import pyarrow.parquet as pq

    paths = _paths(path, "*.parquet")
    opened = [pq.ParquetFile(p) for p in paths]
    names = opened[0].schema_arrow.names
    if service.is_log(names) and service.as_usual(mapping, n_arms, arm_names):
        return dsjson.from_parquet(paths)
    columns = Columns.read(names, **mapping)
    n_rows = sum(f.metadata.num_rows for f in opened)
    for file in opened:
        file.close()

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for name in wanted:
            check_column(name, names)
        for one in paths:
            with pq.ParquetFile(one, pre_buffer=False) as file:
                for batch in file.iter_batches(batch_size=size, columns=wanted):
                    yield _block(batch)

    return _log(TableSource(lambda names, size: ahead(blocks(names, size)), columns, n_rows, n_arms, arm_names))


def from_csv(path: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any) -> Log:
    """A streamed log from one CSV file with a header line, or several."""
    import pyarrow as pa
    from pyarrow import csv

    paths = _paths(path, "*.csv")
    with csv.open_csv(paths[0]) as reader:
        names = reader.schema.names
    columns = Columns.read(names, **mapping)

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for name in wanted:
            check_column(name, names)
        options = csv.ConvertOptions(include_columns=wanted, strings_can_be_null=True)
        for one in paths:
            try:
                with csv.open_csv(one, convert_options=options) as reader:
                    for batch in reader:
                        for start in range(0, batch.num_rows, size):
                            yield _block(batch.slice(start, size))
            except pa.ArrowInvalid as error:
                raise LogError([f"{one}: {error}"]) from None

    return _log(TableSource(lambda names, size: ahead(blocks(names, size)), columns, None, n_arms, arm_names))


def ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the next is read while the last is worked on.

    >>> list(ahead(iter([{}, {}])))
    [{}, {}]
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _paths(path: Any, pattern: str) -> list[str]:
    if isinstance(path, (list, tuple)):
        return [one for each in path for one in _paths(each, pattern)]
    text = os.fspath(path)
    if Path(text).is_dir():
        found = sorted(str(p) for p in Path(text).glob(pattern))
    else:
        found = [text] if Path(text).exists() else sorted(glob.glob(text))
    if not found:
        raise FileNotFoundError(f"there is no file {text!r}" + (f" with {pattern}" if Path(text).is_dir() else ""))
    return found


def _block(batch: Any) -> Block:
    return {name: _from_arrow(batch.column(i)) for i, name in enumerate(batch.schema.names)}


def _from_arrow(column: Any) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if pa.types.is_fixed_size_list(kind) and not pa.types.is_nested(kind.value_type) and column.null_count == 0:
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, np.float64).reshape(len(column), kind.list_size)
    if pa.types.is_nested(kind):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    return np.asarray(column.to_numpy(zero_copy_only=False))


def from_obp(feedback: dict[str, Any]) -> Log:
    """A log in memory from the Open Bandit Pipeline's ``bandit_feedback``.

    With several positions take the target's distribution at each row's own:
    ``action_dist[np.arange(n), :, feedback["position"]]``.
    """
    for key in ("action", "reward"):
        if key not in feedback:
            raise ValueError(f"bandit_feedback has no {key!r}: it has {', '.join(map(str, feedback))}")
    return Log(
        contexts=feedback.get("context"), arms=feedback["action"], rewards=feedback["reward"],
        probabilities=feedback.get("pscore"), n_arms=feedback.get("n_actions"),
        arm_features=feedback.get("action_context"),
    )  # fmt: skip
