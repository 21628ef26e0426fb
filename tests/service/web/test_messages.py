"""What is said of a request that cannot be honoured: in the caller's own words, and true."""

from __future__ import annotations

from typing import Any

import pytest

from armwise.service.engine.application import Application
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

OLD = "/personalizer/v1.1-preview.3"
EXP3 = "/apps/fixed" + OLD
SLOTS = {
    "actions": [{"id": "a", "features": []}, {"id": "b", "features": []}],
    "slots": [{"id": "top", "baselineAction": "a"}],
    "eventId": "e1",
}
SURROGATE = "half a surrogate pair in a string"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    fixed = Application(agent={"class": "Exp3", "n_arms": 2})
    applications = {"shop": Application(), "fixed": fixed}
    running = Running(Service(Config(storage=str(tmp_path_factory.mktemp("data")), applications=applications)))
    assert running.client.post(f"{OLD}/multislot/rank", json=SLOTS).status_code == 201
    yield running.client
    running.stop()


def said(client: Any, method: str, path: str, body: Any) -> str:
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    answer = client.request(method, path, **sent)
    assert 400 <= answer.status_code < 500
    return str(answer.json()["error"]["message"])


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("nope/reward", {"reward": [{"slotId": "top", "value": 1}]}, "no decision has the id nope"),
        ("nope/activate", {}, "no decision has the id nope"),
    ],
)
def test_an_event_is_called_what_the_caller_calls_it(client: Any, path: str, body: Any, message: str) -> None:
    assert said(client, "POST", f"{OLD}/multislot/events/{path}", body) == message


def test_an_event_with_other_content_likewise(client: Any) -> None:
    other = SLOTS | {"contextFeatures": [{"x": 1}]}
    assert said(client, "POST", f"{OLD}/multislot/rank", other) == "event e1 was requested before with other content"


@pytest.mark.parametrize(
    ("prefix", "sent", "message"),
    [
        (OLD, {"explorationPercentage": 40}, "explorationPercentage must lie in [0, 1], where 0.2 is 20 %, got 40.0"),
        (OLD, {"explorationPercentage": -0.1}, "explorationPercentage must lie in [0, 1], where 0.2 is 20 %, got -0.1"),
        (EXP3, {"explorationPercentage": 0.5}, "explorationPercentage cannot be set: Exp3 has no epsilon"),
        (OLD, {"isAutoOptimizationEnabled": True}, "isAutoOptimizationEnabled must be false: there is no automatic "),
        (OLD, {"logMirrorEnabled": True}, "logMirrorEnabled must be false: there are no mirrors of the log here"),
        (EXP3, {"defaultReward": -0.5}, "defaultReward: "),
    ],
)
def test_settings_are_called_what_the_caller_calls_them(client: Any, prefix: str, sent: Any, message: str) -> None:
    assert said(client, "PUT", f"{prefix}/configurations/service", sent).startswith(message)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/decisions", b'{"arms": ["a"], "context": null}', "the context must be .* a list of objects, got null"),
        ("/v1/decisions", b'{"arms": ["a"], "context": [1]}', "the context must be .* something else in it"),
        ("/v1/decisions", b'{"arms": [{"id": "a", "features": 7}]}', "an arm's features must be .*, got 7"),
        ("/v1/decisions", b'{"arms": ["\\ud800"]}', SURROGATE),
        ("/v1/decisions", b'{"arms": [{"id": "\\ud800x"}]}', SURROGATE),
        ("/v1/decisions", b'{"arms": ["a"], "context": {"x": "\\uDBFF"}}', SURROGATE),
        ("/v1/decisions", b'{"arms": ["a"], "id": "\\\\\\ud800 "}', SURROGATE),
        ("/v1/decisions", b'{"arms": ["a"', "truncated"),
        ("/v1/decisions", b'{"arms": ["\\\\ud800"', "truncated"),  # a backslash and letters
        ("/v1/decisions", b'{"arms": ["\\ud83d\\ude00"', "truncated"),  # a whole pair
        (f"{OLD}/rank", b'{"actions": [{"id": "\\ud800", "features": []}]}', SURROGATE),
        (f"{OLD}/rank", b'{"actions": [{"id": "a", "features": null}]}', "an arm's features must be .*, got null"),
        (f"{OLD}/events/e/reward", b'{"value": "\\ud800"}', SURROGATE),
    ],
)
def test_json_that_cannot_be_read(client: Any, path: str, body: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        raise ValueError(said(client, "POST", path, body))
