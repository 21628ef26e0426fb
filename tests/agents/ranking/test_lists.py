"""Which arms a list may still show."""

from armwise.agents.ranking.lists import Offer, OpenSlots, read_offer


def test_an_arm_that_is_shown_is_no_longer_free():
    slots = OpenSlots(4, 2, Offer(available=(0, 1, 3)))
    slots.take(1)
    assert slots.free.tolist() == [0, 3]


def test_a_mask_of_arms_is_an_offer():
    assert read_offer(3, 2, [True, False, True], None, None, None) == Offer(available=(0, 2))
