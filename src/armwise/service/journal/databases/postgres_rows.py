"""Rows for PostgreSQL: one binary array per column and one statement per table.

A statement with a placeholder per value would differ for each number of rows and be planned again, and each value would
be converted by itself. Both take time, and other processes wait for the append lock meanwhile.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from armwise.service.journal.databases.database import Rows
from armwise.service.journal.journal import STATUS


class Packed(bytes):
    """An array in PostgreSQL's binary format; ``element`` is the OID of its elements, ``oid`` its own."""

    element = oid = 0


class Integers(Packed):
    element, oid = 20, 1016

    @classmethod
    def of(cls, values: Sequence[int]) -> Integers:
        """An array of bigint."""
        return cls(_fixed(cls.element, "q", values))


class Reals(Packed):
    element, oid = 701, 1022

    @classmethod
    def of(cls, values: Sequence[float]) -> Reals:
        """An array of double precision."""
        return cls(_fixed(cls.element, "d", values))


class Blobs(Packed):
    element, oid = 17, 1001

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Blobs:
        """An array of bytea."""
        return cls(_varying(cls.element, values))


class Texts(Packed):
    element, oid = 25, 1009

    @classmethod
    def of(cls, values: Sequence[str]) -> Texts:
        """An array of text; raise DataError for text that PostgreSQL cannot store."""
        if any("\0" in value for value in values):
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return cls(_varying(cls.element, [value.encode() for value in values]))


def _fixed(element: int, letter: str, values: Sequence[Any]) -> bytes:
    flat = [8] * (2 * len(values))
    flat[1::2] = values
    return _head(element, len(values)) + struct.pack(">" + f"I{letter}" * len(values), *flat)


def _varying(element: int, values: Sequence[bytes]) -> bytes:
    parts = [_head(element, len(values))]
    for value in values:
        parts += (_LENGTH(len(value)), value)
    return b"".join(parts)


def _head(element: int, n: int) -> bytes:
    return struct.pack(">5I", 1, 0, element, n, 1)  # one dimension, no NULLs, element type, length, first index


_LENGTH = struct.Struct(">I").pack
_I, _R, _T, _B = Integers, Reals, Texts, Blobs
_NAMES: dict[Any, str] = {Integers: "bigint", Reals: "float8", Texts: "text", Blobs: "bytea"}
_COLUMNS: dict[str, tuple[Any, ...]] = {
    "events": (_I, _I, _T, _T, _T, _B, _B),
    "decisions": (_T, _T, _I, _I, _T, _R, _I, _I, _R, _R, _I, _T),
    "requests": (_T, _T, _I),
    "made": (_I, _I, _T, _T, _B, _B, _I, _T, _R, _I, _T),  # new decisions without an idempotency key: most of all rows
}


def _into(table: str, names: str = "", again: str = "") -> str:
    arrays = ", ".join(f"?::{_NAMES[column]}[]" for column in _COLUMNS[table])
    return f"INSERT INTO {table}{names} SELECT * FROM unnest({arrays}){again}"


INTO = {
    "events": _into("events"),
    "decisions": _into(
        "decisions", f" ({STATUS})", " ON CONFLICT (app, id) DO UPDATE SET active = excluded.active, n = excluded.n, "
        "total = excluded.total, value = excluded.value, closed = excluded.closed",
    ),
    "requests": _into("requests"),
    "made": (  # both rows of each; the id is fresh, so there is no conflict to look for
        "WITH written AS (INSERT INTO events SELECT seq, time, app, 'decision', id, body, chain FROM unnest("
        "$1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::bytea[]) "
        "AS e (seq, time, app, id, body, chain)) "
        f"INSERT INTO decisions ({STATUS}) "
        "SELECT app, id, seq, deadline, rule, fallback, active, 0, 0.0, 0.0, 0, learn FROM unnest("
        "$1::bigint[], $3::text[], $4::text[], $7::bigint[], $8::text[], $9::float8[], $10::bigint[], $11::text[]) "
        "AS d (seq, app, id, deadline, rule, fallback, active, learn)"
    ),
}  # fmt: skip


def packed(table: str, rows: Rows) -> list[Packed]:
    """The values of a table's statement in ``INTO``."""
    return [column.of(values) for column, values in zip(_COLUMNS[table], zip(*rows))]


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return obj  # type: ignore[no-any-return]


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let a session take packed arrays as values."""
    for kind in (Integers, Reals, Texts, Blobs):
        connection.adapters.register_dumper(kind, type(f"{kind.__name__}Dumper", (_AsItIs,), {"oid": kind.oid}))
