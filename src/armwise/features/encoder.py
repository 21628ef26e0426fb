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

from armwise.agent import Floats, count
from armwise.features.scaling import Scaling
from armwise.features.tokens import ONE, Stack
from armwise.numerics.features import cross
from armwise.persist import Saved

MAX_DIM = 8192


class Encoder(Saved):
    """Rows of ``dim`` hashed features, one for each arm.

    >>> from armwise.features.scaling import UNSCALED
    >>> from armwise.features.tokens import NOTHING, part, stacked, tail
    >>> ids = [bytes(8), bytes(8)]
    >>> stack = stacked(part(b'{"time": "morning"}', "c"), tail(ids, [part(b'{"taste": "salty"}', "a"), NOTHING]))
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
        >>> from armwise.features.tokens import NOTHING, stacked, tail
        >>> row = Encoder(dim=8).rows(stacked(NOTHING, tail([bytes(8)], [NOTHING])), UNSCALED)[0]
        >>> float(round(row @ row, 12))
        1.0
        """
        return self._cross(stack, scaling, alone=False)

    def shared(self, stack: Stack, scaling: Scaling) -> Floats:
        """The (dim,) features of the context alone, for agents that have their arms fixed.

        >>> from armwise.features.scaling import UNSCALED
        >>> from armwise.features.tokens import NOTHING, stacked, tail
        >>> Encoder(dim=4).shared(stacked(NOTHING, tail([bytes(8)], [NOTHING])), UNSCALED).shape
        (4,)
        """
        row: Floats = self._cross(stack, scaling, alone=True)[0]
        return row

    def _cross(self, stack: Stack, scaling: Scaling, alone: bool) -> Floats:
        names, means, deviations = scaling.names, scaling.means, scaling.deviations
        return cross(stack.words, names, means, deviations, self.dim, self.interactions, alone, ONE)
