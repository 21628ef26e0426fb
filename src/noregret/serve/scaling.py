"""The scale of numbers, from what the journal has seen of them (step 3 of ``features``)."""

from __future__ import annotations

import base64
from typing import NamedTuple

import numpy as np

from noregret.agent import Floats
from noregret.persist import Saved
from noregret.serve.tokens import Hashes, Table, strict

MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model
SPAN = 3.0  # standard deviations that fill [-1, 1]


class Scaling(NamedTuple):
    """The means and deviations of some names, sorted by hash: what a decision was made with.

    >>> one = Scaling(np.array([255], np.uint64), np.array([2.0]), np.array([0.5]))
    >>> Scaling.of(one.journal()).means
    array([2.])
    """

    names: Hashes
    means: Floats
    deviations: Floats

    @classmethod
    def of(cls, journaled: str) -> Scaling:
        """The scaling that ``journal`` wrote.

        >>> Scaling.of("").names.size
        0
        """
        if not journaled:
            return UNSCALED
        columns = np.frombuffer(base64.b64decode(journaled), "<u8").reshape(3, -1).astype(np.uint64)
        return cls(columns[0], columns[1].view(np.float64), columns[2].view(np.float64))

    def journal(self) -> str:
        """For the journal: all names' hashes, then all means, then all deviations, 8 little-endian bytes each, base64.

        >>> UNSCALED.journal()
        ''
        """
        if not len(self.names):
            return ""
        columns = (self.names.astype("<u8"), self.means.astype("<f8"), self.deviations.astype("<f8"))
        return base64.b64encode(b"".join(column.tobytes() for column in columns)).decode()


UNSCALED = Scaling(np.empty(0, np.uint64), np.empty(0), np.empty(0))


class Scaler(Saved):
    """The mean and spread of every named number, in a table that grows as names appear.

    >>> from noregret.serve.tokens import part
    >>> scaler = Scaler()
    >>> seen = np.concatenate([part(b'{"hour": 9}', "c").table, part(b'{"hour": 15}', "c").table])
    >>> scaler.update(seen)
    >>> scaler.scaling(seen).means, scaler.scaling(seen).deviations
    (array([12.]), array([3.]))
    """

    _learnt = ("names", "counts", "means", "squares")

    def __init__(self) -> None:
        self.names: Hashes = np.zeros(0, np.uint64)  # sorted, so that a lookup is a binary search
        self.counts: Floats = np.zeros(0)
        self.means: Floats = np.zeros(0)
        self.squares: Floats = np.zeros(0)

    def update(self, table: Table) -> None:
        """Take in the numbers of one decision, in order.

        >>> from noregret.serve.tokens import part
        >>> scaler = Scaler()
        >>> scaler.update(part(b'{"hour": 9, "day": 2}', "c").table)
        >>> scaler.counts
        array([1., 1.])
        """
        if not known(self.names, table):
            hashes = table[table[:, 2] != 0, 0]
            fresh = np.setdiff1d(hashes, self.names)[: MAX_NAMES - len(self.names)]
            at = np.searchsorted(self.names, fresh)
            self.names = np.insert(self.names, at, fresh)
            self.counts, self.means, self.squares = (
                np.insert(column, at, 0.0) for column in (self.counts, self.means, self.squares)
            )
        welford(self.names, self.counts, self.means, self.squares, table)

    def scaling(self, table: Table) -> Scaling:
        """Mean and deviation of each number in ``table`` that has varied.

        >>> from noregret.serve.tokens import part
        >>> Scaler().scaling(part(b'{"hour": 9}', "c").table).names.size
        0
        """
        return Scaling(*varied(self.names, self.counts, self.means, self.squares, table))


@strict
def place(names: Hashes, name: np.uint64) -> int:
    """Where a name is in the sorted names, or -1.

    >>> place(np.array([3, 7], np.uint64), np.uint64(7)), place(np.array([3, 7], np.uint64), np.uint64(8))
    (1, -1)
    """
    i = int(np.searchsorted(names, name))
    return i if i < len(names) and names[i] == name else -1


@strict
def known(names: Hashes, table: Table) -> bool:
    """Whether every numeric token has its name among the sorted names.

    >>> known(np.array([3], np.uint64), np.array([[3, 0, 1], [8, 0, 0]], np.uint64))
    True
    """
    strangers = 0
    for k in range(len(table)):
        strangers += table[k, 2] != 0 and place(names, table[k, 0]) < 0
    return strangers == 0


@strict
def varied(
    names: Hashes, counts: Floats, means: Floats, squares: Floats, table: Table
) -> tuple[Hashes, Floats, Floats]:
    """Name, mean and deviation of the numeric tokens whose deviation is positive.

    >>> one, two = np.array([7], np.uint64), np.array([2.0])
    >>> varied(one, two, two, two, np.array([[7, 0, 1]], np.uint64))
    (array([7], dtype=uint64), array([2.]), array([1.]))
    """
    wanted = np.zeros(len(names), np.bool_)
    for k in range(len(table)):
        if table[k, 2]:
            i = place(names, table[k, 0])
            if i >= 0 and np.sqrt(squares[i] / counts[i]) > 0.0:
                wanted[i] = True
    rows = np.flatnonzero(wanted)
    return names[rows], means[rows], np.sqrt(squares[rows] / counts[rows])


@strict
def welford(names: Hashes, counts: Floats, means: Floats, squares: Floats, table: Table) -> None:
    """Welford's update of each named mean and sum of squares; names beyond the table are passed over.

    >>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
    >>> table = np.array([[7, 0, 1], [7, 0, 1]], np.uint64)
    >>> table.view(np.float64)[:, 1] = 1.0, 3.0
    >>> welford(np.array([7], np.uint64), n, m, s, table)
    >>> m[0], s[0]
    (np.float64(2.0), np.float64(2.0))
    """
    numbers = table.view(np.float64)
    for k in range(len(table)):
        i = place(names, table[k, 0]) if table[k, 2] else -1
        if i >= 0:
            counts[i] += 1.0
            delta = numbers[k, 1] - means[i]
            means[i] += delta / counts[i]
            squares[i] += delta * (numbers[k, 1] - means[i])


@strict
def scaled(table: Table, names: Hashes, means: Floats, deviations: Floats) -> Floats:
    """The value of each token: numbers brought into [-1, 1], 0 under a name that has not varied; others as they are.

    >>> one, table = np.array([7], np.uint64), np.array([[7, 0, 1]], np.uint64)
    >>> table.view(np.float64)[:, 1] = 5.0
    >>> scaled(table, one, np.array([2.0]), np.array([2.0]))
    array([0.5])
    """
    numbers = table.view(np.float64)
    values = np.empty(len(table))
    for k in range(len(table)):
        values[k] = numbers[k, 1]
        if table[k, 2]:
            i = place(names, table[k, 0])
            values[k] = 0.0 if i < 0 else min(max((values[k] - means[i]) / (SPAN * deviations[i]), -1.0), 1.0)
    return values
