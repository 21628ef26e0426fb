"""How Personalizer's requests, durations and settings are read, and its problems are said."""

from __future__ import annotations

import msgspec
import pytest

from armwise.features.encoding.tokens import InvalidInput
from armwise.service.adapters.personalizer.admin import agent_of, duration, read_configuration, read_policy, seconds
from armwise.service.adapters.personalizer.evaluation_jobs import moment
from armwise.service.adapters.personalizer.rank import (
    RankRequest,
    everywhere,
    rank,
    ranking,
    read,
    read_actions,
    read_reward,
    recoded,
    retry_key,
)
from armwise.service.adapters.personalizer.slots import read as read_multi_slot
from armwise.service.engine.requests.draw import Answer
from armwise.service.web.http import Call, Problem, Route


def test_durations_and_times_are_iso_8601() -> None:
    assert seconds("PT1H30M", "rewardWaitTime") == 5400.0
    assert [duration(s) for s in (600, 90000, 0.5)] == ["PT10M", "P1DT1H", "PT0.5S"]
    assert (moment("1970-01-01T00:00:01Z"), moment("1970-01-02")) == (1000, 86_400_000)  # UTC if nothing is said


def test_a_configuration_becomes_settings() -> None:
    settings = read_configuration({"rewardWaitTime": "PT1M", "learningMode": "Apprentice"})
    assert settings == {"window": 60.0, "apprentice": True}


def test_learning_settings_describe_an_agent_and_no_command_line() -> None:
    assert agent_of('{"class": "LinUCB"}') == {"class": "LinUCB"}
    with pytest.raises(Problem, match="arguments must describe an agent in JSON"):
        read_policy({"name": "mine", "arguments": "--cb_explore_adf --epsilon 0.2"})


def test_a_request_becomes_a_context_and_arms() -> None:
    body = b'{"actions": [{"id": "a", "features": [{"n": 3}]}], "contextFeatures": null}'
    context, arms = read_actions(body, msgspec.json.decode(body, type=RankRequest))
    assert (context, arms.ids) == (b"[]", ("a",))
    assert read(b'{"actions": [{"id": "a", "features": []}], "excludedActions": ["b"]}').excluded == []
    with pytest.raises(InvalidInput, match="missing required field `actions`"):
        read(b"{}")
    slots = b'{"actions": [{"id": "a", "features": []}], "slots": [{"id": "top", "baselineAction": "a"}]}'
    assert read_multi_slot(slots).allowed.tolist() == [[True]]


def test_the_list_begins_with_the_choice_and_excluded_actions_keep_their_place() -> None:
    it = Answer("e", "c", 0.2, [("a", 0.0), ("b", 0.8), ("c", 0.2)], 0, 1, False)
    assert [each["id"] for each in ranking(it, ["a"])] == ["a", "c", "b"]


def test_a_request_id_makes_a_retry_of_one_operation() -> None:
    call = Call(None, "POST", (), b"", [(b"x-ms-client-request-id", b"7")], "")  # type: ignore[arg-type]
    assert retry_key(call, "rank") == "rank 7"


def test_rewards_lie_between_minus_one_and_one() -> None:
    assert read_reward(-1) == -1.0
    with pytest.raises(Problem, match=r"value must lie in \[-1, 1\], got 2.0"):
        read_reward(2)


def test_problems_have_the_codes_of_personalizer() -> None:
    body = recoded(Problem(404, "NotFound", "no decision has the id e1")).response().body
    assert body == b'{"error":{"code":"ResourceNotFound","message":"no decision has the id e1"}}'


def test_every_version_of_the_api_has_the_routes() -> None:
    paths = [route.path for route in everywhere([Route("POST", "rank", "decide", rank)])]
    assert paths == ["personalizer/v1.0/rank", "personalizer/v1.1-preview.3/rank", "personalizer/rank"]
