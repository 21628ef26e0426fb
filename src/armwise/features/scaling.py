"""The scale of numbers, from what the journal has seen of them (step 3 of ``encoder``)."""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armwise.agent import Floats
from armwise.features.tokens import Hashes, Stack, Table, as_table
from armwise.numerics.features import varied, welford
from armwise.persist import Saved

MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model
MOST_ASKED = 256  # sets of names whose scaling is remembered


@dataclass(eq=False)  # nobody changes it; frozen would cost a decision a microsecond
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
        return _read(journaled) if journaled else UNSCALED

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


@functools.lru_cache(maxsize=64)  # decisions of one batch share theirs
def _read(journaled: str) -> Scaling:
    columns = np.frombuffer(base64.b64decode(journaled), "<u8").reshape(3, -1).astype(np.uint64)
    return Scaling(columns[0], columns[1].view(np.float64), columns[2].view(np.float64))


UNSCALED = Scaling(np.empty(0, np.uint64), np.empty(0), np.empty(0))


class Scaler(Saved):
    """The mean and spread of every named number, in a table that grows as names appear.

    >>> from armwise.features.tokens import part, stacked, tail
    >>> scaler = Scaler()
    >>> scaler.update(part(b'{"hour": 9}', "c").table, part(b'{"hour": 15}', "c").table)
    >>> scaling = scaler.scaling(stacked(part(b'{"hour": 9}', "c"), tail([], [])))
    >>> scaling.means, scaling.deviations
    (array([12.]), array([3.]))
    """

    _learnt = ("names", "counts", "means", "squares")

    def __init__(self) -> None:
        self.names: Hashes = np.zeros(0, np.uint64)  # sorted, so that a lookup is a binary search
        self.counts: Floats = np.zeros(0)
        self.means: Floats = np.zeros(0)
        self.squares: Floats = np.zeros(0)
        self._asked: dict[tuple[frozenset[bytes], bytes], Scaling] = {}

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

        >>> from armwise.features.tokens import NOTHING, part, stacked, tail
        >>> Scaler().scaling(stacked(part(b'{"hour": 9}', "c"), tail([], []))).names.size
        0
        """
        numbers = stack.tail.numbers, stack.context.numbers  # which names are to be scaled
        found = self._asked.get(numbers)
        if found is None:
            found = Scaling(*varied(self.names, self.counts, self.means, self.squares, stack.table))
            if len(self._asked) < MOST_ASKED:
                self._asked[numbers] = found
        return found
