"""Experiments over HTTP, through the client, on a page and from the command line: the same numbers everywhere."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.cli.main import main
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running

AT_ONCE = {"name": "buy", "window": None}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(Service(Config(storage=str(tmp_path / "d"))))
    yield running
    running.stop()


def ask(url: str, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
    sent = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(url + path, sent, headers, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            data = response.read()
            kind = response.headers["content-type"]
            return response.status, json.loads(data) if "json" in kind else data.decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_the_verbs_over_http_are_those_in_process(running: Running) -> None:
    with aw.Client(running.url) as client:
        metrics = [AT_ONCE, {"name": "spent", "kind": "amount", "cap": 100, "window": None}]
        test = aw.Experiment("colour", ["control", "blue"], metrics, storage=client, forced={"tester": "blue"})
        arms = test.assign_many([(f"u{i}", {"device": "phone"}) for i in range(300)])
        assert test.assign("u5") == arms[5] and test.assign("tester").reason == "forced"
        told = test.outcome_many([(arm.unit, float(arm == "blue"), "buy") for arm in arms])
        assert {receipt.status for receipt in told} == {"taken"}
        assert test.outcome("u5", 9.0, "spent", id="o1").status == "taken"
        assert test.outcome("u5", 9.0, "spent", id="o1").status == "repeated"
        assert test.outcome("nobody").status == "not in the experiment"
        verdict = test.verdict()
        assert verdict.arm == "blue" and sum(verdict.units.values()) == 300
        assert verdict.to_dict() == ask(running.url, "GET", "/v1/experiments/colour/verdict")[1]["verdict"]
        assert "blue is better" in test.report() and "<script" not in test.report()
        assert asyncio.run(test.aassign("u5")) == arms[5]
        test.ramp(0.5, by="ann")
        assert test.erase("u5").found["decisions"] == 2
        assert test.stop("blue", why="done") == "blue" and test.assign("u1") == "blue"
        assert [line["what"] for line in test.settings["log"]] == ["created", "ramp 0.5", "stopped with blue"]
        with pytest.raises(ValueError, match="arms: experiment 'colour' was made with"):
            aw.Experiment("colour", ["control", "red"], metrics, storage=client)
        with pytest.raises(ValueError, match="arm must be one of"):
            test.stop("red")
    status, answer = ask(running.url, "GET", "/v1/experiments")
    assert status == 200 and [each["name"] for each in answer["experiments"]] == ["colour"]
    status, answer = ask(running.url, "GET", "/v1/experiments/colour/report?format=json")
    assert answer["verdict"]["units"] and answer["history"]["buy"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/experiments/nothing", None, 404),
        ("GET", "/v1/experiments/default", None, 404),  # an application, no experiment
        ("PUT", "/v1/experiments/x", {"arms": ["a"]}, 400),
        ("PUT", "/v1/experiments/x", {"arms": ["a", "b"], "metrics": [{"nam": 1}]}, 400),
        ("PUT", "/v1/experiments/a%2Fb", {"arms": ["a", "b"]}, 400),
        ("POST", "/v1/experiments/colour/assignments", {"units": []}, 400),
        ("POST", "/v1/experiments/colour/assignments", {"units": [{"unit": ""}]}, 400),
        ("POST", "/v1/experiments/colour/outcomes", {"outcomes": [{"unit": "u", "value": 7}]}, 400),
        ("POST", "/v1/experiments/colour/outcomes", {"outcomes": [{"unit": "u", "metric": "x"}]}, 400),
        ("POST", "/v1/experiments/colour/exposures", {"units": ["u"]}, 400),
        ("PATCH", "/v1/experiments/colour", {"mode": "fast"}, 400),
        ("PATCH", "/v1/experiments/colour", {"ramp": 2}, 400),
        ("GET", "/v1/experiments/colour/report?format=pdf", None, 400),
    ],
)
def test_what_is_wrong_is_said(running: Running, method: str, path: str, body: Any, status: int) -> None:
    assert (
        ask(running.url, "PUT", "/v1/experiments/colour", {"arms": ["control", "blue"], "metrics": AT_ONCE})[0] == 200
    )
    found, answer = ask(running.url, method, path, body)
    assert found == status and answer["error"]["message"]


def test_a_key_is_for_its_experiments(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = [
        Key(name="all", sha256=digest("all"), roles=["admin"]),
        Key(name="one", sha256=digest("one"), roles=["read", "decide"], applications=["default"]),
    ]
    running = Running(Service(Config(storage=str(tmp_path / "d"), keys=keys)))
    try:
        body = {"arms": ["control", "blue"], "metrics": AT_ONCE}
        assert ask(running.url, "PUT", "/v1/experiments/colour", body, "all")[0] == 200
        assert ask(running.url, "GET", "/v1/experiments/colour/verdict", None, "one")[0] == 403
        units = {"units": [{"unit": "u1"}]}
        assert ask(running.url, "POST", "/v1/experiments/colour/assignments", units, "one")[0] == 403
        assert ask(running.url, "GET", "/v1/experiments", None, "one") == (200, {"experiments": []})
        assert ask(running.url, "PATCH", "/v1/experiments/colour", {"ramp": 0.5}, "all")[0] == 200
        audit = [record.data for record in caplog.records if record.name == "armwise.audit"]  # type: ignore[attr-defined]
        assert [(line["who"], line["application"], line["method"]) for line in audit] == [
            ("all", "colour", "PUT"),
            ("all", "colour", "PATCH"),
        ]
    finally:
        running.stop()


def test_the_command_line_lists_shows_reports_and_stops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "d")
    with aw.Experiment("colour <b>", ["control", "blue"], AT_ONCE, storage=folder) as test:
        arms = test.assign_many([f"u{i}" for i in range(600)])
        test.outcome_many([(arm.unit, float(arm == "blue")) for arm in arms])
    assert main(["experiment", "list", folder]) == 0 and "running" in capsys.readouterr().out
    assert main(["experiment", "show", folder, "colour <b>", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arm"] == "blue"
    page = tmp_path / "r.html"
    assert main(["experiment", "report", folder, "colour <b>", "--output", str(page)]) == 0
    text = page.read_text()
    assert "colour &lt;b&gt;" in text and "data:image/png" in text and "blue is better than control" in text
    assert "http" not in text.replace("http-equiv", "")  # nothing is fetched
    assert main(["experiment", "stop", folder, "colour <b>", "--by", "ann"]) == 0
    capsys.readouterr()
    assert main(["experiment", "list", folder]) == 0 and "stopped" in capsys.readouterr().out
    assert main(["experiment", "show", folder, "shape"]) == 2 and "unknown experiment" in capsys.readouterr().err
    assert main(["experiment", "list", str(tmp_path / "none")]) == 2
    (tmp_path / "empty").mkdir()
    capsys.readouterr()
    assert main(["experiment", "list", str(tmp_path / "empty")]) == 2 and "no journal" in capsys.readouterr().err
    assert list((tmp_path / "empty").iterdir()) == []  # looking makes none


def test_the_command_line_asks_the_service_that_has_the_folder_open(
    running: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with aw.Client(running.url) as client:
        test = aw.Experiment("colour", ["control", "blue"], AT_ONCE, storage=client)
        arms = test.assign_many([f"u{i}" for i in range(600)])
        test.outcome_many([(arm.unit, float(arm == "blue")) for arm in arms])
    assert main(["experiment", "show", str(tmp_path / "d"), "colour"]) == 2
    assert "give the address of that service" in capsys.readouterr().err
    assert main(["experiment", "list", running.url]) == 0 and "colour" in capsys.readouterr().out
    assert main(["experiment", "show", running.url, "colour", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arm"] == "blue"
    for suffix in ("html", "json"):
        assert main(["experiment", "report", running.url, "colour", "--output", str(tmp_path / f"r.{suffix}")]) == 0
        assert "blue is better than control" in (tmp_path / f"r.{suffix}").read_text()
    assert main(["experiment", "stop", running.url, "colour", "--arm", "red"]) == 2
    assert main(["experiment", "stop", running.url, "colour", "--by", "ann"]) == 0
    assert test.settings["stopped"] == "blue"
    capsys.readouterr()
    assert main(["experiment", "list", "http://127.0.0.1:1"]) == 2 and "reached" in capsys.readouterr().err


def test_several_changes_over_http_are_made_together_or_not_at_all(running: Running) -> None:
    assert ask(running.url, "PUT", "/v1/experiments/colour", {"arms": ["control", "blue"]})[0] == 200
    before = ask(running.url, "GET", "/v1/experiments/colour")
    for wrong in (
        {"split": [0.9, 0.2]},
        {"force": {"u1": "red"}},
        {"mode": "fast"},
        {"stop": "red"},
        {"force": {"": None}},
    ):
        assert ask(running.url, "PATCH", "/v1/experiments/colour", {"ramp": 0.2} | wrong)[0] == 400
        assert ask(running.url, "GET", "/v1/experiments/colour") == before
