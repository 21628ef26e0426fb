"""A few schedules of the simulated cluster, of which ``make torture`` runs a thousand.

A process of its own runs them, since the order of sets is a part of a schedule.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.service.simulation.bugs import BUGS


def simulate(*words: str) -> str:
    command = [sys.executable, "-m", "tests.service.simulation", *words]
    path = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_no_schedule_breaks_a_promise_and_a_seed_is_one_schedule() -> None:
    """A failure prints the seed that replays it: a promise of docs/promises.md was broken."""
    traces = {re.findall(r"trace (\S+)", simulate("--seed", "40", "--schedules", "2"))[0] for _ in range(2)}
    assert len(traces) == 1, "one seed gave two schedules: a failure could not be replayed"


def test_the_workload_asks_for_every_route() -> None:
    """A failure names routes that no schedule tries, or what is wrong without any fault."""
    assert "asks for: none" in simulate("--routes")


def test_every_planted_bug_is_found() -> None:
    """A failure would mean that the simulation passes whatever the service does."""
    said = simulate("--bugs", "--seed", "3", "--schedules", "100")
    assert said.count(": found after ") == len(BUGS) == 5
