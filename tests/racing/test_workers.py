"""Workers that are ended early: quietly, and with nothing left behind."""

from __future__ import annotations

import threading
import time

from armwise.racing.workers import side_by_side


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
