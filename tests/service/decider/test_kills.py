"""A durable Decider survives SIGKILL (long: ``python -m tests.service.decider.decider_kills --kills 200``)."""

from pathlib import Path

from tests.service.decider.decider_kills import kill_again_and_again


def test_a_killed_process_loses_nothing_it_was_answered(tmp_path: Path) -> None:
    # A failure would mean that decide or reward answered before the disk had it.
    counts = kill_again_and_again(5, str(tmp_path / "decisions"))
    assert counts["decisions"] > 0 and counts["lists"] > 0
