"""A decision that is read in one compiled call is what the general reader makes of it; the rest is left to that."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import Stack, part
from armwise.service.engine.draw import drawn
from armwise.service.errors import Damaged
from armwise.service.journal.events import Creation, Decision, Row
from armwise.service.journal.replayed import replayed
from armwise.service.model.build import build_model


def _row(body: bytes) -> Row:
    return Row(7, 0, "shop", "decision", "e1", body)


def _bodies(n: int, seed: int) -> list[bytes]:
    """Decisions as a service journals them: numbers with means and deviations, and whoever asked."""
    chance, model, found = random.Random(seed), build_model(Creation()), []
    for k in range(n):
        names = chance.sample("abcdefgh", chance.randrange(1, 6))
        sent = [
            json.dumps(
                name
                if chance.random() < 0.3
                else {"id": name, "features": {"x": chance.gauss(0, 1), "kind": chance.choice("pq"), "n": [1, k]}}
            ).encode()
            for name in names
        ]
        about = {"hour": chance.randrange(24), "city": chance.choice(["Oslo", "Köln"])}
        context = json.dumps(about, ensure_ascii=False).encode()
        decision, seen, _ = drawn(model, context, read_arms(sent), [], chance.random())
        decision.by = chance.choice(["", "shop"])
        model.meet(decision, seen.stack)
        found.append(msgspec.json.encode(decision))
    return found


def _the_same(body: bytes) -> bool:
    """Whether it was read; if it was, then as the general reader does."""
    if (found := replayed(_row(body))) is None:
        return False
    decision = _row(body).event
    assert isinstance(decision, Decision)
    sent = [bytes(arm) for arm in decision.arms]
    assert [bytes(arm) for arm in found.decision.arms] == sent
    assert msgspec.structs.replace(found.decision, sent=[], context=msgspec.Raw()) == msgspec.structs.replace(
        decision, sent=[], context=msgspec.Raw()
    )
    assert bytes(found.decision.context) == bytes(decision.context)
    context, arms = part(bytes(decision.context), "c"), read_arms(sent)
    assert found.stack == Stack(context, arms.tail)
    assert found.drawn == Stack(context, read_arms([sent[decision.arm]]).tail)
    assert found.scaling == Scaling.of(decision.scaling)
    return True


def test_what_a_service_journals_is_read_and_is_the_same() -> None:
    # A failure would mean that the process that leads learns something else of the decisions of another than of its
    # own, or reads them the slow way.
    bodies = _bodies(200, seed=1)
    assert all(map(_the_same, bodies))
    assert any(b'"scaling"' in body for body in bodies)
    assert any(b'"by"' in body for body in bodies)


def test_a_damaged_decision_is_left_to_the_general_reader_or_read_as_it_reads_it() -> None:
    # 6,000 bodies with a byte or a piece changed, of which many still are JSON.
    chance, bodies = random.Random(2), _bodies(30, seed=3)
    outcomes = {True: 0, False: 0}
    for _ in range(6000):
        body = bytearray(chance.choice(bodies))
        at = chance.randrange(len(body))
        kind = chance.randrange(4)
        if kind == 0:
            body[at] = chance.randrange(256)
        elif kind == 1:
            body[at : at + 1] = chance.choice([b"0", b'"', b",", b"1e3", b" ", b"\\u0041", b"null"])
        elif kind == 2:
            del body[at : at + chance.randrange(1, 9)]
        else:
            body[at:at] = body[max(0, at - 20) : at]
        try:
            outcomes[_the_same(bytes(body))] += 1
        except Damaged:  # read, though the general reader would not
            raise AssertionError(bytes(body)) from None
    assert min(outcomes.values()) > 300, outcomes


PLAIN: dict[str, Any] = {
    "context": {"hour": 9},
    "arms": ["a", {"id": "b", "features": {"x": 1.5}}],
    "p": [0.25, 0.75],
    "arm": 1,
    "version": 7,
    "window": 1000,
    "default": 0.0,
}


@pytest.mark.parametrize(
    "change",
    [{"deferred": True}, {"apprentice": True}, {"note": 1}, {"order": [0, 1]}, {"p": [1.0]}, {"arm": 2}, {"arm": -1},
     {"arm": 1.0}, {"window": "1000"}, {"rule": ""}, {"learn": ""}, {"scaling": "AAA"}, {"scaling": "AA=A"},
     {"scaling": "AAAA"}, {"slots": ["s"]}, {"context": 3}, {"arms": []}, {"arms": ["a", "a"]}, {"strange": 1}],
    ids=str,
)  # fmt: skip
def test_what_most_are_not_is_left_to_the_general_reader(change: dict[str, Any]) -> None:
    assert _the_same(json.dumps(PLAIN).encode())
    assert replayed(_row(json.dumps(PLAIN | change).encode())) is None


def test_an_arm_that_comes_again_is_read_again_where_it_has_changed() -> None:
    # Arms are remembered by their ids and taken for the same only if their whole text is.
    def words(*arms: dict[str, Any]) -> bytes:
        body = PLAIN | {"arms": list(arms), "p": [1.0 / len(arms)] * len(arms), "arm": 0}
        found = replayed(_row(json.dumps(body).encode()))
        assert found is not None
        return found.stack.tail.words

    one, other = {"id": "a", "features": {"x": 1, "y": 2}}, {"id": "a", "features": {"x": 1, "y": 3}}
    first = words(one)
    assert words(other) != first
    assert words(one) == first
    assert words(one, {"id": "b", "features": {"x": 1, "y": 2}})[: len(first)] == first
    assert words({"id": "a", "features": {"x": 1, "y": 2, "z": 3}}) != first
