"""JSON, read within bounds and taken apart into tokens (steps 1 and 2 of ``encoder``)."""

from __future__ import annotations

import functools
import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from armwise.native.decisions import numeric
from armwise.native.features import scan
from armwise.native.tokens import tokens

MAX_DEPTH = 32
MAX_STRING = 4096
MAX_TOKENS = 4096
MAX_ID = 256  # characters of an arm's or an event's id
MAX_PATH = 8192  # bytes of the keys on the way to a value: each value is hashed with all of them
LIMITS = MAX_TOKENS, MAX_STRING, MAX_PATH, MAX_DEPTH

Hashes = NDArray[np.uint64]
Table = NDArray[np.uint64]  # rows of three: hash of a token, the bits of its number, 1 if it is to be scaled


class InvalidInput(ValueError):
    """A request that cannot be honoured; the message says why."""


class PackedTokens(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one context or of one arm's features, before scaling: hash, bits of the number, whether numeric."""

    counted: bytes  # how many tokens, then the rows of the table: joining bytes is quicker than joining small arrays
    n_keys: int

    @property
    def table(self) -> Table:
        """The tokens as an array."""
        return as_table([self.counted[8:]])


_WHAT = {"c": "the context", "a": "an arm's features"}
_SPACES = {"c": b"c", "a": b"a"}
_TWICE = "a key appears twice in one object"


def count_tokens(parts: Sequence[PackedTokens]) -> int:
    """The number of tokens of some parts."""
    return (sum([len(part.counted) for part in parts]) - 8 * len(parts)) // _ROW.size


NO_TOKENS = PackedTokens(bytes(8), 0)
# An escape of the first half of a pair, itself not escaped, without the second half after it.
_LONE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_ROW = struct.Struct("8sdQ")
_MIXING = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15], np.uint64)


class ArmTokens(msgspec.Struct, frozen=True, gc=False):
    """The tokens of a request's arms, made once for all requests with these arms."""

    n: int
    words: bytes  # per arm the hash of its id, the number of tokens and three words for each

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all arms."""
        return (len(self.words) - 16 * self.n) // _ROW.size

    def only(self, arm: int) -> ArmTokens:
        """The tokens of one arm."""
        if len(self.words) == 16 * self.n:
            return ArmTokens(1, self.words[16 * arm : 16 * arm + 16])
        start, own = 0, self._size(0)
        for _ in range(arm):
            start += own
            own = self._size(start)
        return ArmTokens(1, self.words[start : start + own])

    def pieces(self) -> list[bytes]:
        """The words of each arm."""
        found, start = [], 0
        for _ in range(self.n):
            end = start + self._size(start)
            found.append(self.words[start:end])
            start = end
        return found

    def in_any_order(self) -> bytes:
        """Per arm the hash of its id, the number of its tokens and a sum over them, which their order does not change.

        For comparison with a retry: a sum of mixed words (as of SplitMix64) meets another one by chance once in 2^64.
        """
        words, heads, at = np.frombuffer(self.words, np.uint64), [], 0
        for _ in range(self.n):
            heads.append(at)
            at += 2 + 3 * int(words[at + 1])
        starts = np.array(heads, np.intp)
        is_token = np.ones(len(words), np.bool_)
        is_token[starts] = is_token[starts + 1] = False
        rows = words[is_token].reshape(-1, 3)
        mixed = rows @ _MIXING
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIXING[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIXING[1]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)])
        ends = np.cumsum(words[starts + 1].astype(np.intp))
        own = sums[ends] - sums[np.concatenate([[0], ends[:-1]]).astype(np.intp)]
        return np.concatenate([words[starts], words[starts + 1], own]).tobytes()

    def _size(self, start: int) -> int:
        return 16 + _ROW.size * int.from_bytes(self.words[start + 8 : start + 16], "little")


def tail(ids: Sequence[bytes], arms: Sequence[PackedTokens]) -> ArmTokens:
    """The tokens of some arms; ``ids`` are the hashes of their ids."""
    pieces = [b""] * (2 * len(arms))
    pieces[::2], pieces[1::2] = ids, [arm.counted for arm in arms]
    return ArmTokens(len(arms), b"".join(pieces))


class RequestTokens(msgspec.Struct, frozen=True, gc=False):
    """The tokens of a request."""

    context: PackedTokens
    tail: ArmTokens

    def only(self, arm: int) -> RequestTokens:
        """The tokens of the context and one arm."""
        return RequestTokens(self.context, self.tail.only(arm))

    @property
    def words(self) -> NDArray[np.uint64]:
        """The number of arms, then the context, then for each arm the hash of its id and its features; of both the
        number of tokens and three words for each.
        """
        return _words((self.tail.n.to_bytes(8, "little"), self.context.counted, self.tail.words))

    @property
    def table(self) -> Table:
        """The numeric tokens as one table."""
        return as_table([numeric(self.context.counted, self.tail.words, self.tail.n)])


def _words(pieces: Iterable[Any]) -> NDArray[np.uint64]:
    # From a bytearray, because an array that may not be written to takes the slow way into compiled code; and not by
    # numpy, which gives the interpreter away for each piece.
    return np.frombuffer(bytearray().join(pieces), np.uint64)


def as_table(pieces: Iterable[Any]) -> Table:
    """Tokens, one below the other."""
    return _words(pieces).reshape(-1, 3)


def blake2b(token: bytes) -> bytes:
    """BLAKE2b with an 8-byte digest: an unsigned integer, little-endian."""
    return hashlib.blake2b(token, digest_size=8).digest()


@functools.lru_cache(maxsize=65536)
def hash_id(id: str) -> bytes:
    """The hash of an arm's id."""
    return blake2b(b"a\x1ei" + id.encode())


ONE = int.from_bytes(blake2b(b"1"), "little")


def refuse_twice(what: str, text: bytes, n_keys: int) -> None:
    """InvalidInput if a JSON text has more keys than its reader found: then one appears twice in an object."""
    # Every key has a colon: where there are no more colons than different keys, no key is there twice.
    if text.count(b":") != n_keys and scan(text)[1] != n_keys:
        raise InvalidInput(f"{what}: {_TWICE}")


def read_json(text: bytes) -> Any:
    """Decode JSON within bounds: nesting, no repeated keys, no NaN; InvalidInput with the reason otherwise."""
    value, n_keys = _decode(text)
    if count_keys(value) != n_keys:
        raise InvalidInput(_TWICE)
    return value


def _decode(text: bytes) -> tuple[Any, int]:
    """A JSON value, and how many keys its text has."""
    depth, n_keys = scan(text)
    if depth > MAX_DEPTH:
        raise InvalidInput(f"nested {depth} deep; at most {MAX_DEPTH} is accepted")
    try:
        return msgspec.json.decode(text), n_keys
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {why(error, text)}") from None


def why(error: Exception, text: bytes) -> str:
    """The message of the JSON reader, or the true cause where it misleads."""
    return "half a surrogate pair in a string" if _LONE.search(text) else str(error)


def count_keys(value: Any) -> int:
    """The keys of all objects in a decoded JSON value."""
    if isinstance(value, dict):
        return len(value) + sum(count_keys(v) for v in value.values() if isinstance(v, (dict, list)))
    if isinstance(value, list):
        return sum(count_keys(v) for v in value if isinstance(v, (dict, list)))
    return 0


def part(text: bytes, space: str) -> PackedTokens:
    """The tokens of a JSON object or list of objects."""
    value, n_keys = _decode(text)
    if not isinstance(value, (dict, list)):
        raise InvalidInput(
            f"{_WHAT[space]} must be an object or a list of objects, got {text[:40].decode(errors='replace')}"
        )
    if isinstance(value, list) and not all(isinstance(v, dict) for v in value):
        raise InvalidInput(
            f"{_WHAT[space]} must be an object or a list of objects, got a list with something else in it"
        )
    found = part_of(value, space)
    if found.n_keys != n_keys:
        raise InvalidInput(_TWICE)
    return found


def part_of(value: Any, space: str) -> PackedTokens:
    """The tokens of a dictionary, or of a list of them; TypeError if it holds anything that JSON does not have."""
    try:
        [packed], n_keys, _ = tokens([value], _SPACES[space], None, LIMITS)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    return PackedTokens(packed, n_keys)


def named_tokens(text: bytes, space: str) -> list[tuple[str, int, float, bool]]:
    """The tokens of a JSON object with their names: name, hash, number, whether it is to be scaled."""
    texts: list[bytes] = []
    _name(space.encode(), read_json(text), texts, b"")
    found = []
    for token, (hash, number, scaled) in zip(texts, _ROW.iter_unpack(part(text, space).counted[8:]), strict=True):
        path, _, value = token[1:].partition(b"\x1e")
        name = path.replace(b"\x1f", b".") + (b"=" + value[1:] if value else b"")
        found.append((name.decode(), int.from_bytes(hash, "little"), number, bool(scaled)))
    return found


def _name(path: bytes, value: Any, texts: list[bytes], separator: bytes = b"\x1f") -> None:
    """The texts of all tokens, in order: what ``part`` hashes."""
    if isinstance(value, dict):
        for key, item in value.items():
            _name(path + separator + key.encode(), item, texts)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            _name(path + b"\x1f%d" % i if number else path, item, texts, separator)
    elif isinstance(value, str):
        texts.append(path + b"\x1es" + value.encode())
    elif isinstance(value, bool):
        texts.append(path + (b"\x1ebtrue" if value else b"\x1ebfalse"))
    elif value is not None:
        texts.append(path)
