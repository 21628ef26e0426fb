"""Differences between SQLite and PostgreSQL, and 64-bit arithmetic without overflow, which both lack."""

from __future__ import annotations

from abc import ABC, abstractmethod

_LOW32 = 0xFFFFFFFF


def signed(value: int) -> int:
    """A 64-bit word as the signed integer that databases have."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


class Dialect(ABC):
    """Fragments of SQL; JSON types are named object, array, text, true, false and null, and ``numbers``."""

    real = "DOUBLE PRECISION"
    numbers: str  # the JSON types of numbers

    @abstractmethod
    def chr(self, code: int) -> str:
        """A character by its code."""

    @abstractmethod
    def xor(self, a: str, b: str) -> str:
        """Exclusive or."""

    @abstractmethod
    def hex(self, text: str) -> str:
        """The UTF-8 bytes of a text in upper-case hexadecimal digits."""

    @abstractmethod
    def find(self, texts: str, text: str) -> str:
        """The position of a text in another, from 1 on; 0 where it is not there."""

    @abstractmethod
    def last(self, text: str, n: int) -> str:
        """The last n characters of a text."""

    @abstractmethod
    def type_of(self, node: str) -> str:
        """The JSON type of a value."""

    @abstractmethod
    def children(self, node: str, type: str) -> str:
        """A table function: key, type and value of the members of an object or a list."""

    @abstractmethod
    def document(self, column: str) -> str:
        """A column of JSON text as a value."""

    @abstractmethod
    def items(self, column: str) -> str:
        """``children`` of a column of JSON text that is a list."""

    @abstractmethod
    def text(self, node: str) -> str:
        """A JSON string's text."""

    @abstractmethod
    def number(self, node: str) -> str:
        """A JSON number."""

    @abstractmethod
    def node(self, node: str, name: str) -> str:
        """A member of an object, as JSON; NULL where it has none."""

    @abstractmethod
    def member(self, node: str, name: str) -> str:
        """A member of an object, as text."""

    @abstractmethod
    def least(self, a: str, b: str) -> str:
        """The smaller of two numbers."""

    @abstractmethod
    def greatest(self, a: str, b: str) -> str:
        """The larger of two numbers."""

    def big(self, value: str) -> str:
        """A whole number of 64 bits."""
        return f"CAST({value} AS BIGINT)"

    def whole(self, value: str) -> str:
        """A whole number from a text."""
        return f"CAST({value} AS INTEGER)"

    def answer(self, query: str) -> str:
        """The view that users select from."""
        return f"CREATE VIEW policy_probabilities AS\n{query};"

    # ------------------------------------------------------------------ 64-bit words

    def high(self, a: str) -> str:
        """The upper half of a word."""
        return f"(({a} >> 32) & {_LOW32})"

    def low(self, a: str) -> str:
        """The lower half of a word."""
        return f"({a} & {_LOW32})"

    def low63(self, a: str) -> str:
        """A word without its highest bit."""
        return f"({a} & {(1 << 63) - 1})"

    def add(self, *terms: str) -> str:
        """The sum of words, modulo 2^64."""
        low = " + ".join(self.low(term) for term in terms)
        high = " + ".join(self.high(term) for term in terms)
        return f"((({high} + (({low}) >> 32)) << 32) | (({low}) & {_LOW32}))"

    def shifted(self, a: str, by: int) -> str:
        """A word shifted to the right, with zeros."""
        return f"(({a} >> {by}) & {(1 << (64 - by)) - 1})"

    def rotated(self, a: str, by: int) -> str:
        """A word rotated to the right."""
        return f"({self.shifted(a, by)} | ({a} << {64 - by}))"

    def times(self, a: str, constant: int) -> str:
        """A word times a constant, modulo 2^64, by limbs of 16 bits."""
        limbs = [f"(({a} >> {16 * k}) & 65535)" if k else f"({a} & 65535)" for k in range(4)]
        c = [(constant >> (16 * k)) & 65535 for k in range(4)]
        r = [" + ".join(f"{limbs[i]} * {c[k - i]}" for i in range(k + 1)) for k in range(4)]
        low = f"(({r[0]}) + (({r[1]}) << 16))"
        high = f"(({low} >> 32) + ({r[2]}) + ((({r[3]}) & 65535) << 16))"
        return f"((({high} & {_LOW32}) << 32) | ({low} & {_LOW32}))"

    def mix_steps(self, pairs: str, kept: str) -> str:
        """CTEs up to ``mixed``: z, the hash of each pair of hc and ha, beside the columns that are kept; each step by
        itself, so that no part of it is worked out twice."""
        steps = [
            ("mix1", pairs, f"ha, {self.times('hc', 0x9E3779B97F4A7C15)}"),
            ("mix2", "mix1", self.add("z", "ha")),
            ("mix3", "mix2", self.xor("z", self.shifted("z", 30))),
            ("mix4", "mix3", self.times("z", 0xBF58476D1CE4E5B9)),
            ("mix5", "mix4", self.xor("z", self.shifted("z", 27))),
            ("mix6", "mix5", self.times("z", 0x94D049BB133111EB)),
            ("mixed", "mix6", self.xor("z", self.shifted("z", 31))),
        ]
        return ",\n".join(f"{name} AS MATERIALIZED (SELECT {kept}, {z} AS z FROM {of})" for name, of, z in steps)


class SQLiteDialect(Dialect):
    """SQLite's: JSON values are those of SQL, objects and lists are text."""

    numbers = "('integer', 'real')"

    def chr(self, code: int) -> str:
        return f"char({code})"

    def xor(self, a: str, b: str) -> str:
        return f"(({a} | {b}) - ({a} & {b}))"

    def hex(self, text: str) -> str:
        return f"hex(CAST({text} AS BLOB))"

    def find(self, texts: str, text: str) -> str:
        return f"instr({texts}, {text})"

    def last(self, text: str, n: int) -> str:
        return f"substr({text}, -{n})"

    def type_of(self, node: str) -> str:
        return f"json_type({node})"

    def children(self, node: str, type: str) -> str:
        return f"json_each(CASE WHEN {type} IN ('object', 'array') THEN {node} ELSE '[]' END)"

    def document(self, column: str) -> str:
        return column

    def items(self, column: str) -> str:
        return f"json_each(COALESCE({column}, '[]'))"

    def text(self, node: str) -> str:
        return node

    def number(self, node: str) -> str:
        return f"CAST({node} AS REAL)"

    def node(self, node: str, name: str) -> str:
        return f"json_extract({node}, '$.{name}')"

    def member(self, node: str, name: str) -> str:
        return f"json_extract({node}, '$.{name}')"

    def least(self, a: str, b: str) -> str:
        return f"min({a}, {b})"

    def greatest(self, a: str, b: str) -> str:
        return f"max({a}, {b})"


class PostgresDialect(Dialect):
    """PostgreSQL's. Its compiler (jit) would take seconds for such a query, and is left out of it."""

    numbers = "('number')"

    def answer(self, query: str) -> str:
        columns = "request TEXT, arm TEXT, place INTEGER, probability DOUBLE PRECISION"
        return (
            f"CREATE FUNCTION policy_evaluated() RETURNS TABLE ({columns}) LANGUAGE sql STABLE SET jit = off "
            "AS $query$\n"
            f"SELECT request, arm, CAST(place AS INTEGER), CAST(probability AS DOUBLE PRECISION) FROM (\n"
            f"{query}) every\n"
            "$query$;\nCREATE VIEW policy_probabilities AS SELECT * FROM policy_evaluated();"
        )

    def chr(self, code: int) -> str:
        return f"chr({code})"

    def xor(self, a: str, b: str) -> str:
        return f"({a} # {b})"

    def hex(self, text: str) -> str:
        return f"upper(encode(convert_to({text}, 'UTF8'), 'hex'))"

    def find(self, texts: str, text: str) -> str:
        return f"strpos({texts}, {text})"

    def last(self, text: str, n: int) -> str:
        return f"right({text}, {n})"

    def type_of(self, node: str) -> str:
        return (
            f"CASE json_typeof({node}) WHEN 'string' THEN 'text' WHEN 'boolean' THEN {node} #>> '{{}}' "
            f"ELSE json_typeof({node}) END"
        )

    def children(self, node: str, type: str) -> str:
        return (
            f"LATERAL (SELECT key, {self.type_of('value')} AS type, value FROM json_each(CASE WHEN {type} = 'object' "
            f"THEN {node} ELSE '{{}}' END) UNION ALL SELECT CAST(n - 1 AS TEXT), {self.type_of('value')}, value FROM "
            f"json_array_elements(CASE WHEN {type} = 'array' THEN {node} ELSE '[]' END) WITH ORDINALITY AS e(value, n))"
        )

    def document(self, column: str) -> str:
        return f"CAST({column} AS json)"

    def items(self, column: str) -> str:
        return (
            f"LATERAL (SELECT CAST(n - 1 AS TEXT) AS key, {self.type_of('value')} AS type, value FROM "
            f"json_array_elements(CAST(COALESCE({column}, '[]') AS json)) WITH ORDINALITY AS e(value, n))"
        )

    def text(self, node: str) -> str:
        return f"({node} #>> '{{}}')"

    def number(self, node: str) -> str:
        return f"CAST({node} #>> '{{}}' AS DOUBLE PRECISION)"

    def node(self, node: str, name: str) -> str:
        return f"({node} -> '{name}')"

    def member(self, node: str, name: str) -> str:
        return f"({node} ->> '{name}')"

    def least(self, a: str, b: str) -> str:
        return f"least({a}, {b})"

    def greatest(self, a: str, b: str) -> str:
        return f"greatest({a}, {b})"


DIALECTS: dict[str, Dialect] = {"sqlite": SQLiteDialect(), "postgresql": PostgresDialect()}
