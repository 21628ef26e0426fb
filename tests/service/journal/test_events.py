"""Events as structs: what a row says of its event, and the event of a changed description."""

from __future__ import annotations

import msgspec
import pytest

from armwise.features.encoding.arms import read_arms
from armwise.service.journal.errors import Damaged
from armwise.service.journal.events import (
    Change,
    Creation,
    Decision,
    Reward,
    Row,
    Settings,
    UnwrittenArms,
    decided,
)


def test_a_damaged_body_is_named_and_its_kind_is_still_known():
    row = Row(7, 0, "shop", "reward", "e1", b"{")
    with pytest.raises(Damaged, match=r"event 7 \(reward\) is damaged: Input data was truncated"):
        _ = row.event
    assert row.is_a(Decision, Reward) and not row.is_a(Decision)


def test_scales_are_base64_in_the_journal():
    """A body that was written when the field was a text is read, and written to the byte again."""
    body = (
        b'{"context":{},"arms":["a"],"p":[1.0],"arm":0,"version":0,"window":1,"default":0.0,"scaling":"AAECAwQFBgc="}'
    )
    decision = decided(Row(7, 0, "shop", "decision", "e1", body))
    assert decision.scaling == bytes(range(8))
    assert msgspec.json.encode(decision) == body


def test_an_unknown_kind_is_named():
    with pytest.raises(Damaged, match="event 7 has a kind that this armwise does not know: 'later'"):
        _ = Row(7, 0, "shop", "later", "e1", b"{}").event


def test_another_event_is_no_decision():
    with pytest.raises(ValueError, match="event 3 is no decision, but create"):
        decided(Row(3, 0, "shop", "create", "", b"{}"))


@pytest.mark.parametrize(
    ("kind", "body", "teaches", "lesson"),
    [
        ("activate", b'{"decision":1,"shown":true}', 1, None),
        ("activate", b'{"decision":1}', 0, None),
        ("expire", b'{"decision":1,"lesson":0.0}', 1, (1, 0.0)),
        ("reward", b'{"value":1.0,"decision":1}', 0, None),
        ("create", b"{}", 0, None),
    ],
)
def test_what_a_row_teaches(kind: str, body: bytes, teaches: int, lesson: tuple[int, float] | None):
    row = Row(2, 0, "shop", kind, "e1", body)
    assert (row.teaches, row.lesson) == (teaches, lesson)


def test_new_settings_are_a_change_and_a_new_seed_a_creation():
    assert Creation(settings=Settings(window=60.0)).since(Creation()) == Change(window=60.0)
    assert Creation(seed=2).since(Creation()) == Creation(seed=2)
    assert Creation().since(Creation()) is None
    promised = Creation(settings=Settings(learn="arrival"))
    assert Creation().since(promised) == Creation()


def test_hidden_settings_are_not_shown():
    assert {"extra", "forgotten", "by_request"}.isdisjoint(Settings().public) and Settings().public["window"] == 600.0


def test_the_arms_of_a_new_decision_are_written_on_demand():
    made = Decision(msgspec.Raw(b"{}"), UnwrittenArms(read_arms([b'"a"'])), [1.0], 0, 0, 1, 0.0)  # type: ignore[arg-type]
    made.write_arms()
    assert msgspec.json.encode(made.sent) == b'["a"]' and len(made.arms) == 1
