"""The four official clients of Azure AI Personalizer, unmodified, against a service on loopback."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.ai.personalizer import PersonalizerClient as AIClient
from azure.cognitiveservices.personalizer import PersonalizerClient as CognitiveClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.keys import Key, digest
from tests.service.serving import Running

IDS = ["plain", "evt 1/x", "a/b c%2Fd", "ünï?&#+;="]
ACTIONS: list[dict[str, Any]] = [
    {"id": "pasta", "features": [{"taste": "salty", "spiceLevel": "medium"}, {"n": 3}]},
    {"id": "ice cream/1", "features": [{"taste": "sweet"}]},
    {"id": "salad", "features": [{"taste": "sour"}]},
]
CONTEXT = [{"timeOfDay": "morning"}, {"device": {"width": 320, "touch": True}}]
RANK: dict[str, Any] = {"contextFeatures": CONTEXT, "actions": ACTIONS, "excludedActions": ["salad"]}


class Losing:
    """The service behind a line that loses answers: what was asked is done, but the first answer is a 503."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.engine = service.engine
        self.seen: list[str] = []  # the request ids, in order

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.service(scope, receive, send)
            return
        id = dict(scope["headers"]).get(b"x-ms-client-request-id", b"").decode()
        lost = id not in self.seen
        self.seen.append(id)

        async def nowhere(message: Any) -> None:
            pass

        await self.service(scope, receive, nowhere if lost else send)
        if lost:
            await send({"type": "http.response.start", "status": 503, "headers": [(b"retry-after", b"0")]})
            await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Any:
    key = Key(name="site", sha256=digest("secret"), roles=["admin"])
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")), keys=[key])))
    yield running
    running.stop()


@pytest.fixture
def losing(tmp_path: Path) -> Any:
    running = Running(Losing(Service(Config(storage=str(tmp_path / "data")))))  # type: ignore[arg-type]
    yield running
    running.stop()


def found(service: Any, id: str) -> Any:
    return service.service.engine.find("default", id)


def check(ranked: dict[str, Any], id: str | None = None) -> None:
    """An answer to RANK."""
    shown = {each["id"]: each["probability"] for each in ranked["ranking"]}
    assert sorted(shown) == sorted(action["id"] for action in ACTIONS)
    assert shown["salad"] == 0.0
    assert sum(shown.values()) == pytest.approx(1.0)
    assert shown[ranked["rewardActionId"]] > 0.0
    assert ranked["eventId"] == (id or ranked["eventId"])


# ---------------------------------------------------------------------- PyPI azure-cognitiveservices-personalizer


def cognitive(service: Any, key: str = "secret") -> Any:
    return CognitiveClient(service.url, CognitiveServicesCredentials(key))


def request(**options: Any) -> Any:
    actions = [RankableAction(id=each["id"], features=each["features"]) for each in ACTIONS]
    return RankRequest(actions=actions, context_features=CONTEXT, excluded_actions=["salad"], **options)


@pytest.mark.parametrize("id", IDS)
def test_cognitive_services_on_pypi(service: Any, id: str) -> None:
    client, event = cognitive(service), f"cognitive {id}"
    ranked = client.rank(request(event_id=event, defer_activation=True))
    ranking = [{"id": each.id, "probability": each.probability} for each in ranked.ranking]
    check({"ranking": ranking, "rewardActionId": ranked.reward_action_id, "eventId": ranked.event_id}, event)
    assert client.events.activate(event) is None
    assert client.events.reward(event, 0.75) is None
    _, decision, status = found(service, event)
    assert json.loads(bytes(decision.context)) == CONTEXT
    assert (status.active, status.value, status.n) == (True, 0.75, 1)


def test_cognitive_services_on_pypi_reads_errors(service: Any) -> None:
    with pytest.raises(ErrorResponseException) as error:
        cognitive(service).rank(RankRequest(actions=[]))
    assert error.value.error.error.code == "BadRequest"  # type: ignore[union-attr]
    assert "1 to 50" in error.value.error.error.message  # type: ignore[union-attr]
    with pytest.raises(HttpOperationError) as unread:  # this client does not read the errors of rewards
        cognitive(service).events.reward("nobody", 1.0)
    assert unread.value.response.status_code == 404
    with pytest.raises(ErrorResponseException):
        cognitive(service, "guess").rank(request())


# ---------------------------------------------------------------------- PyPI azure-ai-personalizer


def ai(url: str) -> Any:
    return AIClient(url, AzureKeyCredential("secret"))


@pytest.mark.parametrize("id", IDS)
def test_ai_on_pypi(service: Any, id: str) -> None:
    client, event = ai(service.url), f"ai {id}"
    check(client.rank({**RANK, "eventId": event, "deferActivation": True}), event)
    assert client.activate(event) is None
    assert client.reward(event, {"value": -0.5}) is None
    _, _, status = found(service, event)
    assert (status.active, status.value, status.n) == (True, -0.5, 1)


def test_ai_on_pypi_reads_errors(service: Any) -> None:
    with pytest.raises(ResourceNotFoundError, match="ResourceNotFound"):
        ai(service.url).reward("nobody", {"value": 1.0})
    with pytest.raises(HttpResponseError, match="actions must have 1 to 50"):
        ai(service.url).rank({"actions": []})


def test_ai_on_pypi_retries_and_nothing_happens_twice(losing: Any) -> None:
    client = ai(losing.url)
    ranked = client.rank(RANK)  # no eventId: only the request id says that it is the same
    check(ranked)
    seen = losing.service.seen
    assert len(seen) == 2 and seen[0] == seen[1] != ""
    assert client.reward(ranked["eventId"], {"value": 1.0}) is None
    assert len(seen) == 4 and seen[2] == seen[3]
    engine = losing.service.engine
    _, _, status = engine.find("default", ranked["eventId"])
    assert status.n == 1
    assert engine.reading.journal.connection.execute("SELECT count(*) FROM decisions") == [(1,)]


# ---------------------------------------------------------------------- npm


@pytest.fixture(scope="session")
def node(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Runs calls through an npm client; the clients are installed once, into pytest's cache."""
    if not shutil.which("npm"):
        pytest.fail("npm is needed to try the npm clients: install nodejs and npm")
    source = Path(__file__).parent / "npm"
    cache = getattr(pytestconfig, "cache", None)
    folder = Path(cache.mkdir("npm-clients") if cache else tmp_path_factory.mktemp("npm-clients"))
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may want it at once
        wanted, installed = (source / "package.json").read_text(), folder / "installed.json"
        if not installed.exists() or installed.read_text() != wanted:
            shutil.copy(source / "package.json", folder)
            command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            installed.write_text(wanted)

    def run(which: str, url: str, calls: list[Any]) -> Any:
        command = ["node", str(source / "clients.mjs"), which, url]
        done = subprocess.run(command, cwd=folder, input=json.dumps(calls), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("which", ["cognitive", "rest"])
def test_npm_clients(service: Any, node: Callable[..., Any], which: str) -> None:
    ids = [f"npm {which} {id}" for id in IDS]
    calls: list[Any] = [["rank", RANK]]
    for id in ids:
        calls += [["rank", {**RANK, "eventId": id, "deferActivation": True}], ["activate", id], ["reward", id, 0.25]]
    calls += [["reward", "nobody", 1], ["rank", {"actions": []}]]
    first, *results, unknown, empty = node(which, service.url, calls)
    assert first["status"] == 201
    check(first["body"])
    for id, ranked, activated, rewarded in zip(ids, results[::3], results[1::3], results[2::3], strict=True):
        assert (ranked["status"], activated["status"], rewarded["status"]) == (201, 204, 204)
        check(ranked["body"], id)
        _, decision, status = found(service, id)
        assert json.loads(bytes(decision.context)) == CONTEXT
        assert (status.active, status.value, status.n) == (True, 0.25, 1)
    assert (unknown["status"], empty["status"]) == (404, 400)
    if which == "cognitive":
        assert (unknown["code"], empty["code"]) == ("ResourceNotFound", "BadRequest")
    else:
        assert unknown["body"]["error"]["code"] == "ResourceNotFound"
        assert [each["unexpected"] for each in (first, results[0], unknown)] == [False, False, True]


def test_npm_rest_client_retries_and_nothing_happens_twice(losing: Any, node: Callable[..., Any]) -> None:
    [ranked] = node("rest", losing.url, [["rank", RANK]])
    assert ranked["status"] == 201
    check(ranked["body"])
    seen = losing.service.seen
    assert len(seen) == 2 and seen[0] == seen[1] != ""
    assert losing.service.engine.reading.journal.connection.execute("SELECT count(*) FROM decisions") == [(1,)]


def test_npm_rest_client_administers(service: Any, node: Callable[..., Any]) -> None:
    slots = [{"id": "top", "baselineAction": "pasta"}, {"id": "low", "baselineAction": "salad"}]
    several = {"actions": ACTIONS, "slots": slots, "eventId": "npm slots"}
    evaluation = {"name": "n", "startTime": "2000-01-01T00:00:00Z", "endTime": "2999-01-01T00:00:00Z", "policies": []}
    calls: list[Any] = [
        ["rank", RANK],
        ["get", "/configurations/service"],
        ["put", "/configurations/service", {"rewardWaitTime": "PT8M"}],
        ["get", "/configurations/policy"],
        ["delete", "/configurations/policy"],
        ["get", "/model"],
        ["get", "/model/properties"],
        ["get", "/logs/properties"],
        ["post", "/multislot/rank", several],
        ["post", "/multislot/events/{eventId}/activate", None, "npm slots"],
        ["post", "/multislot/events/{eventId}/reward", {"reward": [{"slotId": "low", "value": 1}]}, "npm slots"],
        ["post", "/evaluations", evaluation],
        ["get", "/evaluations"],
        ["delete", "/model"],
        ["delete", "/logs"],
    ]
    results = node("rest", service.url, calls)
    said = {f"{call[0]} {call[1]}" if call[0] != "rank" else "rank": r for call, r in zip(calls, results, strict=True)}
    statuses = [201, 200, 200, 200, 200, 200, 200, 200, 201, 204, 204, 201, 200, 204, 204]
    assert [each["status"] for each in results] == statuses
    assert said["put /configurations/service"]["body"]["rewardWaitTime"] == "PT8M"
    assert said["get /evaluations"]["body"][0]["status"] in ("pending", "completed")
    assert len(said["post /multislot/rank"]["body"]["slots"]) == 2
