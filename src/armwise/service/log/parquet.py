"""The log as Parquet, streamed one row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from armwise.service.log.export_journal import Entry, Outcome, played_arm

MAX_ROWS, MAX_BYTES = 10_000, 8 << 20  # in a row group: whichever is reached first


class Missing(Exception):
    """Parquet was requested, but its writer is not installed."""


def check() -> None:
    """Raise ``Missing`` if Parquet cannot be written here."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ModuleNotFoundError as error:
        raise Missing(f"Parquet needs the package {error.name}: pip install 'armwise[offline]'") from None


class _Sink:
    """A buffer for the writer, emptied chunk by chunk."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._position = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._position += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def take(self) -> bytes:
        whole = b"".join(self._pieces)
        self._pieces.clear()
        return whole


def schema() -> Any:
    """The columns. ``context`` and each of ``arms`` are JSON, as they were sent; the rest is plain."""
    import pyarrow as pa

    moment = pa.timestamp("ms", tz="UTC")
    outcome = pa.struct(
        [
            ("value", pa.float64()),
            ("time", moment),
            ("late", pa.bool_()),
            ("cost", pa.list_(pa.float64())),
            ("final", pa.bool_()),
        ]
    )
    return pa.schema(
        [
            ("seq", pa.int64()), ("id", pa.string()), ("time", moment), ("arm", pa.string()),
            ("probability", pa.float64()), ("reward", pa.float64()), ("index", pa.int64()), ("context", pa.string()),
            ("arms", pa.list_(pa.string())), ("offered", pa.int64()), ("probabilities", pa.list_(pa.float64())),
            ("rewards", pa.int64()), ("outcomes", pa.list_(outcome)), ("version", pa.int64()),
            ("deferred", pa.bool_()), ("active", pa.bool_()), ("apprentice", pa.bool_()), ("status", pa.string()),
            ("age", pa.float64()), ("window", pa.float64()), ("default", pa.float64()), ("rule", pa.string()),
            ("learn", pa.string()),
        ]
    )  # fmt: skip


def _columns(entry: Entry) -> dict[str, Any]:
    row, decision, status, received = entry[:4]
    return {
        "seq": row.seq, "id": row.id, "time": row.time, "arm": played_arm(decision),
        "probability": decision.p[decision.arm], "reward": entry.reward, "index": decision.arm,
        "context": bytes(decision.context).decode(), "arms": [bytes(arm).decode() for arm in decision.arms],
        "offered": len(decision.p), "probabilities": decision.p, "rewards": status.n,
        "outcomes": [_outcome(each) for each in received], "version": decision.version,
        "deferred": decision.deferred, "active": status.active, "apprentice": decision.apprentice,
        **entry.terms,
    }  # fmt: skip


def _outcome(outcome: Outcome) -> dict[str, Any]:
    cost = outcome.cost if outcome.cost is None or isinstance(outcome.cost, list) else [outcome.cost]
    return {
        "value": outcome.value, "time": outcome.time, "late": outcome.late, "cost": cost, "final": outcome.final,
    }  # fmt: skip


def row_groups(entries: Iterable[Entry]) -> Iterator[bytes]:
    """A Parquet file in chunks: one per row group, then the footer."""
    check()
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    sink, columns = _Sink(), schema()
    with ParquetWriter(sink, columns) as writer:
        rows: list[dict[str, Any]] = []
        size = 0
        for entry in entries:
            rows.append(_columns(entry))
            size += len(entry.row.body) + sum(map(len, entry.decision.arms)) + 64 * len(entry.outcomes)
            if len(rows) == MAX_ROWS or size > MAX_BYTES:
                writer.write_table(pa.Table.from_pylist(rows, columns))
                rows, size = [], 0
                yield sink.take()
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, columns))
    yield sink.take()
