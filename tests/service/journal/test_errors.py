"""Messages name a slot's decision by the id of its list."""

from __future__ import annotations

from armwise.service.engine.requests.slots import slot_id
from armwise.service.journal.errors import Conflict, Unknown


def test_the_slot_is_left_out_of_a_message():
    slot = slot_id("e1", 12)
    assert (
        str(Conflict(f"event {slot} was requested before with other content"))
        == "event e1 was requested before with other content"
    )
    unknown = Unknown(f"no decision has the id {slot}", slot)
    assert (str(unknown), unknown.id) == ("no decision has the id e1", slot)
