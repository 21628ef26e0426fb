"""Contexts and arms with names become rows of features: fixed hashing, crossed, with numbers standardised.

The decision service, ``Decider`` and ``Encoder`` build their rows with the same code. To the bit, so that any program
can build the same row:

0. **Plain.** A dictionary, a dataclass, a named tuple, or a row of pandas or polars is read as the JSON object that has
   its names and values in their order. NaN, NaT, NA and None are ``null``; a date is an object of ``year`` (number),
   ``month`` (text, "1" to "12"), ``day`` (number), ``weekday`` (text, in English) and, if it has a time, ``hour``
   (number); a set is its members as a list, sorted as text.

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

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from armwise.core.agent import Floats
from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler
from armwise.features.encoding.tokens import NO_TOKENS, ONE, PackedTokens, RequestTokens, hash_id, named_tokens, tail
from armwise.native.features import mix, scaled


class Feature(NamedTuple):
    """The part of one name, or of a pair, in one position of a row: ``sign`` (of the hash) times its value.

    >>> Feature("hour", 3, -1.0, -0.5).position
    3
    """

    name: str
    position: int
    sign: float
    value: float


class Encoder(HashedRows):
    """Rows of ``dim`` features from contexts and arms with names; numbers are scaled by those that ``fit`` has seen.

    ``interactions`` crosses every feature of the context with every feature of the arm; without them a context only
    moves all arms together. Positions have names again through ``describe``, ``names`` and ``coefficients``.

    >>> encoder = Encoder(dim=32).fit([{"hour": 9, "device": "phone"}, {"hour": 21, "device": "tv"}])
    >>> encoder.row({"hour": 21, "device": "phone"}).shape, encoder.rows_of({"hour": 9}, ["red", "green"]).shape
    ((32,), (2, 32))
    """

    _namespace: ClassVar[str] = "features."
    _learnt = ("scaler",)

    def __init__(self, dim: int = 128, interactions: bool = True) -> None:
        super().__init__(dim, interactions)
        self.scaler = Scaler()

    def fit(self, contexts: Iterable[Any], arms: Iterable[Any] = ()) -> Self:
        """Take in the numbers of contexts (and of arms), in order; more may follow later.

        >>> Encoder().fit([{"hour": 9}, {"hour": 15}]).scaler.means
        array([12.])
        """
        parts = [_tokens(context) for context in contexts]
        offered = list(arms)
        parts += read_named_arms(offered).features if offered else []
        self.scaler.update(*[RequestTokens(each, tail([], [])).table for each in parts] or [NO_TOKENS.table])
        return self

    def transform(self, contexts: Iterable[Any]) -> Floats:
        """One row per context, of the context alone.

        >>> Encoder(dim=8).transform([{"a": "x"}, {"a": "y"}]).shape
        (2, 8)
        """
        return np.array([self.row(context) for context in contexts], np.float64).reshape(-1, self.dim)

    def row(self, context: Any) -> Floats:
        """The (dim,) features of a context alone: what agents with fixed arms see.

        >>> float(np.linalg.norm(Encoder(dim=8).row({"tags": ["new", "cheap"], "user": {"city": "Oslo"}})).round(12))
        1.0
        """
        stack = RequestTokens(_tokens(context), tail([], []))
        return self.shared(stack, self.scaler.scaling(stack))

    def rows_of(self, context: Any, arms: Iterable[Any]) -> Floats:
        """The (K, dim) features of a context with each arm: an id, or a dictionary with an ``id``.

        >>> Encoder(dim=8).rows_of({"hour": 9}, ["red", {"id": "blue", "price": 3}]).shape
        (2, 8)
        """
        stack = RequestTokens(_tokens(context), read_named_arms(arms).tail)
        return self.rows(stack, self.scaler.scaling(stack))

    # ------------------------------------------------------------------ names back from positions

    def describe(self, context: Any, arm: Any = None) -> list[Feature]:
        """The parts of each name, and of each pair, in the row of a context (with an arm): their sums are the row.

        >>> encoder = Encoder(dim=8)
        >>> [feature.name for feature in encoder.describe({"device": "phone"}, "red")]
        ['1', 'arm=red', 'device=phone', 'device=phone x arm=red']
        >>> row = np.zeros(8)
        >>> for feature in encoder.describe({"device": "phone"}, "red"):
        ...     row[feature.position] += feature.value
        >>> bool(np.allclose(row, encoder.rows_of({"device": "phone"}, ["red"])[0]))
        True
        """
        offered = read_named_arms([arm]) if arm is not None else None
        ours, theirs = self._named(context, offered)
        found: list[Feature] = []
        for name, hash, value in ours:
            for other, their_hash, their_value in theirs:
                crossed = name != "1" and other != "1"
                if (value == 0.0 and other != "1") or (crossed and not self.interactions):
                    continue
                z = mix(hash, their_hash)
                called = other if name == "1" else name if other == "1" else f"{name} x {other}"
                sign = -1.0 if z >> 63 else 1.0
                found.append(Feature(called, (z & (2**63 - 1)) % self.dim, sign, sign * value * their_value))
        row = np.zeros(self.dim)
        np.add.at(row, [feature.position for feature in found], [feature.value for feature in found])
        norm = float(np.linalg.norm(row)) or 1.0
        return [feature._replace(value=feature.value / norm) for feature in found]

    def names(self, contexts: Iterable[Any], arms: Sequence[Any] = ()) -> list[str]:
        """The names in these contexts and arms by position; " + " joins names that share one.

        >>> Encoder(dim=4).names([{"device": "phone"}])
        ['1', 'device=phone', '', '']
        """
        found: list[dict[str, None]] = [{} for _ in range(self.dim)]
        for context in contexts:
            for arm in arms or [None]:
                for feature in self.describe(context, arm):
                    found[feature.position][feature.name] = None
        return [" + ".join(names) for names in found]

    def coefficients(self, weights: ArrayLike, contexts: Iterable[Any], arms: Sequence[Any] = ()) -> dict[str, float]:
        """The weight of each name in these contexts and arms, from a linear model's weights by position, largest first.

        >>> weights = np.arange(4.0)
        >>> Encoder(dim=4).coefficients(weights, [{"device": "phone"}])
        {'device=phone': 1.0, '1': 0.0}
        """
        theta = np.asarray(weights, np.float64)
        if theta.shape != (self.dim,):
            raise ValueError(f"weights must have shape ({self.dim},), one per position, got shape {theta.shape}")
        found: dict[str, float] = {}
        for context in contexts:
            for arm in arms or [None]:
                for feature in self.describe(context, arm):
                    found[feature.name] = float(feature.sign * theta[feature.position])
        return dict(sorted(found.items(), key=lambda pair: -abs(pair[1])))

    def _named(self, context: Any, arms: ArmColumns | None) -> tuple[list[Any], list[Any]]:
        """Name, hash and scaled number of each token of the context and of one arm, each with the constant first."""
        texts = [(read_context(context)[0], "c")]
        if arms is not None and (features := _features(bytes(arms.raws[0]))):
            texts.append((features, "a"))
        stack = RequestTokens(_tokens(context), arms.tail if arms is not None else tail([], []))
        scaling = self.scaler.scaling(stack)
        scales = dict(zip(scaling.names.tolist(), zip(scaling.means.tolist(), scaling.deviations.tolist())))
        sides: list[list[Any]] = []
        for text, space in texts:
            side = []
            for name, hash, number, numeric in named_tokens(text, space):
                value = (scaled(number, *scales[hash]) if hash in scales else 0.0) if numeric else number
                side.append((name, hash, value))
            sides.append(side)
        own = [] if arms is None else [(f"arm={arms.ids[0]}", int.from_bytes(hash_id(arms.ids[0]), "little"), 1.0)]
        theirs = [(f"arm.{name}", hash, value) for name, hash, value in (sides[1] if len(sides) > 1 else [])]
        return [("1", ONE, 1.0), *sides[0]], [("1", ONE, 1.0), *own, *theirs]


def _tokens(context: Any) -> PackedTokens:
    return read_context(context)[1]


def _features(arm: bytes) -> bytes:
    import msgspec

    sent = msgspec.json.decode(arm, type=dict[str, msgspec.Raw] | str)
    return bytes(sent["features"]) if isinstance(sent, dict) and "features" in sent else b""
