"""What strangers pass to experiments: the same sentence in process and through a client, and nothing is changed."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

AT_ONCE = {"name": "buy", "window": None}


@pytest.fixture(params=["folder", "client"])
def test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[aw.Experiment]:
    if request.param == "folder":
        with aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=tmp_path / "d") as made:
            yield made
        return
    running = Running(Service(Config(storage=str(tmp_path / "d"))))
    with aw.Client(running.url) as client:
        yield aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=client)
    running.stop()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.stop("blue", by=5), "^by must be a text, got int 5"),
        (lambda t: t.stop("blue", why=None), "^why must be a text, got NoneType"),
        (lambda t: t.ramp(0.5, by=["ann"]), "^by must be a text"),
        (lambda t: t.force("u1", "blue", why=3), "^why must be a text"),
        (lambda t: t.force(5, "blue"), "^unit must be a text"),
        (lambda t: t.erase(b"u1"), "^unit must be a text"),
        (lambda t: t.assign(b"u1"), "^unit must be a text that is not empty, got bytes"),
        (lambda t: t.assign("\ud800"), "^unit must be a text that UTF-8 can hold"),
        (lambda t: t.assign_many("u1"), "^units must be a list of units"),
        (lambda t: t.assign_many(None), "^units must be a list of units"),
        (lambda t: t.assign_many([("u1", {}, 3)]), "^units must be units, or pairs of unit and context, got tuple"),
        (lambda t: t.outcome("u1", "1"), "^value must be a finite number, got str '1'"),
        (lambda t: t.outcome("u1", math.nan), "^value must be a finite number, got float nan"),
        (lambda t: t.outcome("u1", [1.0]), "^value must be a finite number, got list"),
        (lambda t: t.outcome("u1", 1.0, ["buy"]), "^metric must be a name, got list"),
        (lambda t: t.outcome("u1", 1.0, id=""), "the id of an outcome must have 1 to 256 characters"),
        (lambda t: t.outcome("u1", 1.0, id=[1]), "^id must be a text, got list"),
        (lambda t: t.outcome("u1", 1.0, id="\ud800"), "^the id of an outcome must be a text that UTF-8 can hold"),
        (lambda t: t.ramp(0.5, by="\ud800"), "^by must be a text that UTF-8 can hold"),
        (lambda t: t.stop("blue", why="\ud800"), "^why must be a text that UTF-8 can hold"),
        (lambda t: t.outcome_many("u1"), "^outcomes must be"),
        (lambda t: t.outcome_many(7), "^outcomes must be"),
        (lambda t: t.outcome_many([("u1", 1.0, "buy", "z"), ("u2", 1.0, "buy", "z")]), "'z' is there twice"),
        (lambda t: t.outcome_many([("u1", 1.0, "buy", "z"), ("u1", 0.0, "buy", "z")]), "'z' is there twice"),
    ],
)
def test_bad_arguments_are_named_and_change_nothing(test: aw.Experiment, call: Any, message: str) -> None:
    test.assign_many(["u1", "u2"])
    before = test.settings, str(test.verdict())
    with pytest.raises(ValueError, match=message):
        call(test)
    assert (test.settings, str(test.verdict())) == before


def test_numbers_of_numpy_and_truths_are_outcomes(test: aw.Experiment) -> None:
    values = [True, np.True_, 1, np.int64(1), np.float32(1.0), np.float64(1.0)]
    arms = test.assign_many([f"u{i}" for i in range(len(values))])
    told = test.outcome_many([(arm.unit, value) for arm, value in zip(arms, values, strict=True)])
    assert [receipt.status for receipt in told] == ["taken"] * len(values)
    assert test.outcome("u0", 1, id=7).status == "repeated"  # type: ignore[arg-type]
    verdict = test.verdict()
    assert sum(verdict.result(arm, "buy").units * verdict.result(arm, "buy").mean for arm in set(arms)) == len(values)


def test_a_closed_experiment_says_so(test: aw.Experiment) -> None:
    test.assign("u1")
    assert repr(test) == "<Experiment 'colour': control, blue>"
    test.close()
    test.close()
    for call in (lambda: test.assign("u1"), lambda: test.outcome("u1"), test.verdict, lambda: test.settings):
        with pytest.raises(ValueError, match=r"^this Experiment is closed"):
            call()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": {"name": "buy", "guardrail": "yes"}}, "guardrail of metric 'buy' must be True or False"),
        ({"eligible": {"country": object()}}, "eligible: the values of 'country' must be"),
        ({"eligible": {"country": [{"de"}]}}, "eligible: the values of 'country' must be"),
        ({"eligible": {"age": float("nan")}}, "eligible: the values of 'age' must be"),  # in JSON it would be null
        ({"eligible": {"country": "\ud800"}}, "^eligible: a text must be one that UTF-8 can hold"),
        ({"arms": ["a", "\ud800"]}, "^arms: a name must be a text that UTF-8 can hold"),
        ({"arms": ["a", "b\n"]}, "^arms: a name must have no control characters"),
        ({"arms": ["a", "b" * 257]}, "^arms: a name must have 1 to 256 characters"),
        ({"metrics": ["buy", "m" * 256]}, "the experiment's name with '/m+' must have 1 to 256 characters, got 263"),
        ({"metrics": ["buy", "m\n"]}, "the experiment's name with .* must have no control characters"),
        ({"name": "n" * 250}, "the experiment's name with '/assigned' must have 1 to 256 characters"),
        ({"arms": {"a": "x", "b": "\ud800"}}, "^arms: a text must be one that UTF-8 can hold"),
        ({"metrics": "\ud800"}, "^metrics: a text must be one that UTF-8 can hold"),
        ({"name": "\ud800"}, "^the experiment's name must be a text that UTF-8 can hold"),
        ({"forced": {"": "a"}}, "^forced: unit must be a text that is not empty"),
        ({"forced": {"\ud800": "a"}}, "^forced: unit must be a text that UTF-8 can hold"),
        ({"forced": {7: "a"}}, "^forced: unit must be a text"),
        ({"storage": "/etc/passwd"}, "storage must be a folder"),
    ],
)
def test_bad_definitions_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aw.Experiment(**({"name": "colour", "arms": ["a", "b"]} | arguments))


def test_a_refused_definition_leaves_nothing_that_the_next_one_meets(tmp_path: Path) -> None:
    refused: list[dict[str, Any]] = [
        {"arms": ["a", "b\n"]},
        {"metrics": ["buy", "m" * 256]},
        {"metrics": {"name": "buy", "window": 1e12}},
    ]
    with aw.Experiment("first", ["a", "b"], AT_ONCE, storage=tmp_path):
        for k, wrong in enumerate(refused):
            with pytest.raises(ValueError, match="must"):
                aw.Experiment(f"test {k}", storage=tmp_path, **({"arms": ["a", "b"]} | wrong))
            with aw.Experiment(f"test {k}", ["a", "b"], AT_ONCE, storage=tmp_path) as test:
                assert test.assign("u1").counted


def test_names_from_arrays_are_names() -> None:
    with aw.Experiment("colour", np.array(["a", "b"]), eligible={"country": ("de", "at")}) as test:  # type: ignore[arg-type]
        assert test.settings["arms"] == ("a", "b") and test.assign("u", {"country": "de"}).counted
