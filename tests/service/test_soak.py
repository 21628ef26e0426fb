"""A few seconds of ``soak``, which ``make torture`` runs for ten minutes."""

from __future__ import annotations

from pathlib import Path

from tests.service.soak import soak


def test_hang_ups_stalled_readers_erasures_and_training_under_load(tmp_path: Path) -> None:
    done = soak(6.0, str(tmp_path / "data"), stalled=40)
    assert done["decisions"] > 20 and done["hang-ups"] > 5 and done["stalled"] > 20
    assert done["erasures"] >= 1 and done["versions"] >= 1
