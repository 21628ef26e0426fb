"""A request for a decision, read in one compiled call where it is as most are."""

from __future__ import annotations

from typing import NamedTuple

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import Part, Tail
from armwise.native.requests import read_decision

MOST_SETS = 16  # of arms that are found again by their text
MOST_BYTES = 16 << 20  # that these texts have


class PlainRequest(NamedTuple):
    """What a body asks for; either ``arms`` or the ``catalogue`` that they are in.

    >>> read_plain(b'{"context": {"hour": 9}, "arms": ["a", "b"]}').arms.ids
    ('a', 'b')
    """

    context: bytes
    tokens: Part
    id: str | None
    deferred: bool
    catalogue: str | None
    arms: ArmColumns | None


class _Sets:
    """Long texts of arms that came, each with what was read from it; the last that came are first."""

    def __init__(self) -> None:
        self._both: tuple[list[bytes], list[ArmColumns]] = [], []  # replaced as a whole: several threads read it

    def read(self, body: bytes) -> PlainRequest | None:
        texts, sets = self._both
        found = read_decision(body, texts)
        if found is None:
            return None
        context, counted, n_keys, id, deferred, catalogue, known, ids, words, text, sent = found
        arms = None
        if known >= 0:
            arms = sets[known]
            if known:
                self._put_first(texts[known], arms)
        elif ids is not None and words is not None and text is not None:
            arms = ArmColumns(ids, Tail(len(ids), words), None, None, None, text)
            if sent is not None:
                self._put_first(sent, arms)
        return PlainRequest(context, Part(counted, n_keys), id, deferred, catalogue, arms)

    def _put_first(self, sent: bytes, arms: ArmColumns) -> None:
        texts, sets = self._both
        room, n = MOST_BYTES - len(sent), 0
        others = [i for i, text in enumerate(texts) if text is not sent][: MOST_SETS - 1]
        for n, i in enumerate(others, start=1):
            room -= len(texts[i])
            if room < 0:
                n -= 1
                break
        kept = others[:n]
        self._both = [sent, *(texts[i] for i in kept)], [arms, *(sets[i] for i in kept)]


def read_plain(body: bytes) -> PlainRequest | None:
    """A request for a decision; None if it is not as most are, or not right.

    >>> read_plain(b'{"arms": ["a", "a"]}') is None
    True
    """
    return _sets.read(body)


_sets = _Sets()
