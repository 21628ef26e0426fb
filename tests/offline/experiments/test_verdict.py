"""What a verdict says of an early look."""

from armwise.offline.experiments.verdict import EarlyLook


def test_an_early_look_says_its_age():
    assert EarlyLook("buy", age=600.0, window=604800.0, results=()).within == "10 min"
