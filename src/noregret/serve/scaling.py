"""The scale of numbers, from what the journal has seen of them (step 3 of ``features``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noregret.agent import Floats
from noregret.persist import Saved
from noregret.serve.tokens import NOTHING, Hashes, Part, strict

MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model
SPAN = 3.0  # standard deviations that fill [-1, 1]


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

    >>> from noregret.serve.tokens import part
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

        >>> from noregret.serve.tokens import part
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

        >>> from noregret.serve.tokens import part
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
def welford(names: Hashes, counts: Floats, means: Floats, squares: Floats, hashes: Hashes, values: Floats) -> None:
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
