"""Logs: rounds that already happened, in memory or streamed from files that do not fit in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats, fraction
from armwise.offline.logs.checks.duplicates import MAX_SAMPLE, copies
from armwise.offline.logs.cohorts import Cohort
from armwise.offline.logs.rows import Ints, LogBlock, LogError, as_rows, floats, joined, problems, row_numbers

if TYPE_CHECKING:
    from armwise.offline.logs.checks.drift import DriftCheck

BATCH = 65_536  # rows a batch: large enough to vectorise, small enough to stay in the cache
_MAX_PROBLEMS = 10_000  # maximum of problems kept by an error, to bound memory


class BlockSource(Protocol):
    """The source of a streamed log's rows; each call of ``batches`` starts at the first row again."""

    n_arms: int
    n_rows: int | None
    has_probabilities: bool

    def batches(self, size: int, contexts: bool) -> Iterator[LogBlock]:
        """Blocks of at most ``size`` rows; without ``contexts`` only the other columns are read."""


@dataclass(frozen=True)
class Described:
    """The columns of a table by name, where the table itself is not at hand."""

    columns_used: str | None
    context_names: list[str] | None
    remarks: list[str]
    rows_left_out: dict[str, int]
    logged_by: str | None
    constant_probability: bool


class Log:
    """Rounds that already happened: context, arm, probability, reward.

    ``contexts`` is (n, d) where a round has one vector, (n, K, d) or a list of (K_t, d) arrays where each arm
    has its own, (n,) for keys, or None. ``arm_features`` ((K, d) or (n, K, d)) stands beside a shared context.
    ``arms`` are names, or whole numbers: with ``n_arms`` (or anything that has one entry per arm) places from 0,
    without it ids, which are categories as names are (``arm_names``). ``available`` (n, K) says which arms a round
    offered, if not all. ``probabilities`` are those with which the logged arms were drawn; ``support`` (n, K) says
    which arms had any, where that is known, so that an evaluation can tell how much of a policy the log never tries.
    ``costs`` is what each row's arm cost (see ``tradeoff``), (n,), or (n, m) for m resources. Readers:
    ``from_pandas``, ``from_polars``, ``from_arrow``, ``from_parquet``, ``from_csv``, ``from_obp``, ``from_dsjson``;
    Parquet and CSV files are streamed, and read into memory only if an attribute such as ``rewards`` is asked for.

    >>> log = Log(contexts=[[0.1], [0.7]], arms=[0, 1], rewards=[1.0, 0.0], probabilities=[0.5, 0.5], n_arms=2)
    >>> len(log), log.n_arms
    (2, 2)
    """

    estimated: str | None = None  # the model that estimated the probabilities
    left_aside = False  # whether estimated probabilities stand in place of the log's own
    _trimmed: Mapping[str, int] = MappingProxyType({})  # rows that ``trimmed`` left out, by reason
    _copies: str | None = None  # what to say of duplicate rows, once it was asked for
    costs: Floats | None = None  # the cost of each row's arm, where the log has it; (n, m) in several resources
    _origin: tuple[Any, Any] | None = None  # the table that rows in memory were taken from, and which of its rows

    def __init__(
        self,
        contexts: Any = None,
        arms: Any = None,
        rewards: Any = None,
        probabilities: Any = None,
        *,
        n_arms: int | None = None,
        arm_features: Any = None,
        available: Any = None,
        support: Any = None,
        timestamps: Any = None,
        arm_names: Sequence[Any] | None = None,
        costs: Any = None,
    ) -> None:
        if arms is None or rewards is None:
            raise LogError([f"{'arms' if arms is None else 'rewards'} must be given, one per row"])
        rows, names = as_rows(contexts, arms, rewards, probabilities, n_arms, arm_features, available, timestamps,
                              support, arm_names)  # fmt: skip
        found = problems(rows)
        if found:
            raise LogError(found)
        self._rows: LogBlock | None = rows
        self._source: BlockSource | None = None
        self._described: Any = None  # what knows the names of columns, where a table did
        self.n_arms = rows.n_arms
        self.arm_names: list[Any] | None = names
        self.costs = None if costs is None else _costs(costs, len(rows))

    @classmethod
    def from_source(cls, source: BlockSource, arm_names: Sequence[Any] | None = None) -> Self:
        """A streamed log over anything that yields blocks of rows (see ``BlockSource``).

        >>> rows = Log(arms=[0, 1], rewards=[0, 1]).rows
        >>> class Twice:
        ...     n_arms, n_rows, has_probabilities = 2, None, False
        ...     def batches(self, size, contexts):
        ...         yield from (rows, rows)
        >>> len(Log.from_source(Twice()))
        4
        """
        log = cls.__new__(cls)
        log._rows, log._source, log.n_arms = None, source, source.n_arms
        log._described = source
        log.arm_names = list(arm_names) if arm_names is not None else None
        return log

    # ------------------------------------------------------------------ readers

    @classmethod
    def _opened(cls, source: Any) -> Self:
        """The log over a source that a reader opened; rows that are in memory already are checked at once."""
        log = cls.from_source(source, source.arm_names)
        log.costs = source.costs
        if source.in_memory:
            log.validate()
            _ = log.rows
        return log

    @classmethod
    def read(cls, source: Any, **mapping: Any) -> Self:
        """Read a log from any supported source; ``mapping`` as in ``from_parquet``.

        ``source`` is a path (a file, several, a folder, a pattern such as ``logs/*.parquet``, a URL: s3://, gs://), a
        pandas or Polars frame (lazy, too), an Arrow table, dataset or reader, a DuckDB relation or obp's dictionary.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"arm": ["a", "b"], "reward": [1, 0]})
        >>> Log.read(frame, probabilities=1 / 2).probabilities
        array([0.5, 0.5])
        """
        from armwise.offline.logs import sources

        if isinstance(source, cls):
            return source
        return cls.from_obp(source) if isinstance(source, dict) else cls._opened(sources.opened(source, **mapping))

    @classmethod
    def from_pandas(cls, frame: Any, **mapping: Any) -> Self:
        """From a pandas frame; ``mapping`` names the columns (see ``from_parquet``).

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 50], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]})
        >>> log = Log.from_pandas(frame, contexts=["age"])
        >>> log.arms.tolist(), log.arm_names
        ([0, 1], ['a', 'b'])
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_frame(frame, **mapping))

    @classmethod
    def from_polars(cls, frame: Any, **mapping: Any) -> Self:
        """From a Polars frame, or streamed from a lazy one; ``mapping`` as in ``from_parquet``.

        >>> import polars as pl
        >>> frame = pl.DataFrame({"arm": [0, 1], "reward": [1, 0], "p": [0.5, 0.5]})
        >>> Log.from_polars(frame, contexts=[], probabilities="p").probabilities.tolist()
        [0.5, 0.5]
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_polars(frame, **mapping))

    @classmethod
    def from_duckdb(cls, relation: Any, **mapping: Any) -> Self:
        """Stream a DuckDB relation; ``mapping`` as in ``from_parquet``.

        >>> import duckdb
        >>> Log.from_duckdb(duckdb.sql("select 1 as arm, 0.5 as reward"), n_arms=2).rewards
        array([0.5])
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_duckdb(relation, **mapping))

    @classmethod
    def from_arrow(cls, table: Any, **mapping: Any) -> Self:
        """From an Arrow table or reader, or streamed from a dataset; ``mapping`` as in ``from_parquet``.

        >>> import pyarrow as pa
        >>> Log.from_arrow(pa.table({"arm": [0, 1], "reward": [1, 0]}), contexts=[]).rewards.tolist()
        [1.0, 0.0]
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_arrow(table, **mapping))

    @classmethod
    def from_parquet(cls, path: Any, **mapping: Any) -> Self:
        """Stream a Parquet file, several, a pattern, a folder of them (with Hive keys, too), or a URL (s3://, gs://).

        ``contexts``: names of the columns with the context (numbers, or strings that become indicators; one column
        of lists will do, of lists of lists for features of each arm); by default every column that is not mapped
        otherwise. ``arms="arm"``, ``rewards="reward"``, ``probabilities="probability"`` (None or absent: unknown;
        a number such as 1/3: the same in every row, as in a randomised trial),
        ``timestamps=None``, ``arm_features=["price_{arm}"]`` (one column for each arm), ``n_arms``, ``arm_names``.
        ``skip=True`` leaves out rows without a usable arm, reward, probability or context, which are errors otherwise;
        ``rows_left_out`` counts them.

        >>> import tempfile, os, pandas as pd
        >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
        >>> pd.DataFrame({"x": [0.1, 0.2], "item": [0, 1], "click": [1, 0], "p": [0.5, 0.5]}).to_parquet(path)
        >>> len(Log.from_parquet(path, arms="item", rewards="click", probabilities="p"))
        2
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_parquet(path, **mapping))

    @classmethod
    def from_csv(cls, path: Any, **mapping: Any) -> Self:
        """Stream a CSV file with a header line; ``mapping`` as in ``from_parquet``, and ``delimiter`` (found if None).

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
        >>> with open(path, "w") as file: _ = file.write("x,arm,reward\\n0.5,0,1\\n0.7,1,0\\n")
        >>> Log.from_csv(path).contexts.tolist()
        [[0.5], [0.7]]
        """
        from armwise.offline.logs import sources

        return cls._opened(sources.from_csv(path, **mapping))

    @classmethod
    def from_obp(cls, feedback: dict[str, Any]) -> Self:
        """From a ``bandit_feedback`` dictionary of the Open Bandit Pipeline.

        With several positions, give ``evaluate`` the target's distribution at each row's own position:
        ``action_dist[np.arange(n), :, feedback["position"]]``.

        >>> import numpy as np
        >>> log = Log.from_obp({"n_actions": 2, "context": np.eye(2), "action": [0, 1], "reward": [1, 0],
        ...                     "pscore": [0.5, 0.5], "action_context": np.eye(2), "position": None})
        >>> log.probabilities.tolist()
        [0.5, 0.5]
        """
        for key in ("action", "reward"):
            if key not in feedback:
                raise ValueError(f"bandit_feedback has no {key!r}: it has {', '.join(map(str, feedback))}")
        return cls(
            contexts=feedback.get("context"), arms=feedback["action"], rewards=feedback["reward"],
            probabilities=feedback.get("pscore"), n_arms=feedback.get("n_actions"),
            arm_features=feedback.get("action_context"),
        )  # fmt: skip

    @classmethod
    def from_dsjson(cls, path: Any, **options: Any) -> Self:
        """From Vowpal Wabbit's decision logs (and our service's), one JSON object a line.

        ``features=False`` leaves the features out (there may be ``max_features=10_000``), ``skip=True`` passes over
        lines that are not decisions with an outcome, which are errors otherwise. Of our service's logs decisions are
        taken that are at least ``horizon`` seconds old, each with what it earned within them.

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "log.dsjson")
        >>> Log(contexts=[[0.5]], arms=[1], rewards=[1.0], probabilities=[0.8], n_arms=2).to_dsjson(path)
        >>> log = Log.from_dsjson(path)
        >>> log.arms, log.rewards, log.probabilities
        (array([1]), array([1.]), array([0.8]))
        """
        from armwise.offline.logs.formats import dsjson

        return cls._opened(dsjson.Events(path, **options))

    def to_dsjson(self, path: Any) -> None:
        """Write Vowpal Wabbit's format; what it needs to keep a label comes first in each line.

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "log.dsjson")
        >>> Log(arms=[1], rewards=[1.0], probabilities=[0.8], n_arms=2).to_dsjson(path)
        >>> with open(path) as file: file.readline()[:20]
        '{"_label_cost": -1.0'
        """
        from armwise.offline.logs.formats import dsjson

        dsjson.write(self, path)

    # ------------------------------------------------------------------ rows

    def decisions(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries with context, arms, arm, probability and reward, as ``Decider.warm_start`` takes
        them: with the names of the log, where it has some, otherwise x0, x1, ... and the arms' numbers.

        >>> log = Log(contexts=[[0.5]], arms=[1], rewards=[1.0], probabilities=[0.8], n_arms=2)
        >>> next(log.decisions())
        {'context': {'x0': 0.5}, 'arms': ['0', '1'], 'arm': '1', 'probability': 0.8, 'reward': 1.0}

        What a decision cost is there too, as ``cost``, where the log says so.
        """
        named = getattr(self._source, "decisions", None)
        if named is not None:
            yield from named()
            return
        names = [str(name) for name in (range(self.n_arms) if self.arm_names is None else self.arm_names)]
        for rows in self.batches():
            for i, arm in enumerate(rows.arms.tolist()):
                context = {} if rows.contexts is None else {f"x{j}": x for j, x in enumerate(rows.contexts[i].tolist())}
                offered = names if rows.available is None else [n for n, on in zip(names, rows.available[i]) if on]
                p = None if rows.probabilities is None else float(rows.probabilities[i])
                reward = float(rows.rewards[i])
                cost = {} if self.costs is None else {"cost": self.costs[rows.start + i].tolist()}
                yield {
                    "context": context,
                    "arms": offered,
                    "arm": names[arm],
                    "probability": p,
                    "reward": reward,
                    **cost,
                }

    def batches(self, size: int = BATCH, *, contexts: bool = True, extra: tuple[str, ...] = ()) -> Iterator[LogBlock]:
        """The rows in order, at most ``size`` at a time, each block checked; ``extra`` names further columns to bring.

        >>> log = Log(arms=[0, 1, 1], rewards=[0, 0, 1])
        >>> [len(rows) for rows in log.batches(2)]
        [2, 1]
        """
        if extra and self._origin is not None and self._rows is not None:
            columns = {name: self._column(name) for name in extra}
            for rows in self.batches(size):
                within = slice(rows.start - self._rows.start, rows.start - self._rows.start + len(rows))
                yield replace(rows, extra={name: values[within] for name, values in columns.items()})
            return
        if extra and not hasattr(self._source, "columns_used"):
            raise ValueError(f"this log has no column {extra[0]!r}: give an array with one value per row")
        if self._rows is not None and not extra:
            for start in range(0, len(self._rows), size):
                yield self._rows.take(slice(start, min(start + size, len(self._rows))))
            return
        assert self._source is not None
        for rows in self._source.batches(size, contexts, extra) if extra else self._source.batches(size, contexts):  # type: ignore[call-arg]
            if problems(rows):
                self.validate()  # it tells what is wrong with the other rows, too
            yield rows

    def column(self, name: str) -> Any:
        """A column of the table that the log was read from, one value per row.

        >>> import pandas as pd
        >>> Log.from_pandas(pd.DataFrame({"arm": [0, 1], "reward": [1, 0], "user": ["ann", "bob"]})).column("user")
        array(['ann', 'bob'], dtype=object)
        """
        return np.concatenate([rows.extra[name] for rows in self.batches(extra=(name,)) if rows.extra is not None])

    def _column(self, name: str) -> Any:
        """A column of the table that the rows were taken from."""
        source, which = self._origin  # type: ignore[misc]
        values = np.concatenate([rows.extra[name] for rows in source.batches(BATCH, False, (name,))])
        return values if which is None else values[which]

    def validate(self) -> None:
        """Read every row and raise one ``LogError`` that lists all problems by row.

        >>> Log(arms=[0], rewards=[1.0]).validate()
        """
        if self._source is None:
            return  # checked when it was made
        found: list[str] = []
        total = 0
        for rows in self._source.batches(BATCH, True):
            new = problems(rows)
            total += len(new)
            found += new[: max(0, _MAX_PROBLEMS - len(found))]
        if total:
            raise LogError(found, total)

    @property
    def rows(self) -> LogBlock:
        """All rows in memory."""
        if self._rows is None:
            self._rows = joined(list(self.batches()), self.n_arms)
        return self._rows

    @property
    def columns_used(self) -> str | None:
        """The roles of a table's columns in one line; None for other logs.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 50], "arm": ["a", "b"], "reward": [1, 0], "site": ["x", "y"]})
        >>> Log.from_pandas(frame, contexts=["age"]).columns_used
        'arm: arm; reward: reward; probability: unknown; contexts: age'
        """
        return getattr(self._described, "columns_used", None)

    @property
    def context_names(self) -> list[str] | None:
        """The names of the columns of a context, if it comes from a table."""
        return getattr(self._described, "context_names", None)

    @property
    def remarks(self) -> list[str]:
        """Remarks on how the log was read: columns left out, and why.

        >>> Log(arms=[0], rewards=[1.0]).remarks
        []
        """
        return list(getattr(self._described, "remarks", ()))

    @property
    def copies(self) -> str:
        """The warning of rows that equal others in every column; empty if there are no more than chance explains.

        >>> Log(contexts=[[0.1], [0.2]] * 99, arms=[0, 1] * 99, rewards=[1, 0] * 99, probabilities=0.5).copies[:42]
        '196 of 198 rows are copies of other rows i'
        """
        if self._copies is None:
            self._copies = self._found_copies()
        return self._copies

    def _found_copies(self) -> str:
        if self._source is not None:
            return str(getattr(self._source, "copies", ""))
        rows = next(iter(self.batches(MAX_SAMPLE)), None)
        if rows is None:
            return ""
        others = [values for values in (rows.contexts, rows.timestamps) if values is not None]
        return copies([rows.arms, rows.rewards], others, rows.probabilities)

    @property
    def rows_left_out(self) -> dict[str, int]:
        """The number of rows left out by reason; known once they have been read.

        >>> Log(arms=[0], rewards=[1.0]).rows_left_out
        {}
        """
        return dict(getattr(self._described, "rows_left_out", {})) | dict(self._trimmed)

    @property
    def first_rows(self) -> LogBlock | None:
        """The first rows without their contexts, at most 50,000; None if there are none."""
        rows = getattr(self._source, "first_rows", None)
        return rows if rows is not None else next(iter(self.batches(MAX_SAMPLE, contexts=False)), None)

    @property
    def constant_probability(self) -> bool:
        """Whether one number was given as the probability of every row: a randomised trial."""
        return getattr(self._described, "constant_probability", False)

    @property
    def logged_by(self) -> str | None:
        """The logging policy, if the format names it."""
        return getattr(self._described, "logged_by", None)

    @property
    def streamed(self) -> bool:
        """Whether rows come from a file each time they are asked for."""
        return self._rows is None

    @property
    def has_probabilities(self) -> bool:
        """Whether the log says with which probability each arm was drawn."""
        return (
            self._rows.probabilities is not None
            if self._rows is not None
            else bool(self._source and self._source.has_probabilities)
        )

    @property
    def counted(self) -> bool:
        """Whether the number of rows is known without reading them all (a CSV file does not say it)."""
        return self._rows is not None or (self._source is not None and self._source.n_rows is not None)

    def __len__(self) -> int:
        if self._rows is None and self._source is not None and self._source.n_rows is not None:
            return self._source.n_rows
        return len(self.rows)

    @property
    def contexts(self) -> Any:
        """The contexts as they were given (lists of arms padded to the longest)."""
        return self.rows.contexts

    @property
    def arms(self) -> Ints:
        """The logged arm of each row."""
        return self.rows.arms

    @property
    def rewards(self) -> Floats:
        """The reward of each row's arm."""
        return self.rows.rewards

    @property
    def probabilities(self) -> Floats | None:
        """The probability with which each row's arm was drawn, or None."""
        return self.rows.probabilities

    @property
    def arm_features(self) -> Floats | None:
        """Features of the arms beside a shared context."""
        return self.rows.arm_features

    @property
    def available(self) -> NDArray[np.bool_] | None:
        """Which arms each row offered; None if all."""
        return self.rows.available

    @property
    def support(self) -> NDArray[np.bool_] | None:
        """Which arms each row could have drawn; None if the log does not say."""
        return self.rows.support

    @property
    def timestamps(self) -> Any:
        """When each row happened, if the log says so."""
        return self.rows.timestamps

    def drift(self, parts: int = 20) -> DriftCheck:
        """The rewards and shares of the arms in consecutive parts of the log; ``plot`` draws them.

        >>> Log(arms=[0, 1] * 100, rewards=[1, 0] * 100).drift(parts=2).values.tolist()
        [[1.0, 0.0], [1.0, 0.0]]
        """
        from armwise.offline.logs.checks.drift import drift_of

        return drift_of(self, parts)

    @property
    def offers_vary(self) -> bool:
        """Whether some rows offer fewer arms than there are.

        >>> Log(arms=[0, 1], rewards=[0, 1]).offers_vary
        False
        """
        if self._rows is not None:
            return self._rows.available is not None
        known = getattr(self._source, "offers_vary", None)
        return next(self.batches(contexts=False)).available is not None if known is None else bool(known)

    @property
    def cohort(self) -> Cohort | None:
        """Which decisions of a service's log are here, and within which horizon; None of other logs.

        >>> Log(arms=[0], rewards=[1.0]).cohort is None
        True
        """
        return getattr(self._described, "cohort", None)

    def take(self, which: Any) -> Log:
        """The rows that a slice, a mask or row numbers select, in memory.

        >>> Log(arms=[0, 1, 1], rewards=[0, 0, 1]).take([2]).rewards
        array([1.])
        """
        which = row_numbers(which, len(self))
        rows = self.rows.take(which)
        names = None if rows.names is None else replace(rows.names, lines=None)  # its rows have other numbers
        taken = self._like(replace(rows, start=0, names=names), which)
        taken.costs = None if self.costs is None else self.costs[which]
        return taken

    def trimmed(self, least: float, probabilities: Any = None) -> Log:
        """The rows in whose context every arm had a probability of ``least`` or more (Crump et al. 2009).

        Two arms have p and 1 - p; for more give the (n, K) ``probabilities`` (``PropensityModel.probabilities``).
        Values are then those in such contexts alone, which the plan of an evaluation says.

        >>> log = Log(arms=[0, 1, 0], rewards=[1, 0, 1], probabilities=[0.5, 0.02, 0.99])
        >>> len(log.trimmed(0.05)), log.trimmed(0.05).rows_left_out
        (1, {'with an arm whose probability is below 0.05': 2})
        """
        least, p = fraction("least", least), self.probabilities
        if p is None:
            raise ValueError("the log has no probabilities to trim by: estimate them with PropensityModel first")
        if probabilities is None and self.n_arms > 2:
            raise ValueError(f"the log has {self.n_arms} arms and the probability of one in each row: give the (n, K) "
                             "probabilities of all, or cap the weights (cap=, --cap)")  # fmt: skip
        lowest = np.minimum(p, 1.0 - p) if probabilities is None else np.asarray(probabilities, np.float64).min(axis=1)
        if lowest.shape != p.shape:
            raise ValueError(f"probabilities must have {len(p):,} rows, one per row, got {len(lowest):,}")
        log = self.take(lowest >= least)
        log._trimmed = {f"with an arm whose probability is below {least:g}": int(np.count_nonzero(lowest < least))}
        return log

    def with_costs(self, costs: Any) -> Log:
        """The same log with the cost of each row's arm: see ``tradeoff``.

        >>> Log(arms=[0, 1], rewards=[0, 1]).with_costs([0.5, 2.0]).costs
        array([0.5, 2. ])
        """
        log = self._like(self.rows)
        log.costs = _costs(costs, len(self))
        return log

    def part(self, first: int, last: int) -> Log:
        """The rows from ``first`` up to ``last``, which keep their numbers: what a worker of a cluster is sent.

        >>> Log(arms=[0, 1, 1], rewards=[0, 0, 1]).part(1, 3).rows.start
        1
        """
        if self._rows is not None:
            log = self._like(self._rows.take(slice(first, last)))
            log._origin = None  # and not the table itself, which does not travel
            log.costs = None if self.costs is None else self.costs[first:last]
            log._described = Described(
                self.columns_used,
                self.context_names,
                self.remarks,
                self.rows_left_out,
                self.logged_by,
                self.constant_probability,
            )
            return log
        if not hasattr(self._source, "part"):
            raise ValueError(
                "this log cannot be split into parts for a cluster: write it as Parquet (Log.from_parquet), or as a "
                "dataset, which can"
            )
        return Log.from_source(self._source.part(first, last), self.arm_names)  # type: ignore[union-attr]

    def with_probabilities(self, probabilities: Any, estimated: str | None = None) -> Log:
        """The same log with these probabilities of the logged arms; ``estimated`` names a model that estimated them.

        >>> Log(arms=[0, 1], rewards=[0, 1]).with_probabilities([0.5, 0.5]).probabilities
        array([0.5, 0.5])
        """
        rows = replace(self.rows, probabilities=floats("probabilities", probabilities), support=None)
        found = problems(rows)
        if found:
            raise LogError(found)
        log = self._like(rows)
        log.costs, log.estimated = self.costs, estimated
        log.left_aside = estimated is not None and (self.left_aside or (self.has_probabilities and not self.estimated))
        return log

    def _like(self, rows: LogBlock, which: Any = None) -> Log:
        """These rows (``which`` of this log's own, or all) as a log like this one."""
        log = Log.__new__(Log)
        source, before = self._origin or (self._source, None)
        if hasattr(source, "columns_used"):
            every = np.arange(len(self)) if before is None else before
            log._origin = (source, before if which is None else every[which])
        log._rows, log._source, log.n_arms, log.arm_names = rows, None, self.n_arms, self.arm_names
        log._described, log.estimated, log.left_aside = self._described, self.estimated, self.left_aside
        log._copies = self._copies if which is None else None
        return log

    def __repr__(self) -> str:
        n = self._source.n_rows if self._rows is None and self._source else len(self.rows)
        where = "streamed" if self.streamed else "in memory"
        return f"<Log of {'?' if n is None else format(n, ',')} rows, {self.n_arms} arms, {where}>"


def _costs(costs: Any, n: int) -> Floats:
    values = floats("costs", costs)
    if values.ndim not in (1, 2) or len(values) != n or 0 in values.shape[1:] or not np.isfinite(values).all():
        wanted = "one per row, or a row of one per resource"
        raise LogError([f"costs must be {n} finite numbers, {wanted}, got shape {values.shape}"])
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
