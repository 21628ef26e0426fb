"""A decision that another process journaled, read in one compiled call where it is as most are."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import Part, Stack, Tail
from armwise.native.requests import read_journaled
from armwise.service.journal.events import EARLIEST, PROVISIONAL, Decision, Row


class Replayed(NamedTuple):
    """A decision and its tokens, those of the arm that was drawn also by themselves, and the scaling it was made with.

    >>> body = b'{"context":{},"arms":["a","b"],"p":[0.5,0.5],"arm":1,"version":7,"window":1000,"default":0.0}'
    >>> replayed(Row(8, 0, "shop", "decision", "e1", body)).drawn.tail.n
    1
    """

    decision: Decision
    stack: Stack
    drawn: Stack
    scaling: Scaling


def replayed(row: Row) -> Replayed | None:
    """What the body of a decision says; None if ``row.event`` has to read it, or to say what is wrong with it.

    >>> replayed(Row(8, 0, "shop", "decision", "e1", b'{"context":{}}')) is None
    True
    """
    found = read_journaled(row.body)
    if found is None:
        return None
    said, context, n_keys, words, drawn, packed = found
    text, arms, p, arm, version, window, default, rule, learn, scaling, by = said
    decision = Decision(
        msgspec.Raw(text), msgspec.Raw(arms), p, arm, version, window, default, rule or EARLIEST,  # type: ignore[arg-type]
        learn or PROVISIONAL, scaling=scaling, by=by,
    )  # fmt: skip
    about = Part(context, n_keys)
    return Replayed(decision, Stack(about, Tail(len(p), words)), Stack(about, Tail(1, drawn)), Scaling(packed))
