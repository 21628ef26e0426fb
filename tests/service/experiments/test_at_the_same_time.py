"""Experiments that several threads make and change at the same time: all of them get it, and no change is lost."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.service.experiments.definition import Definition
from armwise.service.experiments.hosted import HostedExperiment, create
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

AT_ONCE = {"name": "buy", "window": None}


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return, or raise, when they begin together."""
    found: list[Any] = [None] * len(calls)
    ready = threading.Barrier(len(calls))

    def run(k: int) -> None:
        ready.wait()
        try:
            found[k] = calls[k]()
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_clients_that_make_one_experiment_together_all_get_it(tmp_path: Path) -> None:
    running = Running(Service(Config(storage=str(tmp_path / "d"))))
    try:
        with aw.Client(running.url) as client:
            for turn in range(3):
                made = at_once(
                    *[lambda: aw.Experiment(f"test {turn}", ["a", "b"], AT_ONCE, storage=client) for _ in range(6)]  # noqa: B023
                )
                assert [type(each) for each in made] == [aw.Experiment] * 6, made
                assert len(made[0].settings["log"]) == 1
            other = at_once(
                lambda: aw.Experiment("other", ["a", "b"], AT_ONCE, storage=client),
                lambda: aw.Experiment("other", ["a", "c"], AT_ONCE, storage=client),
            )
            assert sorted(isinstance(each, ValueError) for each in other) == [False, True]
    finally:
        running.stop()


def test_changes_that_meet_are_all_made(tmp_path: Path) -> None:
    """A failure would mean that somebody's stop is undone by somebody else's ramp, without a word."""
    folder = str(tmp_path / "d")
    tests = [aw.Experiment("colour", ["a", "b"], AT_ONCE, storage=folder) for _ in range(4)]
    changes = [lambda i=i, k=k: tests[i].force(f"tester {i} {k}", "b") for i in range(4) for k in range(3)]
    assert at_once(*changes, lambda: tests[0].stop("b"), lambda: tests[1].ramp(0.5)) == [None] * 12 + ["b", None]
    made = tests[2].settings
    assert len(made["forced"]) == 12 and made["stopped"] == "b" and made["ramp"] == 0.5 and len(made["log"]) == 15
    for test in tests:
        test.close()


def test_a_change_that_meets_another_is_made_from_what_the_other_left(tmp_path: Path) -> None:
    with aw.Experiment("colour", ["a", "b"], AT_ONCE, storage=str(tmp_path / "d")) as test:
        assert isinstance(test._hosted, HostedExperiment)
        other, seen = HostedExperiment(test._hosted.engine, "colour"), []

        def edit(made: Definition) -> dict[str, Any]:
            seen.append(made.ramp)
            if len(seen) == 1:
                other.ramp(0.25)
            return {"ramp": made.ramp / 2}

        test._hosted.change("half the ramp", edit)
        assert seen == [1.0, 0.25] and test.settings["ramp"] == 0.125
        assert [line["what"] for line in test.settings["log"]] == ["created", "ramp 0.25", "half the ramp"]


def test_a_definition_of_other_arms_is_refused_by_whoever_comes_second(tmp_path: Path) -> None:
    with aw.Experiment("colour", ["a", "b"], AT_ONCE, storage=str(tmp_path / "d")) as test:
        assert isinstance(test._hosted, HostedExperiment)
        with pytest.raises(ValueError, match="arms: experiment 'colour' was made with"):
            create(test._hosted.engine, "colour", Definition.read(["a", "c"], AT_ONCE))
