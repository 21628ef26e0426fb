"""JSON contexts and arms become rows of features: fixed hashing, crossed, with numbers scaled by what was seen.

To the bit, so that any program can build the same row:

1. **Tokens.** A context (or an arm) is walked depth first, in the order it was written. A *path* is the space
   byte (``c`` context, ``a`` arm), then the keys on the way down, each after the first preceded by ``0x1F``.

   ===================  ======================================  =========================
   value                token                                   number it carries
   ===================  ======================================  =========================
   string ``s``         path ``0x1E`` ``s`` the string (UTF-8)  1
   ``true``, ``false``  path ``0x1E`` ``b`` ``true``/``false``  1
   number               path                                    the number, scaled (3)
   ``null``             none: a missing value
   object               its members, one key deeper
   list                 strings, booleans and objects as if they stood there themselves (a bag); a number
                        at position i as if under the key ``i`` (decimal)
   ===================  ======================================  =========================

   An arm's id is the token ``a 0x1E i`` and the id; the constant is the token ``1``. Both carry 1.
2. **Hash.** h(token) is BLAKE2b with an 8-byte digest, read as a little-endian unsigned integer.
3. **Scale.** A number v becomes min(max((v - mean) / (3 sd), -1), 1), with the mean and the population standard
   deviation of the numbers of that token in the decisions journaled before (Welford's update, in journal order); 0
   until they vary. The means and deviations a decision used are journaled with it.
4. **Cross.** With c over the context's tokens and the constant, a over the arm's tokens, its id and the constant
   (or only pairs with a constant, when ``interactions`` is off), each pair adds s v_c v_a to entry i, where
   z = mix(h_c * 0x9E3779B97F4A7C15 + h_a) modulo 2^64, i = (z mod 2^63) mod dim, s = -1 if z >= 2^63 else 1, and mix is
   SplitMix64's finaliser.
5. **Norm.** The row is divided by its Euclidean norm, so that no arm counts more for having more to say.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
import numba
import numpy as np
from numpy.typing import NDArray

from noregret.agent import Floats, count
from noregret.persist import Saved

MAX_DEPTH = 32
MAX_STRING = 4096
MAX_TOKENS = 4096
MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model
SPAN = 3.0  # standard deviations that fill [-1, 1]

Hashes = NDArray[np.uint64]
F = TypeVar("F", bound=Callable[..., object])


def strict(kernel: F) -> F:
    """Compiled without reordering sums: these numbers are documented to the bit."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(kernel))


class BadInput(ValueError):
    """A request that cannot be honoured; the message says why.

    >>> part(b'{"a": 1, "a": 2}', "c")
    Traceback (most recent call last):
    ...
    noregret.serve.features.BadInput: a key appears twice in one object
    """


class Part(NamedTuple):
    """The tokens of one context or of one arm's features, before scaling.

    >>> part(b'{"hour": 9, "city": "Oslo", "vip": null}', "c").values
    array([9., 1.])
    """

    hashes: Hashes
    values: Floats
    numeric: NDArray[np.bool_]
    names: Hashes  # of the numbers alone
    numbers: Floats
    n_keys: int


NOTHING = Part(
    np.empty(0, np.uint64), np.empty(0), np.empty(0, np.bool_), np.empty(0, np.uint64), np.empty(0), 0
)


@functools.lru_cache(maxsize=65536)
def hash_token(token: bytes) -> int:
    """BLAKE2b with an 8-byte digest, little-endian.

    >>> hex(hash_token(b"1"))
    '0x7637ba9f0342fcf6'
    """
    return int.from_bytes(hashlib.blake2b(token, digest_size=8).digest(), "little")


ONE = hash_token(b"1")


@strict
def scan(text: NDArray[np.uint8]) -> tuple[int, int]:
    """How deep a JSON text nests and how many keys it has, strings apart (the text need not be valid).

    >>> scan(np.frombuffer(b'{"a": {"b:": 1}}', np.uint8))
    (2, 2)
    """
    depth, deepest, keys, inside, skip = 0, 0, 0, False, False
    for byte in text:
        if skip:
            skip = False
        elif inside:
            if byte == 92:  # backslash
                skip = True
            elif byte == 34:
                inside = False
        elif byte == 34:
            inside = True
        elif byte == 58:
            keys += 1
        elif byte == 123 or byte == 91:
            depth += 1
            deepest = max(deepest, depth)
        elif byte == 125 or byte == 93:
            depth -= 1
    return deepest, keys


def read_json(text: bytes) -> Any:
    """Decode JSON within bounds: nesting, no repeated keys, no NaN; BadInput with the reason otherwise.

    >>> read_json(b'[1, 2')
    Traceback (most recent call last):
    ...
    noregret.serve.features.BadInput: not JSON: Input data was truncated
    """
    depth, n_keys = scan(np.frombuffer(text, np.uint8))
    if depth > MAX_DEPTH:
        raise BadInput(f"nested {depth} deep; at most {MAX_DEPTH} is accepted")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}") from None
    if count_keys(value) != n_keys:
        raise BadInput("a key appears twice in one object")
    return value


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
    """The tokens of a JSON object or list of objects; remembered, since arms come back again and again.

    >>> len(part(b'[{"taste": "salty"}, {"n": 3}]', "a").hashes)
    2
    """
    return _remembered(text, space) if len(text) <= 4096 else _part(text, space)


def _part(text: bytes, space: str) -> Part:
    value = read_json(text)
    if not isinstance(value, (dict, list)):
        raise BadInput(f"expected an object or a list of objects, got {text[:40]!r}")
    if isinstance(value, list) and not all(isinstance(v, dict) for v in value):
        raise BadInput("expected a list of objects, got something else among its elements")
    tokens: list[tuple[int, float, bool]] = []
    _walk(space.encode(), value, tokens, b"")
    if len(tokens) > MAX_TOKENS:
        raise BadInput(f"{len(tokens)} features; at most {MAX_TOKENS} are accepted")
    n_keys = count_keys(value)
    if not tokens:
        return NOTHING._replace(n_keys=n_keys)
    columns = list(zip(*tokens))
    hashes, values = np.array(columns[0], np.uint64), np.array(columns[1], np.float64)
    numeric = np.array(columns[2], np.bool_)
    return Part(hashes, values, numeric, hashes[numeric], values[numeric], n_keys)


_remembered = functools.lru_cache(maxsize=8192)(_part)


def _walk(path: bytes, value: Any, tokens: list[tuple[int, float, bool]], separator: bytes = b"\x1f") -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if len(key) > MAX_STRING:
                raise BadInput(f"a key of {len(key)} characters; at most {MAX_STRING} are accepted")
            _walk(path + separator + key.encode(), item, tokens)
    elif isinstance(value, str):
        if len(value) > MAX_STRING:
            raise BadInput(f"a string of {len(value)} characters; at most {MAX_STRING} are accepted")
        tokens.append((hash_token(path + b"\x1es" + value.encode()), 1.0, False))
    elif isinstance(value, bool):
        tokens.append((hash_token(path + (b"\x1ebtrue" if value else b"\x1ebfalse")), 1.0, False))
    elif isinstance(value, (int, float)):
        if not -1e150 < value < 1e150:  # so that squares stay finite
            raise BadInput("a number beyond 1e150 in magnitude")
        tokens.append((hash_token(path), float(value), True))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            number = isinstance(item, (int, float)) and not isinstance(item, bool)
            _walk(path + b"\x1f%d" % i if number else path, item, tokens, separator)


class Scaling(NamedTuple):
    """The means and deviations of some names, sorted by hash: what a decision was made with.

    >>> Scaling.of({"00000000000000ff": (2.0, 0.5)}).means
    array([2.])
    """

    names: Hashes
    means: Floats
    deviations: Floats

    @classmethod
    def of(cls, journaled: dict[str, tuple[float, float]]) -> Scaling:
        """The scaling that ``journal`` wrote.

        >>> Scaling.of({}).names.size
        0
        """
        if not journaled:
            return UNSCALED
        items = sorted((int(name, 16), mean, sd) for name, (mean, sd) in journaled.items())
        names, means, deviations = zip(*items)
        return cls(np.array(names, np.uint64), np.array(means, np.float64), np.array(deviations, np.float64))

    def journal(self) -> dict[str, tuple[float, float]]:
        """For the journal: the hash of each name in hexadecimal, with its mean and deviation.

        >>> Scaling.of({"00000000000000ff": (2.0, 0.5)}).journal()
        {'00000000000000ff': (2.0, 0.5)}
        """
        rows = zip(self.names.tolist(), self.means.tolist(), self.deviations.tolist())
        return {f"{name:016x}": (mean, sd) for name, mean, sd in rows}


UNSCALED = Scaling(np.empty(0, np.uint64), np.empty(0), np.empty(0))


class Scaler(Saved):
    """The mean and spread of every named number, in a table that grows as names appear.

    >>> scaler = Scaler()
    >>> seen = part(b'{"hour": 9}', "c"), part(b'{"hour": 15}', "c")
    >>> scaler.update(seen)
    >>> scaler.scaling(seen).journal()
    {'bbc8bb6de4aefe14': (12.0, 3.0)}
    """

    _learnt = ("names", "counts", "means", "squares")

    def __init__(self) -> None:
        self.names: Hashes = np.zeros(0, np.uint64)  # sorted, so that a lookup is a binary search
        self.counts: Floats = np.zeros(0)
        self.means: Floats = np.zeros(0)
        self.squares: Floats = np.zeros(0)

    def update(self, parts: Sequence[Part]) -> None:
        """Take in the numbers of one decision, in order.

        >>> scaler = Scaler()
        >>> scaler.update([part(b'{"hour": 9, "day": 2}', "c")])
        >>> scaler.counts
        array([1., 1.])
        """
        hashes, values = _numbers(parts)
        if not len(hashes):
            return
        if not known(self.names, hashes):
            fresh = np.setdiff1d(hashes, self.names)[: MAX_NAMES - len(self.names)]
            at = np.searchsorted(self.names, fresh)
            self.names = np.insert(self.names, at, fresh)
            self.counts, self.means, self.squares = (
                np.insert(column, at, 0.0) for column in (self.counts, self.means, self.squares)
            )
        welford(self.names, self.counts, self.means, self.squares, hashes, values)

    def scaling(self, parts: Sequence[Part]) -> Scaling:
        """Mean and deviation of each name in ``parts`` that has varied.

        >>> Scaler().scaling([part(b'{"hour": 9}', "c")]).names.size
        0
        """
        hashes, _ = _numbers(parts)
        if not len(hashes) or not len(self.names):
            return UNSCALED
        return Scaling(*varied(self.names, self.counts, self.means, self.squares, hashes))


def _numbers(parts: Sequence[Part]) -> tuple[Hashes, Floats]:
    some = [p for p in parts if len(p.names)]
    if not some:
        return NOTHING.hashes, NOTHING.values
    return np.concatenate([p.names for p in some]), np.concatenate([p.numbers for p in some])


@strict
def known(names: Hashes, hashes: Hashes) -> bool:
    """Whether every hash is in the sorted table.

    >>> known(np.array([3, 7], np.uint64), np.array([7, 8], np.uint64))
    False
    """
    for h in hashes:
        i = np.searchsorted(names, h)
        if i == len(names) or names[i] != h:
            return False
    return True


@strict
def varied(
    names: Hashes, counts: Floats, means: Floats, squares: Floats, hashes: Hashes
) -> tuple[Hashes, Floats, Floats]:
    """The rows of the table that ``hashes`` name and that have a positive deviation.

    >>> one = np.array([7], np.uint64)
    >>> varied(one, np.array([2.0]), np.array([2.0]), np.array([2.0]), one)
    (array([7], dtype=uint64), array([2.]), array([1.]))
    """
    wanted = np.zeros(len(names), np.bool_)
    for h in hashes:
        i = np.searchsorted(names, h)
        if i < len(names) and names[i] == h and math.sqrt(squares[i] / counts[i]) > 0.0:
            wanted[i] = True
    rows = np.flatnonzero(wanted)
    return names[rows], means[rows], np.sqrt(squares[rows] / counts[rows])


@strict
def welford(
    names: Hashes, counts: Floats, means: Floats, squares: Floats, hashes: Hashes, values: Floats
) -> None:
    """Welford's update of each named mean and sum of squares; names beyond the table are passed over.

    >>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
    >>> welford(np.array([7], np.uint64), n, m, s, np.array([7, 7], np.uint64), np.array([1.0, 3.0]))
    >>> m[0], s[0]
    (np.float64(2.0), np.float64(2.0))
    """
    for k in range(len(hashes)):
        i = np.searchsorted(names, hashes[k])
        if i < len(names) and names[i] == hashes[k]:
            counts[i] += 1.0
            delta = values[k] - means[i]
            means[i] += delta / counts[i]
            squares[i] += delta * (values[k] - means[i])


class Encoder(Saved):
    """Rows of ``dim`` hashed features, one for each arm.

    >>> encoder = Encoder(dim=16)
    >>> arms = [("pasta", part(b'{"taste": "salty"}', "a")), ("salad", NOTHING)]
    >>> encoder.rows(part(b'{"time": "morning"}', "c"), arms, UNSCALED).shape
    (2, 16)
    """

    def __init__(self, dim: int = 128, interactions: bool = True) -> None:
        self.dim = count("dim", dim)
        self.interactions = bool(interactions)

    def rows(
        self, context: Part, arms: Sequence[tuple[str, Part]], scaling: Scaling
    ) -> Floats:
        """The (K, dim) features of arms given by id and features, with the scaling that a decision used.

        >>> row = Encoder(dim=8).rows(NOTHING, [("a", NOTHING)], UNSCALED)[0]
        >>> float(round(row @ row, 12))
        1.0
        """
        starts = np.empty(len(arms) + 1, np.int64)
        starts[0] = end = 0
        pieces = []
        for k, (name, features) in enumerate(arms):
            pieces.append(features)
            end += len(features.hashes)
            starts[k + 1] = end
        ids = np.array([hash_token(b"a\x1ei" + name.encode()) for name, _ in arms], np.uint64)
        hashes, values, numeric = (np.concatenate(column) for column in list(zip(*pieces))[:3])
        return cross(
            context.hashes, scaled(context.hashes, context.values, context.numeric, *scaling),
            hashes, scaled(hashes, values, numeric, *scaling),
            ids, starts, self.dim, self.interactions,
        )  # fmt: skip

    def shared(self, context: Part, scaling: Scaling) -> Floats:
        """The (dim,) features of a context alone, for agents that have their arms fixed.

        >>> Encoder(dim=4).shared(NOTHING, UNSCALED).shape
        (4,)
        """
        none = np.zeros(2, np.int64)
        values = scaled(context.hashes, context.values, context.numeric, *scaling)
        return cross(
            context.hashes, values, NOTHING.hashes, NOTHING.values, NOTHING.hashes, none, self.dim, self.interactions
        )[0]


@strict
def scaled(
    hashes: Hashes, values: Floats, numeric: NDArray[np.bool_], names: Hashes, means: Floats, sds: Floats
) -> Floats:
    """Numbers brought into [-1, 1]; 0 for a name that has not varied yet. Other values stay.

    >>> one, yes = np.array([7], np.uint64), np.array([True])
    >>> scaled(one, np.array([5.0]), yes, one, np.array([2.0]), np.array([2.0]))
    array([0.5])
    """
    result = values.copy()
    for k in range(len(values)):
        if numeric[k]:
            i = np.searchsorted(names, hashes[k])
            if i < len(names) and names[i] == hashes[k]:
                result[k] = min(max((values[k] - means[i]) / (SPAN * sds[i]), -1.0), 1.0)
            else:
                result[k] = 0.0
    return result


@strict
def add(row: Floats, c: np.uint64, a: np.uint64, value: float) -> None:
    """Add one crossed pair to a row: steps 4 of the module's description.

    >>> row = np.zeros(4)
    >>> add(row, np.uint64(1), np.uint64(2), 1.0)
    >>> float(np.abs(row).sum())
    1.0
    """
    z = c * np.uint64(0x9E3779B97F4A7C15) + a
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    i = np.int64((z & np.uint64(0x7FFFFFFFFFFFFFFF)) % np.uint64(len(row)))
    row[i] += -value if z >> np.uint64(63) else value


@strict
def cross(
    context: Hashes, context_values: Floats, arms: Hashes, arm_values: Floats, ids: Hashes,
    starts: NDArray[np.int64], dim: int, interactions: bool,
) -> Floats:  # fmt: skip
    """The normalised rows: (constant + context) x (constant + id + arm), hashed into ``dim`` entries.

    >>> none, zero = np.zeros(0, np.uint64), np.zeros(0)
    >>> float(np.abs(cross(none, zero, none, zero, none, np.zeros(2, np.int64), 4, True)).sum())
    1.0
    """
    one = np.uint64(ONE)
    K = len(starts) - 1
    X = np.zeros((K, dim))
    for k in range(K):
        row = X[k]
        for c in range(-1, len(context)):
            hc = one if c < 0 else context[c]
            vc = 1.0 if c < 0 else context_values[c]
            add(row, hc, one, vc)
            if vc == 0.0 or (c >= 0 and not interactions):
                continue
            if len(ids):
                add(row, hc, ids[k], vc)
            for a in range(starts[k], starts[k + 1]):
                add(row, hc, arms[a], vc * arm_values[a])
        total = 0.0
        for i in range(dim):
            total += row[i] * row[i]
        if total > 0.0:
            norm = math.sqrt(total)
            for i in range(dim):
                row[i] /= norm
    return X
