"""``armwise serve`` as it is run: what it prints, how it ends."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx
import pytest

from armwise.cli.main import main
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.web.keys import digest

LOOPBACK: dict[str, Any] = {"timeout": 60.0, "verify": False}  # certificates take longer to read than a request


def test_the_first_lines_work_and_it_ends_within_seconds(tmp_path: Path) -> None:
    code = "import sys; from armwise.cli.main import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "serve", "--listen", "127.0.0.1:0", "--storage", str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            lines = [process.stdout.readline() for _ in range(4)]
            decide, reward = (shlex.split(lines[i]) for i in (1, 3))
            answer = httpx.post(decide[1], content=decide[3], **LOOPBACK)
            assert answer.status_code == 201
            kept = httpx.post(reward[1].replace("ID", answer.json()["id"]), content=reward[3], **LOOPBACK)
            assert kept.json()["learnt"] is True
            with httpx.stream("GET", re.sub("/v1/.*", "/v1/live", decide[1]), **LOOPBACK) as stream:
                told = stream.iter_lines()
                next(told)  # somebody is looking at the page
                started = time.monotonic()
                process.send_signal(signal.SIGTERM)
                assert len(list(told)) < 20  # the stream ends by itself
            assert process.wait(30) == 0
            assert time.monotonic() - started < 10.0
        finally:
            process.kill()
        assert all(json.loads(line)["level"] == "info" for line in process.stderr.read().splitlines())
    journal = Journal(SQLite(tmp_path / "journal.db").connect())
    assert verify(journal).problems == []
    assert journal.snapshot("default")[0] == journal.last()[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--listen", "0.0.0.0:1"], "there are no keys"),
        (["--listen", "127.0.0.1:x"], "address:port"),
        (["no-such.toml"], "there is no no-such.toml: expected a TOML file, or a folder"),
        (["--storage", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1"], "127.0.0.1"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    words: list[str], why: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *words]) == 2
    error = capfd.readouterr().err
    assert why in error
    assert "Traceback" not in error


def test_an_address_that_is_taken_is_named(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", "--listen", address, "--storage", str(tmp_path / "data")]) == 2
    assert f"cannot listen on {address}: Address already in use" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ['a"b', "a\\b", "caf\u00e9 \U0001f600", "'"])
def test_a_new_key_of_any_name_is_valid_toml(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["serve", "--new-key", name]) == 0
    lines = capfd.readouterr().out.partition("For the configuration:\n")[2]
    assert tomllib.loads(lines)["keys"][0]["name"] == name


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x7f", "x" * 257, "\udcff"])
def test_a_new_key_needs_a_name(capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["serve", f"--new-key={name}"]) == 2
    assert "--new-key must be a name" in capfd.readouterr().err


def test_a_new_key(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--new-key", "site", "--json"]) == 0
    made = json.loads(capfd.readouterr().out)
    assert made["sha256"] == digest(made["key"])
