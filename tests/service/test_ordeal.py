"""Each of what ``make torture`` does fifty times, once: see ``ordeal``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.service.ordeal import one_on_sqlite, two_on_full_postgres, two_on_postgres, two_on_several


def test_two_processes_live_through_a_freeze_a_restart_a_storm_and_a_roll_out() -> None:
    result = two_on_postgres(freezes=1, restarts=1, storm=2000, seed=11)
    assert result["decisions"] > 50


def test_two_processes_live_through_a_database_of_two_that_hangs() -> None:
    """A failure would mean that one database that does not answer stops what the others could go on with.

    It hangs for longer than a busy machine could keep a client waiting that is served.
    """
    result = two_on_several(hangs=1, seed=11, length=(7.0, 7.0), silence=5.0)
    assert result["decisions"] > 50


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a disk for PostgreSQL that is small enough to fill")
def test_two_processes_live_through_a_full_disk_of_the_database() -> None:
    """A failure would mean that something acknowledged was lost, or that a freed disk needs somebody's help."""
    result = two_on_full_postgres(rounds=2, seed=11)
    assert result["decisions"] > 20 and result["refused"] > 0


def test_one_process_lives_through_a_wild_clock_and_a_full_disk(tmp_path: Path) -> None:
    result = one_on_sqlite(str(tmp_path / "data"), rounds=1)
    assert result["decisions"] > 20
