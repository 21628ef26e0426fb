"""Versions of a model over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest


def test_a_version_is_made_shared_promoted_and_rolled_back(run: Callable[..., Any]) -> None:
    running = run()
    client = running.client
    for k in range(5):
        client.post("/v1/decisions", json={"arms": ["a", "b"], "id": f"e{k}"})
        client.post(f"/v1/decisions/e{k}/reward", json={"value": 1})
    made = client.post("/v1/versions", json={"name": "bold", "agent": {"class": "LinUCB", "alpha": 2.0}, "share": 0.2})
    assert made.status_code == 201
    leader, bold = made.json()["versions"]
    assert (leader["leads"], leader["share"], bold["leads"], bold["share"]) == (True, 0.8, False, 0.2)
    assert bold["lessons"] == 5
    assert bold["uplift"] == {"value": 0.0, "low": -1.0, "high": 1.0, "n": 0, "level": 0.95, "horizon": None}
    again = client.post("/v1/versions", json={"name": "bold"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "Conflict")
    assert client.patch("/v1/versions/bold", json={"share": 1.5}).status_code == 400
    assert client.patch("/v1/versions/nobody", json={"share": 0.5}).status_code == 404
    assert client.patch("/v1/versions/bold", json={"share": 0.5}).json()["versions"][1]["share"] == 0.5
    assert client.post("/v1/rollback").status_code == 409
    assert client.post("/apps/default/v1/versions/bold/promote").json()["versions"][0]["name"] == "bold"
    assert client.delete("/v1/versions/bold").status_code == 409
    assert [one["name"] for one in client.post("/v1/rollback").json()["versions"]] == ["v1", "bold"]
    assert client.delete("/v1/versions/bold").status_code == 204
    assert [one["name"] for one in client.get("/v1/versions").json()["versions"]] == ["v1"]
    for body in ({}, {"name": 5}, {"name": "x", "colour": 1}, {"name": "x", "agent": {"class": "Nonsense"}}):
        assert client.post("/v1/versions", json=body).status_code == 400


def test_only_an_administrator_changes_versions(run: Callable[..., Any], tmp_path: Any) -> None:
    keys = [Key(name="shop", sha256=digest("s3cret"), roles=["read", "decide", "reward"])]
    running = run(Config(storage=str(tmp_path / "keyed"), keys=keys))
    client = running.client
    client.headers["Authorization"] = "Bearer s3cret"
    assert client.get("/v1/versions").status_code == 200
    assert client.post("/v1/versions", json={"name": "bold"}).status_code == 403
    assert client.post("/v1/rollback").status_code == 403
