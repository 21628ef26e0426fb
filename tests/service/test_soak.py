"""A few seconds of ``soak``, which ``make torture`` runs for ten minutes."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest

from tests.service.soak import soak


def test_hang_ups_stalled_readers_erasures_and_training_under_load(tmp_path: Path) -> None:
    done = soak(6.0, str(tmp_path / "data"), stalled=40)
    assert done["decisions"] > 20 and done["hang-ups"] > 5 and done["stalled"] > 20
    assert done["erasures"] >= 1 and done["versions"] >= 1


def test_a_run_that_fails_ends_its_threads_and_its_process(tmp_path: Path) -> None:
    """Before, they went on until the tests ended, and took the processor from the tests that followed."""
    threads, processes = set(threading.enumerate()), set(multiprocessing.active_children())

    def fail(text: str) -> None:
        raise AssertionError("memory grew")

    with pytest.raises(AssertionError, match="memory grew"):
        soak(1.0, str(tmp_path / "data"), stalled=10, say=fail)
    for thread in set(threading.enumerate()) - threads:
        thread.join(10.0)
    assert set(threading.enumerate()) <= threads
    assert set(multiprocessing.active_children()) <= processes
