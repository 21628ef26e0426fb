"""Rows for PostgreSQL: one binary array per column and one statement per table.

A statement with a place for each value would be another one for every number of rows, to be planned anew, and each
value would be looked at by itself; both takes time, and others wait for their turn meanwhile.
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
        """An array of bigint.

        >>> len(Integers.of([1, 2]))
        44
        """
        return cls(_fixed(cls.element, "q", values))


class Reals(Packed):
    element, oid = 701, 1022

    @classmethod
    def of(cls, values: Sequence[float]) -> Reals:
        """An array of double precision.

        >>> len(Reals.of([0.5]))
        32
        """
        return cls(_fixed(cls.element, "d", values))


class Blobs(Packed):
    element, oid = 17, 1001

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Blobs:
        """An array of bytea.

        >>> len(Blobs.of([b"ab"]))
        26
        """
        return cls(_varying(cls.element, values))


class Texts(Packed):
    element, oid = 25, 1009

    @classmethod
    def of(cls, values: Sequence[str]) -> Texts:
        """An array of text; DataError for what PostgreSQL has no text for.

        >>> len(Texts.of(["ab"]))
        26
        """
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
    return struct.pack(">5I", 1, 0, element, n, 1)  # one dimension, no NULLs, what is in it, how many, from 1 on


_LENGTH = struct.Struct(">I").pack
_I, _R, _T, _B = Integers, Reals, Texts, Blobs
_NAMES: dict[Any, str] = {Integers: "bigint", Reals: "float8", Texts: "text", Blobs: "bytea"}
_COLUMNS: dict[str, tuple[Any, ...]] = {
    "events": (_I, _I, _T, _T, _T, _B, _B),
    "decisions": (_T, _T, _I, _I, _T, _R, _I, _I, _R, _R, _I, _T),
    "requests": (_T, _T, _I),
    "made": (_I, _I, _T, _T, _B, _B, _I, _T, _R, _I, _T),  # new decisions, without an idempotency key, as most are
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
    "made": (  # both rows of each, and no look for one that is there
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
    """The values of a table's statement in ``INTO``.

    >>> [type(column).__name__ for column in packed("requests", [("shop", "r1", 7)])]
    ['Texts', 'Texts', 'Integers']
    """
    return [column.of(values) for column, values in zip(_COLUMNS[table], zip(*rows))]


class _AsItIs(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return obj  # type: ignore[no-any-return]


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Let a session take packed arrays as values."""
    for kind in (Integers, Reals, Texts, Blobs):
        connection.adapters.register_dumper(kind, type(f"{kind.__name__}Dumper", (_AsItIs,), {"oid": kind.oid}))
