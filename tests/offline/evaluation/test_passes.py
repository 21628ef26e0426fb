"""How rows are divided among threads."""

from armwise.offline.evaluation.passes import _ends


def test_parts_are_whole_blocks_of_the_bootstrap():
    assert _ends(100, 2) == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert _ends(100_000, 1) == [(0, 50000), (50000, 100000)]
