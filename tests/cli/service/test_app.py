"""``armwise app``: against a running service, and on the folder or configuration of a stopped one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armwise.cli.main import main
from armwise.service.server.config import Config

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *words: str) -> Any:
    assert main(["app", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_applications_and_versions_of_a_running_service(run: Callable[..., Any], capsys: Captured) -> None:
    url = run().url
    assert said(capsys, "add", "news", "--with", '{"window": 30.0}', "--url", url)["name"] == "news"
    assert [one["name"] for one in said(capsys, "list", "--url", url)["agents"]] == ["default", "news"]
    agent = '{"class": "LinUCB", "alpha": 2.0}'
    said(capsys, "challenge", "news", "bold", "--agent", agent, "--share", "0.2", "--url", url)
    said(capsys, "share", "news", "bold", "--share", "0.3", "--url", url)
    assert main(["app", "versions", "news", "--url", url]) == 0
    text = capsys.readouterr().out
    assert "(leads): 70% of the decisions" in text
    assert "no decision since it began is old enough to be judged" in text
    assert said(capsys, "promote", "news", "bold", "--url", url)["versions"][0]["name"] == "bold"
    first = said(capsys, "rollback", "news", "--url", url)["versions"][0]["name"]
    assert first.startswith("v")
    assert said(capsys, "drop", "news", "bold", "--url", url) == {}
    said(capsys, "challenge", "news", "counts", "--agent", '{"class": "UCB1", "n_arms": 2}', "--url", url)
    assert main(["app", "versions", "news", "--url", url]) == 0
    leader, counts, _ = capsys.readouterr().out.splitlines()
    assert "lessons, each when its window closes, UCB1(" in counts and "closes" not in leader
    assert main(["app", "remove", "news", "--url", url]) == 0
    assert capsys.readouterr().out == "news is removed\n"
    assert [one["name"] for one in said(capsys, "list", "--url", url)["agents"]] == ["default"]


def test_a_stopped_folder_and_a_configuration(run: Callable[..., Any], capsys: Captured, tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    running = run(Config(storage=str(folder)))
    assert main(["app", "list", "--stopped", str(folder)]) == 2  # it is served
    assert "is serving from this journal: use --url" in capsys.readouterr().err
    running.stop()
    said(capsys, "add", "news", "--stopped", str(folder))
    said(capsys, "challenge", "news", "wide", "--features", '{"dim": 64}', "--stopped", str(folder))
    file = tmp_path / "shop.toml"
    file.write_text(f'storage = "{folder}"\n[applications.default]\n')
    assert {one["name"] for one in said(capsys, "list", "--stopped", str(file))["agents"]} == {"default", "news"}
    again = run(Config(storage=str(folder), adopt=True))
    assert [one["name"] for one in again.client.get("/apps/news/v1/versions").json()["versions"]][1] == "wide"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add"], "add takes one application, got 0 names"),
        (["add", "x", "--agent", "7"], "expected a JSON object"),
        (["share", "shop", "bold"], "share needs --share"),
        (["list", "--url", "ftp://x"], "--url must begin with http"),
        (["list", "--url", "http://127.0.0.1:1"], "cannot be reached"),
        (["list", "--stopped", "no-such-file.toml"], "there is no no-such-file.toml: expected a TOML file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(words: list[str], why: str, capsys: Captured) -> None:
    assert main(["app", *words]) == 2
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1


def test_what_the_service_refuses_is_said(run: Callable[..., Any], capsys: Captured) -> None:
    url = run().url
    assert main(["app", "add", "news", "--agent", '{"class": "LinUBC"}', "--url", url]) == 2
    assert "did you mean 'LinUCB'?" in capsys.readouterr().err
