"""How logs are read: one class method for each kind of source, each found in the module that knows it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Self, TypeVar

Read = TypeVar("Read", bound="Readers")


def _reader(kind: type[Read], module: str, name: str) -> Callable[..., Read]:
    """A function of a module that makes logs: those know ``Log``, so it is found by name."""
    found: Callable[..., Read] = getattr(import_module(f"armwise.offline.{module}"), name)
    return found


class Readers:
    """The readers of ``Log``.

    >>> from armwise.offline import Log
    >>> issubclass(Log, Readers)
    True
    """

    @classmethod
    def read(cls, source: Any, **mapping: Any) -> Self:
        """A log from whatever holds it, with the reader that fits; ``mapping`` as in ``from_parquet``.

        ``source`` is a path (a file, several, a folder, a pattern such as ``logs/*.parquet``, a URL: s3://, gs://), a
        pandas or Polars frame (lazy, too), an Arrow table, dataset or reader, a DuckDB relation or obp's dictionary.

        >>> from armwise.offline import Log
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"arm": ["a", "b"], "reward": [1, 0]})
        >>> Log.read(frame, probabilities=1 / 2).probabilities
        array([0.5, 0.5])
        """
        return _reader(cls, "sources", "read")(source, **mapping)

    @classmethod
    def from_pandas(cls, frame: Any, **mapping: Any) -> Self:
        """From a pandas frame; ``mapping`` names the columns (see ``from_parquet``).

        >>> from armwise.offline import Log
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 50], "arm": ["a", "b"], "reward": [1, 0], "probability": [0.5, 0.5]})
        >>> log = Log.from_pandas(frame, contexts=["age"])
        >>> log.arms.tolist(), log.arm_names
        ([0, 1], ['a', 'b'])
        """
        return _reader(cls, "sources", "from_frame")(frame, **mapping)

    @classmethod
    def from_polars(cls, frame: Any, **mapping: Any) -> Self:
        """From a Polars frame, or streamed from a lazy one; ``mapping`` as in ``from_parquet``.

        >>> from armwise.offline import Log
        >>> import polars as pl
        >>> frame = pl.DataFrame({"arm": [0, 1], "reward": [1, 0], "p": [0.5, 0.5]})
        >>> Log.from_polars(frame, contexts=[], probabilities="p").probabilities.tolist()
        [0.5, 0.5]
        """
        return _reader(cls, "sources", "from_polars")(frame, **mapping)

    @classmethod
    def from_duckdb(cls, relation: Any, **mapping: Any) -> Self:
        """Stream a DuckDB relation; ``mapping`` as in ``from_parquet``.

        >>> from armwise.offline import Log
        >>> import duckdb
        >>> Log.from_duckdb(duckdb.sql("select 1 as arm, 0.5 as reward"), n_arms=2).rewards
        array([0.5])
        """
        return _reader(cls, "sources", "from_duckdb")(relation, **mapping)

    @classmethod
    def from_arrow(cls, table: Any, **mapping: Any) -> Self:
        """From an Arrow table or reader, or streamed from a dataset; ``mapping`` as in ``from_parquet``.

        >>> from armwise.offline import Log
        >>> import pyarrow as pa
        >>> Log.from_arrow(pa.table({"arm": [0, 1], "reward": [1, 0]}), contexts=[]).rewards.tolist()
        [1.0, 0.0]
        """
        return _reader(cls, "sources", "from_arrow")(table, **mapping)

    @classmethod
    def from_parquet(cls, path: Any, **mapping: Any) -> Self:
        """Stream a Parquet file, several, a pattern, a folder of them (with Hive keys, too), or a URL (s3://, gs://).

        ``contexts``: names of the columns with the context (numbers, or strings that become indicators; one column
        of lists will do, of lists of lists for features of each arm); by default every column that is not mapped
        otherwise. ``arms="arm"``, ``rewards="reward"``, ``probabilities="probability"`` (None or absent: unknown;
        a number such as 1/3: the same in every row, as in a randomised trial),
        ``timestamps=None``, ``arm_features=["price_{arm}"]`` (one column for each arm), ``n_arms``, ``arm_names``.

        >>> from armwise.offline import Log
        >>> import tempfile, os, pandas as pd
        >>> path = os.path.join(tempfile.mkdtemp(), "log.parquet")
        >>> pd.DataFrame({"x": [0.1, 0.2], "item": [0, 1], "click": [1, 0], "p": [0.5, 0.5]}).to_parquet(path)
        >>> len(Log.from_parquet(path, arms="item", rewards="click", probabilities="p"))
        2
        """
        return _reader(cls, "sources", "from_parquet")(path, **mapping)

    @classmethod
    def from_csv(cls, path: Any, **mapping: Any) -> Self:
        """Stream a CSV file with a header line; ``mapping`` as in ``from_parquet``, and ``delimiter`` (found if None).

        >>> from armwise.offline import Log
        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
        >>> with open(path, "w") as file: _ = file.write("x,arm,reward\\n0.5,0,1\\n0.7,1,0\\n")
        >>> Log.from_csv(path).contexts.tolist()
        [[0.5], [0.7]]
        """
        return _reader(cls, "sources", "from_csv")(path, **mapping)

    @classmethod
    def from_obp(cls, feedback: dict[str, Any]) -> Self:
        """From a ``bandit_feedback`` dictionary of the Open Bandit Pipeline.

        >>> import numpy as np
        >>> from armwise.offline import Log
        >>> log = Log.from_obp({"n_actions": 2, "context": np.eye(2), "action": [0, 1], "reward": [1, 0],
        ...                     "pscore": [0.5, 0.5], "action_context": np.eye(2), "position": None})
        >>> log.probabilities.tolist()
        [0.5, 0.5]
        """
        return _reader(cls, "sources", "from_obp")(feedback)

    @classmethod
    def from_dsjson(cls, path: Any, **options: Any) -> Self:
        """From Vowpal Wabbit's decision logs (and our service's), one JSON object a line.

        ``features=False`` leaves the features out, ``skip=True`` passes over lines that are not decisions with an
        outcome; see ``armwise.offline.dsjson``.

        >>> from armwise.offline import Log
        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "log.dsjson")
        >>> Log(contexts=[[0.5]], arms=[1], rewards=[1.0], probabilities=[0.8], n_arms=2).to_dsjson(path)
        >>> log = Log.from_dsjson(path)
        >>> log.arms, log.rewards, log.probabilities
        (array([1]), array([1.]), array([0.8]))
        """
        return _reader(cls, "dsjson", "read")(path, **options)
