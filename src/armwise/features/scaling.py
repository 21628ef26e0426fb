"""The scale of numbers, from what the journal has seen of them (step 3 of ``encoder``)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armwise.agent import Floats
from armwise.features.tokens import Hashes, Stack, Table, as_table
from armwise.numerics.jit import exact, exact_block
from armwise.persist import Saved

MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model
MOST_ASKED = 256  # sets of names whose scaling is remembered
SPAN = 3.0  # standard deviations that fill [-1, 1]


@dataclass(frozen=True, eq=False)
class Scaling:
    """The means and deviations of some names, sorted by hash: what a decision was made with.

    >>> one = Scaling(np.array([255], np.uint64), np.array([2.0]), np.array([0.5]))
    >>> Scaling.of(one.journal).means
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

    @cached_property
    def journal(self) -> str:
        """For the journal: all names' hashes, then all means, then all deviations, 8 little-endian bytes each, base64.

        >>> UNSCALED.journal
        ''
        """
        if not len(self.names):
            return ""
        columns = (self.names.astype("<u8"), self.means.astype("<f8"), self.deviations.astype("<f8"))
        return base64.b64encode(b"".join(column.tobytes() for column in columns)).decode()


UNSCALED = Scaling(np.empty(0, np.uint64), np.empty(0), np.empty(0))


class Scaler(Saved):
    """The mean and spread of every named number, in a table that grows as names appear.

    >>> from armwise.features.tokens import part, stacked
    >>> scaler = Scaler()
    >>> scaler.update(part(b'{"hour": 9}', "c").table, part(b'{"hour": 15}', "c").table)
    >>> scaling = scaler.scaling(stacked(part(b'{"hour": 9}', "c"), [], []))
    >>> scaling.means, scaling.deviations
    (array([12.]), array([3.]))
    """

    _learnt = ("names", "counts", "means", "squares")

    def __init__(self) -> None:
        self.names: Hashes = np.zeros(0, np.uint64)  # sorted, so that a lookup is a binary search
        self.counts: Floats = np.zeros(0)
        self.means: Floats = np.zeros(0)
        self.squares: Floats = np.zeros(0)
        self._asked: dict[frozenset[bytes], Scaling] = {}

    def update(self, *tables: Table) -> None:
        """Take in the numbers of some decisions, in order: the same to the bit as one after the other.

        >>> from armwise.features.tokens import part
        >>> scaler = Scaler()
        >>> scaler.update(part(b'{"hour": 9, "day": 2}', "c").table)
        >>> scaler.counts
        array([1., 1.])
        """
        self._asked = {}
        table = tables[0] if len(tables) == 1 else as_table(tables)
        if welford(self.names, self.counts, self.means, self.squares, table, False):
            return
        if len(tables) > 1:  # each may bring new names while there is room
            for each in tables:
                self.update(each)
            return
        hashes = table[table[:, 2] != 0, 0]
        fresh = np.setdiff1d(hashes, self.names)[: MAX_NAMES - len(self.names)]
        at = np.searchsorted(self.names, fresh)
        self.names = np.insert(self.names, at, fresh)
        self.counts, self.means, self.squares = (
            np.insert(column, at, 0.0) for column in (self.counts, self.means, self.squares)
        )
        welford(self.names, self.counts, self.means, self.squares, table, True)

    def scaling(self, stack: Stack) -> Scaling:
        """Mean and deviation of each number in a request that has varied; remembered until the next update.

        >>> from armwise.features.tokens import NOTHING, part, stacked
        >>> Scaler().scaling(stacked(part(b'{"hour": 9}', "c"), [], [])).names.size
        0
        """
        numbers = stack.numbers
        found = self._asked.get(numbers)
        if found is None:
            found = Scaling(*varied(self.names, self.counts, self.means, self.squares, stack.table))
            if len(self._asked) < MOST_ASKED:
                self._asked[numbers] = found
        return found


@exact
def place(names: Hashes, name: np.uint64) -> int:
    """Where a name is in the sorted names, or -1.

    >>> place(np.array([3, 7], np.uint64), np.uint64(7)), place(np.array([3, 7], np.uint64), np.uint64(8))
    (1, -1)
    """
    low, high = 0, len(names)
    while low < high:
        middle = (low + high) >> 1
        if names[middle] < name:
            low = middle + 1
        else:
            high = middle
    return low if low < len(names) and names[low] == name else -1


@exact
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


@exact_block
def welford(names: Hashes, counts: Floats, means: Floats, squares: Floats, table: Table, strangers: bool) -> bool:
    """Welford's update of each named mean and sum of squares.

    Names that are not there are passed over if ``strangers`` may be; if not, nothing is changed and the answer is no.

    >>> n, m, s = np.zeros(1), np.zeros(1), np.zeros(1)
    >>> table = np.array([[7, 0, 1], [7, 0, 1]], np.uint64)
    >>> table.view(np.float64)[:, 1] = 1.0, 3.0
    >>> welford(np.array([8], np.uint64), n, m, s, table, False)
    False
    >>> welford(np.array([7], np.uint64), n, m, s, table, False), m[0], s[0]
    (True, np.float64(2.0), np.float64(2.0))
    """
    places = np.empty(len(table), np.int64)
    for k in range(len(table)):
        places[k] = place(names, table[k, 0]) if table[k, 2] else -1
        if places[k] < 0 and table[k, 2] and not strangers:
            return False
    numbers = table.view(np.float64)
    for k in range(len(table)):
        i = places[k]
        if i >= 0:
            counts[i] += 1.0
            delta = numbers[k, 1] - means[i]
            means[i] += delta / counts[i]
            squares[i] += delta * (numbers[k, 1] - means[i])
    return True


@exact
def scaled(value: float, mean: float, deviation: float) -> float:
    """A number brought into [-1, 1]: step 3 of ``encoder``.

    >>> scaled(5.0, 2.0, 2.0)
    0.5
    """
    return min(max((value - mean) / (SPAN * deviation), -1.0), 1.0)
