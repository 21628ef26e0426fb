"""What a decision is answered with: read from its journaled event, or from the write that becomes one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from armwise.features.arms import read_arm
from armwise.features.tokens import InvalidInput
from armwise.serve.journal.append import Write, Written
from armwise.serve.journal.events import Decision, decided


class Answer(msgspec.Struct):
    """What a decision is answered with; ``probabilities`` of all arms sent, in their order (0 if excluded).

    >>> Answer("e1", "a", 1.0, [("a", 1.0)], 0, 1, False).arm
    'a'
    """

    id: str
    arm: str
    probability: float
    probabilities: list[tuple[str, float]]
    version: int
    seq: int
    again: bool  # it had been decided before; this is the same answer


def answer(written: Written, write: Write | None = None) -> Answer:
    """The answer to a journaled decision; quicker with the write that it came from.

    >>> from armwise.serve.journal.events import Row
    >>> body = b'{"context":{},"arms":["b","a"],"p":[1.0],"arm":0,"version":3,"window":1,"default":0.0,"order":[1,0]}'
    >>> answer(Written(Row(9, 0, "shop", "decision", "e1", body))).probabilities
    [('a', 0.0), ('b', 1.0)]
    """
    if write is not None and not written.again:
        decision = write.event
        if isinstance(decision, Decision) and not decision.order:
            pairs, arm = list(zip(write.names, decision.p)), decision.arm
            return Answer(written.row.id, *pairs[arm], pairs, decision.version, written.row.seq, False)
    decision = decided(written.row)
    arms = [read_arm(bytes(arm)).id for arm in decision.arms]
    p = decision.p + [0.0] * (len(arms) - len(decision.p))
    pairs = list(zip(arms, p))
    if decision.order:
        pairs = [pair for _, pair in sorted(zip(decision.order, pairs))]
    return Answer(
        written.row.id, arms[decision.arm], p[decision.arm], pairs, decision.version, written.row.seq, written.again
    )


def uniform(secret: bytes, app: str, id: str) -> float:
    """See ``Engine.uniform``.

    >>> uniform(b"secret", "shop", "e1")
    0.4446430623055688
    """
    digest = hashlib.blake2b(f"{app}\0{id}".encode(), digest_size=8, key=secret).digest()
    return (int.from_bytes(digest, "little") >> 11) / 2.0**53


def order_of(ids: Sequence[str], excluded: Sequence[str]) -> list[int]:
    """Positions of the offered arms, then of the excluded ones.

    >>> order_of(["a", "b"], ["a"])
    [1, 0]
    """
    out = set(excluded)
    if strange := out - set(ids):
        raise InvalidInput(f"excluded: {sorted(strange)[0]!r} is not one of the arms")
    order = sorted(range(len(ids)), key=lambda i: ids[i] in out)
    if len(out) == len(ids):
        raise InvalidInput("every arm is excluded")
    return order
