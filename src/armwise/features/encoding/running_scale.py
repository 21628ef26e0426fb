"""The scale of numbers, from what the journal has seen of them (step 3 of ``encoder``)."""

from __future__ import annotations

import msgspec
import numpy as np

from armwise.core.agent import Floats
from armwise.core.saving import Saved
from armwise.features.encoding.tokens import Hashes, RequestTokens, Table, as_table
from armwise.native.decisions import take_numbers
from armwise.native.features import varied, welford

MAX_NAMES = 4096  # numbers under later names stay 0: a hostile stream of names must not grow the model


class Scaling(msgspec.Struct, frozen=True, gc=False):
    """The means and deviations of some names, sorted by hash: what a decision was made with."""

    packed: bytes  # all names' hashes, then all means, then all deviations, 8 little-endian bytes each

    @classmethod
    def joined(cls, names: Hashes, means: Floats, deviations: Floats) -> Scaling:
        """From its three columns."""
        return cls(names.tobytes() + means.tobytes() + deviations.tobytes())

    @property
    def columns(self) -> tuple[Hashes, Floats, Floats]:
        """Names, means and deviations."""
        n = len(self.packed) // 24
        numbers = np.frombuffer(self.packed, np.float64)
        return np.frombuffer(self.packed, np.uint64, n), numbers[n : 2 * n], numbers[2 * n :]

    @property
    def names(self) -> Hashes:
        """The names' hashes."""
        return self.columns[0]

    @property
    def means(self) -> Floats:
        """The mean under each name."""
        return self.columns[1]

    @property
    def deviations(self) -> Floats:
        """The deviation under each name."""
        return self.columns[2]


UNSCALED = Scaling(b"")


class Scaler(Saved):
    """The mean and spread of every named number, in a table that grows as names appear."""

    _learnt = ("names", "counts", "means", "squares")

    def __init__(self) -> None:
        self.names: Hashes = np.zeros(0, np.uint64)  # sorted, so that a lookup is a binary search
        self.counts: Floats = np.zeros(0)
        self.means: Floats = np.zeros(0)
        self.squares: Floats = np.zeros(0)

    def update(self, *tables: Table) -> None:
        """Take in the numbers of some decisions, in order: the same to the bit as one after the other."""
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

    def take(self, stack: RequestTokens) -> None:
        """``update`` with the numbers of one request."""
        arms = stack.tail
        if not take_numbers(
            stack.context.counted, arms.words, arms.n, self.names, self.counts, self.means, self.squares
        ):
            self.update(stack.table)

    def scaling(self, stack: RequestTokens) -> Scaling:
        """Mean and deviation of each number in a request that has varied."""
        return Scaling.joined(*varied(self.names, self.counts, self.means, self.squares, stack.table))
