"""Numbers in answers."""

from armwise.offline.results.answers import signed


def test_a_number_has_its_sign():
    assert signed(0.5) == "+0.5000"
    assert signed(-0.25) == "-0.2500"
