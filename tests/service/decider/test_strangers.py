"""What strangers send: it is taken for what it says, or refused by name; never another error, and nothing changes."""

import decimal
import enum
import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features.encoding.from_python import to_json

A = ["a", "b"]
CYCLE: dict[str, Any] = {}
CYCLE["x"] = CYCLE


class Colour(enum.Enum):
    RED = "red"


def test_values_of_other_types_are_what_they_say() -> None:
    odd = {
        "price": decimal.Decimal("1.5"),
        "colour": Colour.RED,
        "name": np.str_("x"),
        "n": 2**64,
        "gap": pd.NA,
        7: True,
    }
    assert json.loads(to_json("context", odd)) == {
        "price": 1.5, "colour": "red", "name": "x", "n": 2.0**64, "gap": None, "7": True,
    }  # fmt: skip


@pytest.fixture(params=["memory", "disk"])
def shop(request: pytest.FixtureRequest, tmp_path: Path):
    with aw.Decider() if request.param == "memory" else aw.Decider(tmp_path / "d") as decider:
        yield decider


REFUSED: list[tuple[Any, str]] = [
    (lambda s: s.decide(3, A), "context must have names"),
    (lambda s: s.decide({"x": -math.inf}, A), "context.x must be finite"),
    (lambda s: s.decide({"x": 1e151}, A), "beyond 1e150"),
    (lambda s: s.decide({"x": "\ud800"}, A), "half a surrogate pair"),
    (lambda s: s.decide({"\ud800": 1}, A), "half a surrogate pair"),
    (lambda s: s.decide({1: 1, "1": 2}, A), "two names that are the same"),
    (lambda s: s.decide(CYCLE, A), "contains itself"),
    (lambda s: s.decide(json.loads('{"a":' * 40 + "1" + "}" * 40), A), "nested 40 deep"),
    (lambda s: s.decide({f"k{i}": i for i in range(5000)}, A), "more than 4096 features"),
    (lambda s: s.decide({"x": "y" * 5000}, A), "at most 4096"),
    (lambda s: s.decide('{"a": 1, "a": 2}', A), "a key appears twice"),
    (lambda s: s.decide({"x": print}, A), "context.x must be a number"),
    (lambda s: s.decide({}, None), "arms must be a list"),
    (lambda s: s.decide({}, {"a": 1}), "arms must be a list"),
    (lambda s: s.decide({}, [None]), "an arm must be its id"),
    (lambda s: s.decide({}, ["a", "a"]), "two arms have the id 'a'"),
    (lambda s: s.decide({}, [""]), "1 to 256 characters"),
    (lambda s: s.decide({}, [{"id": "a", "x": math.inf}]), "an arm.x must be finite"),
    (lambda s: s.decide({}, A, id=3), "id must be text"),
    (lambda s: s.decide_many(5), "requests must be a list"),
    (lambda s: s.decide_many([1]), "a request must be a dictionary"),
    (lambda s: s.reward_many([1]), "rewards must be pairs"),
    (lambda s: s.reward(None, 1.0), "id must be a decision's id"),
    (lambda s: s.reward("e1", None), "reward must be a number"),
    (lambda s: s.reward("e1", math.inf), "reward must be a number of at most"),
    (lambda s: s.explain("e1"), "decision must be what decide answered"),
    (lambda s: s.warm_start("text"), "log must be an offline.Log"),
]


def test_what_makes_no_sense_is_refused_by_name(shop: aw.Decider) -> None:
    shop.decide({}, A, id="e1")
    before = saving.dumps(shop.agent)
    for call, said in REFUSED:
        with pytest.raises(ValueError, match=said):
            call(shop)
    assert saving.dumps(shop.agent) == before
    assert shop.reward("e1", 1.0).status == "taken"


def test_names_of_any_script_come_back_as_they_were(shop: aw.Decider) -> None:
    d = shop.decide({"😀": "👍🏽", "a\x1fb": "\x1e\x00", "": ""}, ["привет", {"id": "赤", "χρώμα": "κόκκινο"}])
    assert shop.reward(d, 1.0).status == "taken"
    assert set(shop.explain(d).arms) == {"привет", "赤"} == set(d.probabilities)
    [row] = shop.log().decisions()
    assert row["context"] == {"😀": "👍🏽", "a\x1fb": "\x1e\x00", "": ""}
    assert row["arm"] == d.arm


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"agent": "LinUCB"}, "agent must be an armwise agent"),
        ({"agent": {"class": "Nope"}}, "armwise has nothing called 'Nope'"),
        ({"window": -1}, "window must be seconds above 0"),
        ({"window": "a day"}, "window must be a number"),
        ({"default": math.nan}, "default: reward is nan"),
        ({"rule": "first"}, "rule must be earliest"),
        ({"dim": 10**6}, "dim must be at most"),
        ({"storage": 5}, "storage must be a folder"),
        ({"storage": __file__}, "is a file"),
        ({"storage": ""}, "storage must be a folder"),
    ],
)
def test_bad_settings_are_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        aw.Decider(**arguments)


def test_threads_decide_reward_explain_and_read_the_log_at_once(shop: aw.Decider) -> None:
    problems: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for i in range(15):
                d = shop.decide({"hour": i, "who": str(n)}, A)
                shop.reward(d, float(d.arm == "a"))
                if i % 7 == 0:
                    shop.explain(d)
                    shop.log()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert len(shop.log().rewards) == 45


def test_one_that_is_closed_says_so(shop: aw.Decider) -> None:
    shop.close()
    shop.close()
    for call in (lambda: shop.decide({}, A), lambda: shop.reward("e1", 1.0), shop.log, lambda: shop.agent):
        with pytest.raises(ValueError, match="this Decider is closed"):
            call()


def test_nothing_of_a_batch_is_decided_if_one_request_is_refused(tmp_path: Path) -> None:
    for where in ({}, {"storage": tmp_path / "d"}):
        with aw.Decider(**where, agent=aw.EpsilonGreedy(n_arms=3), learn="arrival") as shop:  # type: ignore[arg-type]
            shop.decide({}, ["a", "b", "c"], id="e1")
            with pytest.raises(ValueError, match="this application has 3 arms, got 2"):
                shop.decide_many([{"arms": ["a", "b", "c"], "id": "e2"}, {"arms": ["a", "b"]}])
            with pytest.raises(aw.UnknownDecision):
                shop.reward("e2", 1.0)
            assert shop.reward("e1", 1.0).status == "taken"


def test_many_arms_cost_no_more_than_they_must() -> None:
    # More positions would make each of these decisions sixteen times as dear: 25 arms may have 512, a thousand 128.
    for n, dim in ((25, 512), (100, 256), (1000, 128)):
        shop = aw.Decider()
        arms = [f"a{k}" for k in range(n)]
        assert shop.decide({f"f{i}": i for i in range(60)}, arms).arm in arms
        assert shop.agent.agent.dim == dim  # type: ignore[attr-defined]
