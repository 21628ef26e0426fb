"""A durable Decider survives SIGKILL; ``python tests/decider/decider_kills.py --kills 200`` is the long version."""

from pathlib import Path

from decider_kills import kill_again_and_again


def test_a_killed_process_loses_nothing_it_was_answered(tmp_path: Path) -> None:
    # A failure would mean that decide or reward answered before the disk had it.
    counts = kill_again_and_again(5, str(tmp_path / "decisions"))
    assert counts["decisions"] > 0
