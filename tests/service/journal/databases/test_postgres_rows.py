"""Columns as PostgreSQL's binary arrays."""

from __future__ import annotations

import struct

import pytest

psycopg = pytest.importorskip("psycopg")
from armwise.service.journal.databases.postgres_rows import Blobs, Integers, Reals, Texts, packed  # noqa: E402


def test_a_column_is_a_binary_array():
    head = struct.pack(">5I", 1, 0, 20, 2, 1)
    assert Integers.of([1, -2]) == head + struct.pack(">IqIq", 8, 1, 8, -2)
    assert Reals.of([0.5]) == struct.pack(">5I", 1, 0, 701, 1, 1) + struct.pack(">Id", 8, 0.5)
    assert Blobs.of([b"ab"]) == struct.pack(">5I", 1, 0, 17, 1, 1) + struct.pack(">I", 2) + b"ab"
    assert Texts.of(["é"]) == struct.pack(">5I", 1, 0, 25, 1, 1) + struct.pack(">I", 2) + "é".encode()


def test_rows_become_a_column_each():
    assert packed("requests", [("shop", "r1", 7)]) == [Texts.of(["shop"]), Texts.of(["r1"]), Integers.of([7])]


def test_text_with_a_zero_byte_is_refused():
    with pytest.raises(psycopg.DataError, match="NUL"):
        Texts.of(["a\0b"])
