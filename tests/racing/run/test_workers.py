"""Workers that are ended early: quietly, and with nothing left behind."""

# mypy: disable-error-code="attr-defined, var-annotated"

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

from armwise.racing.run.workers import side_by_side


def test_workers_ended_while_tasks_wait_raise_nothing_in_any_thread(monkeypatch, recwarn):
    # A failure would mean that Ctrl-C in a race prints the traceback of an executor's thread.
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    for taken in (3, 6):
        answers = side_by_side(time.sleep, [(0.001,)] * 200, workers=2, backend="loky")
        for _ in range(taken):
            next(answers)
        answers.close()
    assert failures == []
    assert [str(warning.message) for warning in recwarn] == []
    assert sorted(side_by_side(pow, [(2, n) for n in range(9)], workers=2, backend="loky")) == [2**n for n in range(9)]


HELD = """
import signal
from armwise.racing.run.workers import side_by_side
print(*side_by_side(signal.pthread_sigmask, [(signal.SIG_BLOCK, ())] * 2, workers=2, backend="loky"))
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_workers_are_deaf_to_ctrl_c_from_their_first_moment():
    """In a new process, whose first worker brings helpers of its own: one of those let Ctrl-C through again.

    A failure would mean that a worker which is still importing when Ctrl-C comes prints a traceback.
    """
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{{{signal.SIGINT!r}}} {{{signal.SIGINT!r}}}", "set()"], done.stderr
