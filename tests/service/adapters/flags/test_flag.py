"""The parts of the flags' protocol: units, the ids of their decisions, and problems in the protocol's words."""

from __future__ import annotations

import pytest

from armwise.features.encoding.arms import read_arms
from armwise.service.adapters.flags.evaluate_flags import read
from armwise.service.adapters.flags.failure import FLAG_NOT_FOUND, Failure, recoded
from armwise.service.adapters.flags.flag import Flag, flag_of, own_decisions
from armwise.service.journal.events import Creation
from armwise.service.model.build import build_model
from armwise.service.web.http import Problem


def test_the_targeting_key_is_the_unit_and_the_rest_are_its_attributes() -> None:
    unit = read(b'{"context": {"targetingKey": "user-7", "plan": "pro"}}')
    assert (unit.key, unit.attributes) == ("user-7", b'{"plan":"pro"}')
    assert read(b'{"context": {"targetingKey": "user-7"}}').attributes == b"{}"
    with pytest.raises(Failure, match="the context must have a targetingKey"):
        read(b'{"context": {}}')


def test_a_problem_has_the_protocols_code_and_the_flags_key() -> None:
    missing = Failure(404, FLAG_NOT_FOUND, "no flag is called 'x'", key="x").response()
    assert missing.body == b'{"errorCode":"FLAG_NOT_FOUND","errorDetails":"no flag is called \'x\'","key":"x"}'
    unknown = recoded(Problem(401, "Unauthorized", "a valid key is needed")).response()
    assert (unknown.status, unknown.body) == (401, b'{"errorCode":"GENERAL","errorDetails":"a valid key is needed"}')


def test_a_unit_has_one_decision_in_each_window() -> None:
    flag = Flag(read_arms([b'"on"']), {"on": True}, 600_000)
    made = flag.decision("user-7", 1_000_000)
    assert made == flag.decision("user-7", 1_199_999) == flag.decision("user-7", 1_700_000, back=1)
    assert made != flag.decision("user-7", 1_200_000)
    assert made.startswith(own_decisions("user-7"))
    assert not made.startswith(own_decisions("user-8"))


def test_an_application_with_fixed_arms_is_a_flag() -> None:
    flag = flag_of(build_model(Creation(agent={"class": "UCB1", "n_arms": 2}, arms=["a", "b"])))
    assert flag is not None and flag.values == {"a": "a", "b": "b"}
    assert flag_of(build_model(Creation())) is None
