"""A decision: drawn from a model, and answered as it was journaled."""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
from collections.abc import Sequence

import msgspec
import numpy as np

from armwise.features.encoding.arms import ArmColumns, read_arm
from armwise.features.encoding.tokens import InvalidInput, PackedTokens
from armwise.service.journal.events import Decision, Share, UnwrittenArms, decided
from armwise.service.journal.writes import Write, Written
from armwise.service.model.drawing.encoded import Drawn, EncodedRequest
from armwise.service.model.drawing.in_flight import Reservation
from armwise.service.model.model import DrawRequest, Model
from armwise.service.model.versions import draw_among


class Answer(msgspec.Struct):
    """The answer to a request; ``probabilities`` of all arms sent, in their order (0 if excluded)."""

    id: str
    arm: str
    probability: float
    probabilities: list[tuple[str, float]]
    version: int
    seq: int
    again: bool  # it had been decided before; this is the same answer


def answer(written: Written, write: Write | None = None) -> Answer:
    """The answer to a journaled decision; its own write makes it faster."""
    if write is not None and not written.again:
        decision = write.event
        if isinstance(decision, Decision):
            p, arm = decision.p, decision.arm
            if decision.order:  # the journal has those that were excluded last
                p, arm = [0.0] * len(write.names), decision.order[arm]
                for place, share in zip(decision.order, decision.p):
                    p[place] = share
            pairs = list(zip(write.names, p))
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


def drawn(
    model: Model,
    context: bytes,
    arms: ArmColumns,
    excluded: Sequence[str],
    u: float,
    tokens: PackedTokens | None = None,
    split: Sequence[float] = (),
) -> tuple[Decision, EncodedRequest, Reservation | None]:
    """Draw a decision with ``u`` in [0, 1); return it, not journaled yet, and the agent's view.

    With a ``split`` the arms have these probabilities, whatever the model thinks; it learns all the same.
    Where the model counts what is under way, it counts this one for as long as what comes third is held.
    """
    order: list[int] = []
    sent = offered = arms
    if excluded:
        order = order_of(arms.ids, excluded)
        sent, offered = arms.picked(order), arms.picked(order[: len(order) - len(set(excluded))])
    settings = model.settings
    among: dict[str, Share] = {}
    drawn_by, note = "", None
    if settings.apprentice:
        [choice] = model.decide([DrawRequest(context, offered, 0.0, tokens)])  # refuses what could not be learnt
        p, arm, scaling = [1.0] + [0.0] * (len(offered.ids) - 1), 0, b""
    elif split:
        if len(split) != len(offered.ids):
            raise InvalidInput(f"split must have one probability for each of {len(offered.ids)} arms, got {len(split)}")
        p = [float(share) for share in split]
        arm = min(bisect.bisect_right(list(itertools.accumulate(p)), u), len(p) - 1)
        choice = Drawn(arm, np.array(p), note, model.see(context, offered, tokens))
        scaling = choice.seen.scaling.packed
    else:
        if model.versions:
            choice, among, drawn_by = draw_among(model, context, offered, u, tokens)
        else:
            [choice] = model.decide([DrawRequest(context, offered, u, tokens)])
        p, arm, scaling = choice.p.tolist(), int(choice.arm), choice.seen.scaling.packed
        if choice.note is not None:
            note = msgspec.json.decode(msgspec.json.encode(choice.note))  # as a replay will find it
    decision = Decision(
        msgspec.Raw(context), UnwrittenArms(sent), p, arm, model.version,  # type: ignore[arg-type]
        round(settings.window * 1000), settings.default, settings.rule, model.learns, False, settings.apprentice,
        note, scaling, order, among=among, drawn_by=drawn_by,
    )  # fmt: skip
    return decision, choice.seen, None if settings.apprentice else choice.held


def undrawn(model: Model, context: bytes, arms: ArmColumns, excluded: Sequence[str], deferred: bool) -> Decision:
    """The decision that a request asks for, without an arm: for comparison with one made before."""
    order = order_of(arms.ids, excluded) if excluded else []
    sent = arms.picked(order) if excluded else arms
    p = [0.0] * (len(arms.ids) - len(set(excluded)))
    asked = Decision(msgspec.Raw(context), [], p, 0, model.version, 0, 0.0, deferred=deferred, order=order)
    asked.sent = sent.raws
    return asked


def uniform(secret: bytes, app: str, id: str) -> float:
    """See ``Engine.uniform``."""
    digest = _begun(secret, app).copy()
    digest.update(id.encode())
    return (int.from_bytes(digest.digest(), "little") >> 11) / 2.0**53


@functools.lru_cache(maxsize=256)
def _begun(secret: bytes, app: str) -> hashlib.blake2b:
    return hashlib.blake2b(f"{app}\0".encode(), digest_size=8, key=secret)


def order_of(ids: Sequence[str], excluded: Sequence[str]) -> list[int]:
    """Positions of the offered arms, then of the excluded ones."""
    out = set(excluded)
    if strange := out - set(ids):
        raise InvalidInput(f"excluded: {sorted(strange)[0]!r} is not one of the arms")
    if len(out) == len(ids):
        raise InvalidInput("every arm is excluded")
    return [i for i, id in enumerate(ids) if id not in out] + [i for i, id in enumerate(ids) if id in out]
