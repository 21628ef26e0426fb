"""The models that a replay starts from after compaction (compaction snapshots).

A large model is stored in chunks, so that commits wait only milliseconds for each. Its row in ``bases`` is then empty,
and its chunks have the same application and event.
"""

from __future__ import annotations

from collections.abc import Iterator

from armwise.service.journal.databases.database import Connection

CHUNK_BYTES = 1 << 18  # bytes


def chunks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a model into numbered chunks."""
    for n, start in enumerate(range(0, len(data), CHUNK_BYTES)):
        yield n, data[start : start + CHUNK_BYTES]


def put_chunk(connection: Connection, app: str, seq: int, n: int, chunk: bytes) -> None:
    """Store a chunk; it has no effect before ``put_snapshot``."""
    connection.execute(
        "INSERT INTO pieces VALUES (?, ?, ?, ?) ON CONFLICT (app, seq, n) DO UPDATE SET data = excluded.data",
        (app, seq, n, chunk),
    )


def put_snapshot(connection: Connection, app: str, seq: int, size: int) -> None:
    """Let a replay of an application start from a stored model; raise ValueError if a chunk is missing."""
    [(there,)] = connection.execute("SELECT sum(length(data)) FROM pieces WHERE app = ? AND seq = ?", (app, seq))
    if there != size:
        raise ValueError(f"the model of {app} has {there} bytes of {size}: another process deleted some")
    connection.execute(
        "INSERT INTO bases VALUES (?, ?, ?) ON CONFLICT (app) DO UPDATE SET seq = excluded.seq, data = excluded.data",
        (app, seq, b""),
    )


def compaction_snapshot(connection: Connection, app: str) -> bytes | None:
    """The model that a replay of an application starts from; None if there is none."""
    for seq, data in connection.execute("SELECT seq, data FROM bases WHERE app = ?", (app,)):
        found = connection.execute("SELECT data FROM pieces WHERE app = ? AND seq = ? ORDER BY n", (app, seq))
        return bytes(data) or b"".join(bytes(chunk) for (chunk,) in found)
    return None


def unused(connection: Connection) -> list[tuple[str, int, int]]:
    """Chunks that belong to no application's starting model."""
    sql = (
        "SELECT p.app, p.seq, p.n FROM pieces p WHERE NOT EXISTS "
        "(SELECT 1 FROM bases b WHERE b.app = p.app AND b.seq = p.seq)"
    )
    return [(app, seq, n) for app, seq, n in connection.execute(sql)]


def drop_chunk(connection: Connection, app: str, seq: int, n: int) -> None:
    """Delete a chunk."""
    connection.execute("DELETE FROM pieces WHERE app = ? AND seq = ? AND n = ?", (app, seq, n))
