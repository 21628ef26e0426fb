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
from armwise.native.plain import flat, flat_arms
from armwise.native.requests import read_part

MAX_DEPTH = 32
MAX_STRING = 4096
MAX_TOKENS = 4096
MAX_ID = 256  # characters of an arm's or an event's id
MAX_PATH = 8192  # bytes of the keys on the way to a value: each value is hashed with all of them

Hashes = NDArray[np.uint64]
Table = NDArray[np.uint64]  # rows of three: hash of a token, the bits of its number, 1 if it is to be scaled


class InvalidInput(ValueError):
    """A request that cannot be honoured; the message says why.

    >>> part(b'{"a": 1, "a": 2}', "c")
    Traceback (most recent call last):
    ...
    armwise.features.encoding.tokens.InvalidInput: a key appears twice in one object
    """


class Part(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one context or of one arm's features, before scaling: hash, bits of the number, whether numeric.

    >>> part(b'{"hour": 9, "city": "Oslo", "vip": null}', "c").table.view(np.float64)[:, 1]
    array([9., 1.])
    """

    counted: bytes  # how many tokens, then the rows of the table: joining bytes is quicker than joining small arrays
    n_keys: int

    @property
    def table(self) -> Table:
        """The tokens as an array.

        >>> NOTHING.table.shape
        (0, 3)
        """
        return as_table([self.counted[8:]])


_WHAT = {"c": "the context", "a": "an arm's features"}
_SPACES = {"c": b"c", "a": b"a"}


def count_tokens(parts: Sequence[Part]) -> int:
    """How many tokens some parts have.

    >>> count_tokens([part(b'{"a": 1}', "c"), NOTHING])
    1
    """
    return (sum([len(part.counted) for part in parts]) - 8 * len(parts)) // _ROW.size


NOTHING = Part(bytes(8), 0)
# An escape of the first half of a pair, itself not escaped, without the second half after it.
_LONE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_ROW = struct.Struct("8sdQ")
_FLAG = _ROW.pack(bytes(8), 1.0, 0)[8:]  # what follows the hash of a text or a boolean


class Tail(msgspec.Struct, frozen=True, gc=False):
    """The tokens of a request's arms, made once for all requests with these arms.

    >>> tail([bytes(8)], [NOTHING]).n
    1
    """

    n: int
    words: bytes  # per arm the hash of its id, the number of tokens and three words for each

    @property
    def n_tokens(self) -> int:
        """How many tokens all arms have.

        >>> tail([bytes(8)], [part(b'{"a": 1}', "a")]).n_tokens
        1
        """
        return (len(self.words) - 16 * self.n) // _ROW.size


def tail(ids: Sequence[bytes], arms: Sequence[Part]) -> Tail:
    """The tokens of some arms; ``ids`` are the hashes of their ids.

    >>> len(tail([bytes(8)], [NOTHING]).words)
    16
    """
    pieces = [b""] * (2 * len(arms))
    pieces[::2], pieces[1::2] = ids, [arm.counted for arm in arms]
    return Tail(len(arms), b"".join(pieces))


class Stack(msgspec.Struct, frozen=True, gc=False):
    """The tokens of a request.

    >>> Stack(part(b'{"time": "morning"}', "c"), tail([bytes(8)], [NOTHING])).words[[0, 1, 5, 6]]
    array([1, 1, 0, 0], dtype=uint64)
    """

    context: Part
    tail: Tail

    @property
    def words(self) -> NDArray[np.uint64]:
        """The number of arms, then the context, then for each arm the hash of its id and its features; of both the
        number of tokens and three words for each.

        >>> len(Stack(NOTHING, tail([bytes(8)], [NOTHING])).words)
        4
        """
        return _words((self.tail.n.to_bytes(8, "little"), self.context.counted, self.tail.words))

    @property
    def table(self) -> Table:
        """The numeric tokens as one table.

        >>> Stack(part(b'{"a": 1, "d": "x"}', "c"), tail([bytes(8)], [part(b'{"b": 2, "c": 3}', "a")])).table.shape
        (3, 3)
        """
        return as_table([numeric(self.context.counted, self.tail.words, self.tail.n)])


def _words(pieces: Iterable[Any]) -> NDArray[np.uint64]:
    # From a bytearray, because an array that may not be written to takes the slow way into compiled code; and not by
    # numpy, which gives the interpreter away for each piece.
    return np.frombuffer(bytearray().join(pieces), np.uint64)


def as_table(pieces: Iterable[Any]) -> Table:
    """Tokens, one below the other.

    >>> table = part(b'{"a": 1}', "c").table
    >>> as_table([table, table]).shape
    (2, 3)
    """
    return _words(pieces).reshape(-1, 3)


@functools.lru_cache(maxsize=65536)
def hash_token(token: bytes) -> bytes:
    """BLAKE2b with an 8-byte digest: an unsigned integer, little-endian.

    >>> hex(int.from_bytes(hash_token(b"1"), "little"))
    '0x7637ba9f0342fcf6'
    """
    return hashlib.blake2b(token, digest_size=8).digest()


def hash_id(id: str) -> bytes:
    """The hash of an arm's id.

    >>> hash_id("red") == hash_token(b"a\\x1eired")
    True
    """
    return hash_token(b"a\x1ei" + id.encode())


ONE = int.from_bytes(hash_token(b"1"), "little")


def refuse_twice(what: str, text: bytes, n_keys: int) -> None:
    """InvalidInput if a JSON text has more keys than its reader found: then one appears twice in an object.

    >>> refuse_twice("the body", b'{"a": "b:", "a": 2}', 1)
    Traceback (most recent call last):
    ...
    armwise.features.encoding.tokens.InvalidInput: the body: a key appears twice in one object
    """
    # Every key has a colon: where there are no more colons than different keys, no key is there twice.
    if text.count(b":") != n_keys and scan(np.frombuffer(text, np.uint8))[1] != n_keys:
        raise InvalidInput(f"{what}: a key appears twice in one object")


def read_json(text: bytes) -> Any:
    """Decode JSON within bounds: nesting, no repeated keys, no NaN; InvalidInput with the reason otherwise.

    >>> read_json(b'[1, 2')
    Traceback (most recent call last):
    ...
    armwise.features.encoding.tokens.InvalidInput: not JSON: Input data was truncated
    """
    depth, n_keys = scan(np.frombuffer(text, np.uint8))
    if depth > MAX_DEPTH:
        raise InvalidInput(f"nested {depth} deep; at most {MAX_DEPTH} is accepted")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {why(error, text)}") from None
    if count_keys(value) != n_keys:
        raise InvalidInput("a key appears twice in one object")
    return value


def why(error: Exception, text: bytes) -> str:
    """What an error of the JSON reader says, or what is the matter where that misleads.

    >>> text = b'{"name": "\\\\ud800"}'
    >>> why(ValueError("Input data was truncated"), text)
    'half a surrogate pair in a string'
    """
    lone = re.search("truncated|escape|surrogate", str(error)) and _LONE.search(text)
    return "half a surrogate pair in a string" if lone else str(error)


def count_keys(value: Any) -> int:
    """The keys of all objects in a decoded JSON value.

    >>> count_keys({"a": [{"b": 1}, 2]})
    2
    """
    if isinstance(value, dict):
        return len(value) + sum(count_keys(v) for v in value.values() if isinstance(v, (dict, list)))
    if isinstance(value, list):
        return sum(count_keys(v) for v in value if isinstance(v, (dict, list)))
    return 0


def part(text: bytes, space: str) -> Part:
    """The tokens of a JSON object or list of objects.

    >>> len(part(b'[{"taste": "salty"}, {"n": 3}]', "a").table)
    2
    """
    found = read_part(text, _SPACES[space])
    if found is not None:
        return Part(*found)
    # Not as most are, or not right; remembered, since arms come back again and again.
    return _remembered(text, space) if len(text) <= 4096 else _part(text, space)


def _part(text: bytes, space: str) -> Part:
    """``part`` of any JSON, and what is wrong with it."""
    value = read_json(text)
    if not isinstance(value, (dict, list)):
        raise InvalidInput(
            f"{_WHAT[space]} must be an object or a list of objects, got {text[:40].decode(errors='replace')}"
        )
    if isinstance(value, list) and not all(isinstance(v, dict) for v in value):
        raise InvalidInput(
            f"{_WHAT[space]} must be an object or a list of objects, got a list with something else in it"
        )
    tokens: list[tuple[bytes, float, bool]] = []
    _walk(space.encode(), value, tokens, b"")
    rows = [_ROW.pack(hash_token(token), number, scaled) for token, number, scaled in tokens]
    return Part(b"".join((len(rows).to_bytes(8, "little"), *rows)), count_keys(value))


def named_tokens(text: bytes, space: str) -> list[tuple[str, int, float, bool]]:
    """The tokens of a JSON object with their names: name, hash, number, whether it is to be scaled.

    >>> [token[0] for token in named_tokens(b'{"user": {"city": "Oslo"}, "tags": ["new"], "hour": 9}', "c")]
    ['user.city=Oslo', 'tags=new', 'hour']
    """
    tokens: list[tuple[bytes, float, bool]] = []
    _walk(space.encode(), read_json(text), tokens, b"")
    found = []
    for token, number, scaled in tokens:
        path, _, value = token[1:].partition(b"\x1e")
        name = path.replace(b"\x1f", b".") + (b"=" + value[1:] if value else b"")
        found.append((name.decode(), int.from_bytes(hash_token(token), "little"), number, scaled))
    return found


class Flat:
    """The tokens of flat dictionaries, without a JSON text between: the same as ``part`` of the text, and quicker.

    What a name, a text under a name, and an arm's id hash to is remembered, up to ``MOST`` of them.

    >>> seen = {"hour": 9, "city": "Oslo", "vip": None}
    >>> Flat("c").part(seen) == part(msgspec.json.encode(seen), "c")
    True
    """

    MOST = 65536

    def __init__(self, space: str) -> None:
        self._space = space.encode()
        self._forget()

    def _forget(self) -> None:
        self.heads: dict[str, bytes] = {}
        self.texts: dict[str, dict[str | bool, bytes]] = {}
        self._ids: dict[str, bytes] = {}
        self._size = 0

    def part(self, names: dict[Any, Any]) -> Part | None:
        """The tokens of a dictionary of texts, numbers, booleans and None; None if there is anything else in it.

        >>> Flat("c").part({"tags": ["a", "b"]}) is None
        True
        """
        counted = flat(names, self.heads, self.texts) if len(names) <= MAX_TOKENS else None
        if counted is None:
            if self._size > self.MOST:
                self._forget()
            if not self._remember_all(names):
                return None
            counted = flat(names, self.heads, self.texts)
            if counted is None:
                return None
        return Part(counted, len(names))

    def tail(self, arms: tuple[Any, ...]) -> Tail | None:
        """The tokens of arms, ids or flat dictionaries with an ``id``; None if there is anything else among them.

        >>> read = Flat("a").tail(("a", {"id": "b", "price": 3}))
        >>> read == tail([hash_id("a"), hash_id("b")], [NOTHING, part(b'{"price":3}', "a")])
        True
        """
        words = flat_arms(arms, "id", self._ids, self.heads, self.texts)
        if words is None:
            if self._size > self.MOST:
                self._forget()
            for arm in arms:
                id = arm.get("id") if type(arm) is dict else arm
                if type(id) is not str or not 0 < len(id) <= MAX_ID or not id.isprintable():
                    return None
                self._ids[id] = hash_id(id)
                self._size += 1
                if id is not arm and ("features" in arm or not self._remember_all(arm)):
                    return None
            words = flat_arms(arms, "id", self._ids, self.heads, self.texts)
        if words is None or len(words) > MAX_TOKENS * _ROW.size:  # with so many each is counted
            return None
        return Tail(len(arms), words)

    def _remember_all(self, names: dict[Any, Any]) -> bool:
        if len(names) > MAX_TOKENS:
            return False
        for name, value in names.items():  # noqa: SIM110  (a generator would cost a microsecond)
            if not self._remember(name, value):
                return False
        return True

    def _remember(self, name: Any, value: Any) -> bool:
        """Whether a name and its value are such as are remembered; they are then."""
        if type(name) is not str or len(name) > MAX_STRING or (type(value) is str and len(value) > MAX_STRING):
            return False
        try:
            if name not in self.heads:
                self.heads[name] = hash_token(self._space + name.encode())
                self._size += 1
            if type(value) is str or type(value) is bool:
                known = self.texts.setdefault(name, {})
                if value not in known:
                    written = b"s" + value.encode() if isinstance(value, str) else b"btrue" if value else b"bfalse"
                    path = b"".join((self._space, name.encode(), b"\x1e", written))
                    known[value] = hashlib.blake2b(path, digest_size=8).digest() + _FLAG
                    self._size += 1
                return True
        except UnicodeEncodeError:  # half a surrogate pair: whoever writes the JSON says so
            return False
        return type(value) in (float, int) or value is None


_remembered = functools.lru_cache(maxsize=8192)(_part)


def _walk(path: bytes, value: Any, tokens: list[tuple[bytes, float, bool]], separator: bytes = b"\x1f") -> None:
    size = len(value) if isinstance(value, (dict, list)) else 1
    if len(tokens) + (size if size > MAX_TOKENS else 1) > MAX_TOKENS and value is not None:  # before they are read
        raise InvalidInput(f"more than {MAX_TOKENS} features; at most {MAX_TOKENS} are accepted")
    if len(path) > MAX_PATH:
        raise InvalidInput(f"keys of {len(path)} bytes on the way to one value; at most {MAX_PATH} are accepted")
    if isinstance(value, dict):
        for key, item in value.items():
            if len(key) > MAX_STRING:
                raise InvalidInput(f"a key of {len(key)} characters; at most {MAX_STRING} are accepted")
            _walk(path + separator + key.encode(), item, tokens)
    elif isinstance(value, str):
        if len(value) > MAX_STRING:
            raise InvalidInput(f"a string of {len(value)} characters; at most {MAX_STRING} are accepted")
        tokens.append((path + b"\x1es" + value.encode(), 1.0, False))
    elif isinstance(value, bool):
        tokens.append((path + (b"\x1ebtrue" if value else b"\x1ebfalse"), 1.0, False))
    elif isinstance(value, (int, float)):
        if not -1e150 < value < 1e150:  # so that squares stay finite
            raise InvalidInput("a number beyond 1e150 in magnitude")
        tokens.append((path, float(value), True))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            _walk(path + b"\x1f%d" % i if number else path, item, tokens, separator)
