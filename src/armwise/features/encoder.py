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

import math

import numpy as np
from numpy.typing import NDArray

from armwise.agent import Floats, count
from armwise.features.scaling import Scaling, place, scaled
from armwise.features.tokens import ONE, Hashes, Stack
from armwise.numerics.jit import exact, exact_block
from armwise.persist import Saved

MAX_DIM = 8192
FEW = 600  # tokens of a request, the arms' ids included: at most 90,000 pairs, half a millisecond
Count = int | np.int64  # in a kernel; unsigned words would turn sums with signed ones into floats


class Encoder(Saved):
    """Rows of ``dim`` hashed features, one for each arm.

    >>> from armwise.features.scaling import UNSCALED
    >>> from armwise.features.tokens import NOTHING, part, stacked
    >>> ids = [bytes(8), bytes(8)]
    >>> stack = stacked(part(b'{"time": "morning"}', "c"), ids, [part(b'{"taste": "salty"}', "a"), NOTHING])
    >>> Encoder(dim=16).rows(stack, UNSCALED).shape
    (2, 16)
    """

    def __init__(self, dim: int = 128, interactions: bool = True) -> None:
        self.dim = count("dim", dim)
        if dim > MAX_DIM:
            raise ValueError(f"dim must be at most {MAX_DIM}, since agents keep dim x dim numbers, got {dim}")
        if not isinstance(interactions, bool):
            raise ValueError(f"interactions must be true or false, got {interactions!r}")
        self.interactions = interactions

    def rows(self, stack: Stack, scaling: Scaling) -> Floats:
        """The (K, dim) features of the arms, with the scaling that a decision used.

        >>> from armwise.features.scaling import UNSCALED
        >>> from armwise.features.tokens import NOTHING, stacked
        >>> row = Encoder(dim=8).rows(stacked(NOTHING, [bytes(8)], [NOTHING]), UNSCALED)[0]
        >>> float(round(row @ row, 12))
        1.0
        """
        return self._cross(stack, scaling, alone=False)

    def shared(self, stack: Stack, scaling: Scaling) -> Floats:
        """The (dim,) features of the context alone, for agents that have their arms fixed.

        >>> from armwise.features.scaling import UNSCALED
        >>> from armwise.features.tokens import NOTHING, stacked
        >>> Encoder(dim=4).shared(stacked(NOTHING, [bytes(8)], [NOTHING]), UNSCALED).shape
        (4,)
        """
        row: Floats = self._cross(stack, scaling, alone=True)[0]
        return row

    def _cross(self, stack: Stack, scaling: Scaling, alone: bool) -> Floats:
        names, means, deviations = scaling.names, scaling.means, scaling.deviations
        kernel = cross if len(stack.words) <= 3 * FEW else cross_block
        return kernel(stack.words, names, means, deviations, self.dim, self.interactions, alone)


@exact
def mix(c: np.uint64, a: np.uint64) -> np.uint64:
    """The hash of a pair: step 4 of the module's description.

    >>> hex(mix(np.uint64(1), np.uint64(2)))
    '0x975835de1c9756ce'
    """
    z = c * np.uint64(0x9E3779B97F4A7C15) + a
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@exact
def add(row: Floats, z: np.uint64, value: float) -> None:
    """Add a pair with this hash to a row.

    >>> row = np.zeros(4)
    >>> add(row, np.uint64(2**63 + 2), 1.0); row
    array([ 0.,  0., -1.,  0.])
    """
    n, rest = np.uint64(len(row)), z & np.uint64(0x7FFFFFFFFFFFFFFF)
    i = rest & (n - np.uint64(1)) if n & (n - np.uint64(1)) == 0 else rest % n  # division is slow
    row[np.int64(i)] += -value if z >> np.uint64(63) else value


@exact
def valued(
    words: NDArray[np.uint64], start: Count, n: Count, names: Hashes, means: Floats, deviations: Floats,
    places: NDArray[np.int64], values: Floats,
) -> None:  # fmt: skip
    """The values of the n tokens from ``start`` on; ``places`` has where the names were found for the part before.

    >>> from armwise.features.tokens import part, stacked
    >>> stack = stacked(part(b'{"hour": 5}', "c"), [], [])
    >>> value, means = np.empty(1), np.array([2.0])
    >>> valued(stack.words, 2, 1, stack.table[:, 0], means, means, np.zeros(1, np.int64), value)
    >>> value
    array([0.5])
    """
    numbers = words.view(np.float64)
    for k in range(n):
        at = start + 3 * k
        values[k] = numbers[at + 1]
        if words[at + 2]:
            i = places[k]
            if i >= len(names) or names[i] != words[at]:  # arms have mostly the same names in the same order
                i = place(names, words[at])
                places[k] = max(i, 0)
            values[k] = 0.0 if i < 0 else scaled(values[k], means[i], deviations[i])


@exact
def cross(
    words: NDArray[np.uint64], names: Hashes, means: Floats, deviations: Floats, dim: int, interactions: bool,
    alone: bool,
) -> Floats:  # fmt: skip
    """The normalised rows: (constant + context) x (constant + id + arm), hashed into ``dim`` entries.

    With ``alone`` it is one row, of the context and the constant.

    >>> none, zero = np.zeros(0, np.uint64), np.zeros(0)
    >>> X = cross(np.zeros(2, np.uint64), none, zero, zero, 4, True, True)
    >>> float(np.abs(X).sum())
    1.0
    """
    one = np.uint64(ONE)
    K = np.int64(1) if alone else np.int64(words[0])
    n = np.int64(words[1])
    most = len(words) // 3 + 1
    places, context, values = np.zeros(most, np.int64), np.empty(most), np.empty(most)
    hashes = np.empty(most, np.uint64)
    valued(words, 2, n, names, means, deviations, places, context)
    at = 2 + 3 * n
    X = np.zeros((K, dim))
    for k in range(K):
        row = X[k]
        m = np.int64(0) if alone else np.int64(words[at + 1])
        valued(words, at + 2, m, names, means, deviations, places, values)
        for c in range(-1, n):
            hc = one if c < 0 else words[2 + 3 * c]
            vc = 1.0 if c < 0 else context[c]
            add(row, mix(hc, one), vc)
            if vc == 0.0 or (c >= 0 and not interactions):
                continue
            if not alone:
                add(row, mix(hc, words[at]), vc)
            for a in range(m):  # by itself, so that it vectorises
                hashes[a] = mix(hc, words[at + 2 + 3 * a])
            for a in range(m):
                add(row, hashes[a], vc * values[a])
        at += 2 + 3 * m
        total = 0.0
        for i in range(dim):
            total += row[i] * row[i]
        if total > 0.0:
            norm = math.sqrt(total)
            for i in range(dim):
                row[i] /= norm
    return X


@exact_block
def cross_block(
    words: NDArray[np.uint64], names: Hashes, means: Floats, deviations: Floats, dim: int, interactions: bool,
    alone: bool,
) -> Floats:  # fmt: skip
    """``cross`` for requests that take long: other threads go on meanwhile.

    >>> none, zero = np.zeros(0, np.uint64), np.zeros(0)
    >>> cross_block(np.zeros(2, np.uint64), none, zero, zero, 4, True, True).shape
    (1, 4)
    """
    return cross(words, names, means, deviations, dim, interactions, alone)
