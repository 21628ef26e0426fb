"""Requests, answers, keys and log lines of the HTTP API, each by itself."""

from __future__ import annotations

import asyncio
import json
import logging

import msgspec
import numpy as np
import pytest

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.requests.draw import Answer
from armwise.service.journal.events import Creation, Decision, Row
from armwise.service.journal.rules import Status
from armwise.service.journal.writes import Written
from armwise.service.model.build import build_model
from armwise.service.model.uplift import Weights
from armwise.service.web.http import Call, Problem, Route, finite, problem_of, read_object, reply, split_path
from armwise.service.web.keys import ANYONE, Key, Keys, digest, new_secret
from armwise.service.web.logging import JsonLines
from armwise.service.web.offload import run_in
from armwise.service.web.page import policy
from armwise.service.web.page.rivals import Rival, shown, unknown_of
from armwise.service.web.v1.decisions import decision_json, is_final, read, retry_key, reward_answer
from armwise.service.web.v1.openapi import operation_id
from armwise.service.web.v1.rankings import read as read_ranking
from armwise.service.web.v1.schemas import schema_only


def call(query: bytes = b"", **headers: bytes) -> Call:
    pairs = [(name.replace("_", "-").encode(), value) for name, value in headers.items()]
    return Call(None, "POST", (), query, pairs, "")  # type: ignore[arg-type]


def test_answers_and_problems_are_json() -> None:
    assert (reply([1], 201).status, reply({"ok": True}).body) == (201, b'{"ok":true}')
    problem = Problem(404, "NotFound", "nothing here").response()
    assert (problem.status, problem.body) == (404, b'{"error":{"code":"NotFound","message":"nothing here"}}')
    refused = problem_of(InvalidInput("arms must not be empty"))
    assert refused is not None and refused.status == 400
    assert problem_of(RuntimeError("a bug")) is None


def test_the_last_of_repeated_query_parameters_counts() -> None:
    assert call(b"a=1&b=%20&a=2").query == {"a": "2", "b": " "}


def test_headers_are_found_by_name_and_both_kinds_of_request_ids() -> None:
    assert (call(etag=b"1").header(b"etag"), call().header(b"etag")) == ("1", "")
    assert call(idempotency_key=b"7").request_id == call(x_ms_client_request_id=b"7").request_id == "7"


def test_a_key_of_a_retry_names_the_operation_and_the_decision() -> None:
    assert retry_key(call(idempotency_key=b"7"), "reward", "e1").split(chr(31)) == ["v1", "reward", "e1", "7"]


def test_an_encoded_slash_stays_inside_its_segment() -> None:
    assert split_path(b"/v1/decisions/a%2Fb%20c/reward?x=1") == ("v1", "decisions", "a/b c", "reward")


def test_objects_with_unknown_fields_and_numbers_that_are_none_are_refused() -> None:
    assert read_object(b'{"value": 1}', {"value"}) == {"value": 1}
    with pytest.raises(InvalidInput):
        read_object(b'{"valeu": 1}', {"value"})
    with pytest.raises(InvalidInput, match="value must be a number"):
        finite(True, "value")


def test_bodies_name_arms_or_slots() -> None:
    def catalogue(name: str) -> ArmColumns:
        raise AssertionError(f"{name} is no catalogue")

    assert read(b'{"arms": ["a", "b"]}', catalogue).arms.ids == ("a", "b")
    assert read_ranking(b'{"arms": ["a", "b"], "k": 2}', catalogue).names == ["0", "1"]


def test_a_decision_shows_no_reward_while_it_is_open() -> None:
    it, asked = Answer("e1", "a", 1.0, [], 0, 1, False), Decision(msgspec.Raw(b"{}"), [], [], 0, 0, 1, 0.0)
    assert decision_json(it, asked, Status("shop", "e1", 1, 5, "sum", 0.0, True))["reward"] is None


def test_a_reward_is_final_only_if_it_says_so_and_late_ones_are_called_late() -> None:
    assert is_final({"value": 1.0, "final": True}) and not is_final({"value": 1.0})
    assert reward_answer(Written(Row(2, 0, "shop", "reward", "e1", b'{"value":0.5,"decision":1,"late":true}'))).late


def test_a_key_opens_its_roles_and_its_applications() -> None:
    key = Key(name="shop", sha256=digest("s3cret"), roles=["decide"], applications=["a"])
    assert key.may("decide", "a") and not key.may("decide", "b") and not key.may("read", "a")
    keys = Keys([key])
    assert keys.find("s3cret") == key and keys.find("guess") is None
    assert Keys([]).find(None) is ANYONE
    assert len(new_secret()) >= 43 and new_secret() != new_secret()  # 256 bits in base64


def test_a_log_line_is_json_with_the_data_of_its_record() -> None:
    record = logging.LogRecord("armwise.service", logging.INFO, "", 0, "ready", None, None)
    record.data = {"port": 8484}
    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["port"]) == ("ready", 8484)


def test_work_runs_in_the_loops_own_pool_where_none_is_given() -> None:
    assert asyncio.run(run_in(None, lambda: 7)) == 7


def test_the_page_may_run_nothing_but_its_own_script() -> None:
    said = policy(b"<style>a</style><script>b</script>")
    assert said.startswith(b"default-src 'none'; ") and said.count(b"'sha256-") == 2


def test_a_rival_that_always_agrees_is_known_in_every_decision() -> None:
    same = Weights(*np.ones((3, 1)))
    assert unknown_of(same) == 0.0
    assert shown("at random", same, np.ones(1), [0.0, 1.0])["ess"] == 1.0


def test_a_rival_counts_rewards_that_come_late() -> None:
    rival = Rival("bold", build_model(Creation()))
    asked = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
    rival.follow((0, 7), asked, 0.0)
    assert rival.shown({(0, 7): 1.0}, [0.0, 1.0])["value"] == 1.0


def test_the_document_names_operations_and_what_only_it_states() -> None:
    assert operation_id(Route("POST", "v1/decisions/{}/reward", "reward", None)) == "postV1DecisionsIdReward"  # type: ignore[arg-type]
    assert schema_only(minLength=1).extra_json_schema == {"minLength": 1}
