"""A Decider and a process that forks: the child is told what to do, the parent and the folder are left as they were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import os, sys, time
import armwise as aw

shop = aw.Decider(*sys.argv[1:], seed=1)
shop.decide({}, arms=["a", "b"], id="before")
child = os.fork()
if not child:  # as a worker of gunicorn --preload, of uWSGI or of Celery
    try:
        shop.decide({}, arms=["a", "b"])
    except RuntimeError as error:
        print(error, flush=True)
    shop.close()
    sys.exit(0)  # with what runs at exit
os.waitpid(child, 0)
print(shop.reward("before", 1.0).status, flush=True)
print(shop.decide({}, arms=["a", "b"]).arm in "ab", flush=True)
shop.close()
"""


@pytest.mark.parametrize("storage", ["memory", "folder"])
def test_a_forked_child_is_told_to_open_its_own(storage: str, tmp_path: Path) -> None:
    """It hung for ever in a folder; in memory each child learnt alone, and nobody was told."""
    where = [] if storage == "memory" else [str(tmp_path / "d")]
    done = subprocess.run([sys.executable, "-c", CHILD, *where], capture_output=True, text=True, timeout=60, check=True)
    told, status, decides = done.stdout.splitlines()
    assert "before it forked this one" in told
    assert "open it after the fork" in told and "armwise serve" in told
    assert (status, decides) == ("taken", "True")


WORKERS = """
import functools, os, sys
import armwise as aw

@functools.cache
def shop():  # opened by the worker, on first use
    return aw.Decider(sys.argv[1], seed=1)

child = os.fork()
if not child:
    print(shop().decide({}, arms=["a"]).arm, flush=True)
    shop().close()
    os._exit(0)
os.waitpid(child, 0)
print(shop().decide({}, arms=["a"]).arm, flush=True)
shop().close()
"""


def test_one_worker_after_the_other_opens_a_folder_on_first_use(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKERS, str(tmp_path / "d")], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["a", "a"]


CLIENT = """
import os, sys
import armwise as aw

shop = aw.Client(sys.argv[1])
first = shop.decide({}, arms=["a"]).arm  # its connection is kept
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        os.write(1, shop.decide({}, arms=["a"]).arm.encode() + b"\\n")  # in one piece: the workers share it
        os._exit(0)
    children.append(child)
os.write(1, f"{first} {shop.decide({}, arms=['a']).arm}\\n".encode())
for child in children:
    os.waitpid(child, 0)
"""


def test_a_client_is_used_by_every_worker(run: object, tmp_path: Path) -> None:
    running = run()  # type: ignore[operator]
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, running.url], capture_output=True, text=True, timeout=60, check=True
    )
    assert sorted(done.stdout.split()) == ["a"] * 5


EXPERIMENT = """
import os, sys
import armwise as aw

test = aw.Experiment("colour", ["a", "b"], storage=sys.argv[1])
arm = test.assign("u1")
child = os.fork()
if not child:
    for work in (lambda: test.assign("u1"), lambda: aw.Experiment("colour", ["a", "b"], storage=sys.argv[1])):
        try:
            work()
        except RuntimeError as error:
            print(error, flush=True)
    test.close()
    with aw.Experiment("other", ["a", "b"]) as own:
        print(own.assign("u1") in ("a", "b"), flush=True)
    sys.exit(0)
os.waitpid(child, 0)
print(test.assign("u1") == arm, flush=True)
test.close()
"""


def test_a_forked_child_is_told_to_open_its_own_experiment(tmp_path: Path) -> None:
    """It hung for ever."""
    words = [sys.executable, "-c", EXPERIMENT, str(tmp_path / "d")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    told, busy, own, same = done.stdout.splitlines()
    assert "this Experiment was opened" in told and "open it after the fork" in told
    assert "is serving from this journal" in busy
    assert (own, same) == ("True", "True")
