"""Applications and keys change without a restart."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from armwise.service.engine.application import Application
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest


def test_an_application_is_made_changed_and_retired_by_request(run: Callable[..., Any]) -> None:
    running = run()
    client = running.client
    assert client.post("/apps/news/v1/decisions", json={"arms": ["a", "b"]}).status_code == 404
    assert client.put("/v1/apps/news", json={"window": 30.0}).json()["name"] == "news"
    made = client.post("/apps/news/v1/decisions", json={"arms": ["a", "b"], "id": "e1"})
    assert made.status_code == 201
    client.post("/apps/news/v1/decisions/e1/reward", json={"value": 1})
    running.service.engine.wait_learnt()
    again = client.put("/v1/apps/news", json={"window": 60.0, "features": {"dim": 64}}).json()
    assert again["lessons"] == 1  # trained on the journal
    assert running.service.engine.models["news"].settings.window == 60.0
    for bad in ({"window": -1}, {"agent": {"class": "Nonsense"}}, {"colour": 1}):
        assert client.put("/v1/apps/news", json=bad).status_code == 400
    assert client.delete("/v1/apps/default").status_code == 409
    assert client.delete("/v1/apps/news").status_code == 204
    assert client.post("/apps/news/v1/decisions", json={"arms": ["a", "b"]}).status_code == 404
    assert client.put("/v1/apps/news", json={}).status_code == 200  # and it comes back, with what it had learnt


def test_an_application_of_the_file_has_one_master(run: Callable[..., Any]) -> None:
    """A request made it one that a request may delete: then every path without a name answered 404."""
    client = run().client
    refused = client.put("/v1/apps/default", json={"window": 60.0})
    assert (refused.status_code, "SIGHUP" in refused.text, "/v1/settings" in refused.text) == (409, True, True)
    assert client.delete("/v1/apps/default").status_code == 409
    assert client.post("/v1/decisions", json={"arms": ["a", "b"]}).status_code == 201


def test_policies_and_limits_made_by_request_survive_a_restart(run: Callable[..., Any]) -> None:
    """They were those of the process that was asked, and the defaults everywhere else."""
    running = run()
    made = {"policies": {"bold": {"class": "LinUCB"}}, "max_pairs": 2_000_000}
    assert running.client.put("/v1/apps/news", json=made).status_code == 200
    assert running.client.put("/v1/apps/news", json={"policies": {"bold": {"class": "No"}}}).status_code == 400
    assert running.client.put("/v1/apps/news", json={"max_pairs": 3}).status_code == 400
    running.stop()
    again = run(running.service.config)
    settings = again.service.engine.model("news").settings
    assert (settings.policies, settings.max_pairs) == (made["policies"], made["max_pairs"])
    assert [each["name"] for each in again.service.watch("news").look()["policies"]] == []
    assert "bold" in {rival.name for rival in again.service.watch("news")._rivals}


def test_a_configuration_that_is_read_again_is_in_force(run: Callable[..., Any]) -> None:
    running = run()
    old = running.service.config
    key = Key(name="k", sha256=digest("s3cret"), roles=["admin"])
    apps = {"shop": Application(window=30.0), "default": Application(window=5.0)}
    running.service.reload(Config(storage=old.storage, applications=apps, keys=[key]))
    assert running.client.get("/v1/agents").status_code == 401
    shown = running.client.get("/v1/agents", headers={"Authorization": "Bearer s3cret"}).json()["agents"]
    assert {each["name"]: each["settings"]["window"] for each in shown} == {"shop": 30.0, "default": 5.0}
    with pytest.raises(ValueError, match="nothing called"):
        running.service.reload(Config(applications={"shop": Application(agent={"class": "Nonsense"})}, keys=[key]))
    assert sorted(running.service.engine.models) == ["default", "shop"]


def test_sighup_reads_the_file_again(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    head = f'listen = "127.0.0.1:0"\nstorage = "{tmp_path / "data"}"\n'
    file.write_text(head + "[applications.shop]\nwindow = 30.0\n")
    command = [sys.executable, "-m", "armwise", "serve", str(file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["address"]
            file.write_text(head + "[applications.shop]\nwindow = 60.0\n[applications.news]\n")
            process.send_signal(signal.SIGHUP)
            for _ in range(300):
                shown = httpx.get(f"{url}/v1/agents", verify=False).json()["agents"]
                windows = {each["name"]: each["settings"]["window"] for each in shown}
                if windows == {"shop": 60.0, "news": 600.0}:
                    break
                time.sleep(0.1)
            assert windows == {"shop": 60.0, "news": 600.0}
        finally:
            process.terminate()
        assert process.wait(20) == 0
