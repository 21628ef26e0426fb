"""Decider: names in, names out; the same in memory and in a journal that the service can open."""

import dataclasses
import datetime
import json
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction import DictVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

import armwise as aw
from armwise.core import saving
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.from_python import arm_to_json, to_json
from armwise.features.encoding.tokens import NO_TOKENS
from armwise.service.decider.memory import Memory
from armwise.service.engine.learning.fold import fold
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.events import Creation, Settings
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify

ARMS: list[Any] = ["red", "green", {"id": "blue", "price": 3}]


@pytest.fixture(params=["memory", "disk"])
def shop(request: pytest.FixtureRequest, tmp_path: Path):
    with aw.Decider(seed=3) if request.param == "memory" else aw.Decider(tmp_path / "decisions", seed=3) as decider:
        yield decider


def test_it_learns_which_arm_suits_which_context(shop: aw.Decider) -> None:
    # Phones like green, desktops red; one decision in ten is spread over all arms.
    for _ in range(8):
        made = shop.decide_many([{"context": {"device": d}, "arms": ARMS} for d in ("phone", "desktop") * 20])
        right = {"phone": "green", "desktop": "red"}
        shop.reward_many((d, float(d.arm == right[json.loads(d.context)["device"]])) for d in made)
        _ = shop.agent  # all of it is learnt
    for device, arm in (("phone", "green"), ("desktop", "red")):
        assert max(shop.decide({"device": device}, ARMS).probabilities.items(), key=lambda p: p[1])[0] == arm


def test_what_came_of_a_reward_is_told_apart(shop: aw.Decider) -> None:
    made = shop.decide({"hour": 9}, ARMS)
    assert [shop.reward(made, 1.0).status, shop.reward(made.id, 0.0).status] == ["taken", "repeated"]
    with pytest.raises(aw.UnknownDecision, match="no decision has the id 'nobody'"):
        shop.reward("nobody", 1.0)


def test_a_reward_after_its_window_is_late() -> None:
    now = [1000.0]
    home = Memory(Creation(settings=Settings(window=60.0, default=-1.0)), clock=lambda: now[0])
    home.decide([ParsedRequest(b"{}", NO_TOKENS, read_arms([b'"a"', b'"b"']), "e1")])
    now[0] += 61.0
    assert home.reward([("e1", 1.0, None)])[0].status == "late"
    assert home.model().lessons == 1  # the default, once


def test_the_same_id_is_the_same_decision(shop: aw.Decider) -> None:
    one, two = shop.decide({"hour": 9}, ARMS, id="e1"), shop.decide({"hour": 9}, ARMS, id="e1")
    assert (one.arm, one.probability) == (two.arm, two.probability)
    with pytest.raises(Exception, match="e1"):
        shop.decide({"hour": 10}, ARMS, id="e1")


def test_its_log_is_a_log(shop: aw.Decider) -> None:
    for hour in range(40):
        made = shop.decide({"hour": hour % 24}, ["a", "b"])
        shop.reward(made, float(made.arm == "a"))
    log = shop.log()
    assert len(log.rewards) == 40
    result = aw.offline.evaluate(log, aw.Constant(0), estimators=["snips"], warn=False)
    assert result["snips"].value > 0.9  # "a" is the first arm of every request, and always earns 1


def test_memory_and_journal_learn_the_same(tmp_path: Path) -> None:
    # The same decisions with the same arms played: the models are equal to the byte. A failure would mean that there
    # are two implementations after all.
    with aw.Decider(tmp_path / "d", seed=5) as disk:
        memory = aw.Decider(seed=5)
        for i in range(30):
            context, made = {"hour": i % 5}, disk.decide({"hour": i % 5}, ARMS)
            disk.reward(made, float(i % 2))
            disk.agent  # noqa: B018  (waits until it is learnt)
            memory._backend.engine.uniform = lambda app, id: disk._backend.engine.uniform(app, id)  # type: ignore
            again = memory.decide(context, ARMS, id=made.id)
            assert again.arm == made.arm
            memory.reward(again, float(i % 2))
        assert saving.dumps(memory.agent) == saving.dumps(disk.agent)


def test_explain_names_what_matters(shop: aw.Decider) -> None:
    for i in range(150):
        made = shop.decide({"device": "phone" if i % 2 else "desktop", "noise": i % 7}, ["a", "b"])
        shop.reward(made, float((made.arm == "a") == (i % 2 == 1)))
    made = shop.decide({"device": "phone", "noise": 3}, ["a", "b"])
    why = shop.explain(made)
    assert set(why.arms["a"]) == {"estimate", "width", "probability"}
    assert why.arms["a"]["probability"] == pytest.approx(made.probabilities["a"])
    assert why.contributions["a"]["device"] > abs(why.contributions["a"]["noise"])
    assert "device" in str(why)


def test_a_folder_is_held_by_one_process_and_found_again(tmp_path: Path) -> None:
    with aw.Decider(tmp_path / "d") as shop:
        made = shop.decide({}, ["a", "b"], id="e1")
        code = f"import armwise as aw; aw.Decider({str(tmp_path / 'd')!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "is serving from this journal" in other.stderr
        import os

        assert str(os.getpid()) in other.stderr
    with aw.Decider(tmp_path / "d") as shop:
        assert shop.reward(made, 1.0).status == "taken"


def test_threads_may_share_it(shop: aw.Decider) -> None:
    def work() -> None:
        for _ in range(20):
            shop.reward(shop.decide({"hour": 1}, ARMS), 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shop.log().rewards) == 80


def test_any_agent_can_decide() -> None:
    shop = aw.Decider(aw.Explore(aw.LinThompson(dim=1, v=0.2), 0.2))
    assert isinstance(shop.agent, aw.Explore)
    assert shop.agent.dim == 128


CASES = [(d, arm) for d in (0, 1) for arm in ("a", "b")] * 20
ROWS = [
    {"context": {"d": d}, "arms": ["a", "b"], "arm": arm, "probability": 0.5, "reward": float((d, arm) == (1, "a"))}
    for d, arm in CASES
]


def test_a_log_warms_it_up(shop: aw.Decider) -> None:
    assert shop.warm_start(ROWS) == 80
    assert len(shop.log().rewards) == 0  # what others decided is no part of its log
    assert shop.decide({"d": 1}, ["a", "b"]).probabilities["a"] > 0.9
    with pytest.raises(ValueError, match="log, row 0: arm 'c' is not one of its arms"):
        shop.warm_start([ROWS[0] | {"arm": "c"}])


def test_a_warm_start_is_replayed_whatever_was_learnt_together(tmp_path: Path) -> None:
    # Lessons of others are scaled by the numbers met before them. If a replay took numbers in later, or earlier, the
    # snapshot would differ from it, and verify would say so.
    with aw.Decider(tmp_path / "d") as shop:
        for i in range(20):
            shop.decide({"d": i}, ["a", "b"])
        shop.warm_start(ROWS)
        for i in range(20):
            shop.reward(shop.decide({"d": -i}, ["a", "b"]), 1.0)
    journal = Journal(SQLite(tmp_path / "d" / "journal.db").connect())
    report = verify(journal)
    assert report.problems == []
    assert report.snapshots >= 1
    models: dict[str, Any] = {}
    fold(models, list(journal.events()), journal)
    with aw.Decider(tmp_path / "d") as shop:
        assert saving.dumps(models["default"].agent) == saving.dumps(shop.agent)


@dataclasses.dataclass
class Visitor:
    device: str
    age: float


def test_contexts_are_what_people_have() -> None:
    wanted = b'{"device":"phone","age":31.0}'
    assert to_json("context", {"device": "phone", "age": 31.0}) == wanted
    assert to_json("context", Visitor("phone", 31.0)) == wanted
    frame = pd.DataFrame({"device": ["phone"], "age": [31.0]})
    assert to_json("context", frame.iloc[0]) == wanted
    assert to_json("context", next(frame.itertuples(index=False))) == wanted
    assert to_json("context", pl.from_pandas(frame)) == wanted
    assert to_json("context", wanted.decode()) == wanted
    assert to_json("context", {"n": np.int64(3), "gap": np.nan, "none": pd.NaT, "tags": {"b", "a"}}) == (
        b'{"n":3,"gap":null,"none":null,"tags":["a","b"]}'
    )
    moment = datetime.datetime(2026, 11, 16, 21, 30)
    assert json.loads(to_json("context", {"at": moment}))["at"] == {
        "year": 2026, "month": "11", "day": 16, "weekday": "Monday", "hour": 21,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.decide({}, "abc"), "arms must be a list of ids or dictionaries, got str"),
        (lambda s: s.decide({}, []), "arms must not be empty"),
        (lambda s: s.decide({}, [{"price": 3}]), "an arm must be its id"),
        (lambda s: s.decide([1, 2], ["a"]), "context must have names"),
        (lambda s: s.decide({"f": object()}, ["a"]), "context.f must be a number, text"),
        (lambda s: s.decide_many([{"arm": ["a"]}]), "a request has context, arms and id, got 'arm'"),
        (lambda s: s.reward("e1", float("nan")), "reward"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(call: Any, said: str) -> None:
    shop = aw.Decider()
    shop.decide({}, ["a"], id="e1")
    before = saving.dumps(shop.agent)
    with pytest.raises(ValueError, match=said):
        call(shop)
    assert saving.dumps(shop.agent) == before


def test_arms_keep_their_features() -> None:
    assert arm_to_json({"id": 7, "features": {"price": 3}}) == b'{"id":"7","features":{"price":3}}'


def test_a_reward_that_comes_twice_in_one_commit_is_told_apart(shop: aw.Decider) -> None:
    made = shop.decide({}, ["a", "b"])
    assert [r.status for r in shop.reward_many([(made, 1.0), (made, 1.0)])] == ["taken", "repeated"]


def test_what_was_rewarded_is_known_to_the_next_decision(shop: aw.Decider) -> None:
    # Also in a folder, where learning is another thread's: a failure means that a decision came from an older model.
    made = shop.decide_many([{"context": {"d": i % 2}, "arms": ["a", "b"]} for i in range(200)])
    shop.reward_many((d, float(d.arm == "a")) for d in made)
    assert shop.decide({"d": 1}, ["a", "b"]).probabilities["a"] > 0.9


class Upper:
    """As a transformer of scikit-learn behaves."""

    def transform(self, rows: list[dict[str, Any]]) -> np.ndarray:
        return np.array([[row["age"] / 10.0, float(row["device"] == "phone")] for row in rows])

    def get_feature_names_out(self) -> list[str]:
        return ["decades", "phone"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_transformer_reads_the_contexts_first(tmp_path: Path, durable: bool) -> None:
    frame = pd.DataFrame({"device": ["phone", "tv", "tv"], "age": [20.0, 40.0, 60.0]})
    columns = make_column_transformer((OneHotEncoder(), ["device"]), (StandardScaler(), ["age"])).fit(frame)
    vectors = DictVectorizer().fit(frame.to_dict("records"))
    for encoder, names in (
        (Upper(), {"decades", "phone"}),
        (columns, set(columns.get_feature_names_out())),
        (vectors, {"age", "device=tv"}),
    ):
        where = [tmp_path / str(len(names))] if durable else []
        with aw.Decider(*where, encoder=encoder) as shop:
            made = shop.decide(frame.iloc[1], ["a", "b"])
            shop.reward_many((d, 1.0) for d in shop.decide_many([{"context": frame.iloc[1], "arms": ["a"]}]))
            assert set(json.loads(made.context)) == names
            assert set(shop.explain(made).contributions["a"]) == names
    with pytest.raises(ValueError, match=r"encoder must be a features\.Encoder, or have a method transform"):
        aw.Decider(encoder=object())
    assert aw.Decider(encoder=aw.features.Encoder(dim=32)).agent.dim == 32


def test_an_agent_over_a_model_of_scikit_learn_decides_in_memory_and_a_folder_says_why_not(tmp_path: Path) -> None:

    agent, rng, good = aw.SquareCB(regressor=DecisionTreeRegressor(max_depth=4), seed=1), random.Random(2), 0.0
    shop = aw.Decider(agent, seed=1, learn="arrival")
    for i in range(120):
        device = rng.choice(["phone", "membership"])
        made = shop.decide({"device": device}, ["a", "b"])
        reward = float((made.arm == "a") == (device == "phone"))
        good += reward * (i >= 60)
        shop.reward(made, reward)
    assert good > 48  # half of 60 would be chance
    assert agent.t == 1, "the agent that was given stays as it was"
    assert set(shop.explain(made).arms) == {"a", "b"}
    assert len(shop.log().rewards) == 120
    with pytest.raises(ValueError, match=r"agent\.regressor is .*Use Decider\(agent\) in memory"):
        aw.Decider(tmp_path / "d", agent=agent)
    mapped = aw.Mapped(aw.LinUCB(dim=8, alpha=0.3), aw.features.Fourier(8, seed=1).fit(np.eye(128)))
    assert aw.Decider(mapped).decide({"n": 1}, ["a"]).arm == "a"
    with pytest.raises(ValueError, match=r"agent\.features is Fourier"):
        aw.Decider(tmp_path / "d", agent=mapped)
    with pytest.raises(ValueError, match="Mapped needs a feature map that was fitted"):
        aw.Decider(agent={"class": "Mapped", "agent": {"class": "LinUCB"}, "features": {"class": "Fourier"}})


def test_a_folder_that_nobody_closed_is_let_go_when_the_program_ends(tmp_path: Path) -> None:
    script = "import armwise as aw, sys; s = aw.Decider(sys.argv[1]); s.reward(s.decide({'a': 1}, ['x', 'y']), 1.0)"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "d")], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    shop = aw.Decider(tmp_path / "d")
    assert len(shop.log().rewards) == 1
    del shop
    with aw.Decider(tmp_path / "d") as again:  # the one before was dropped without a word
        assert again.decide({"a": 2}, ["x"]).arm == "x"


def test_several_logs_warm_it_up_as_one_does() -> None:
    logged = aw.Decider(seed=1)
    for i in range(30):
        logged.reward(logged.decide({"n": i % 3}, ["a", "b"]), float(i % 2))
    log, one, two = logged.log(), aw.Decider(seed=2), aw.Decider(seed=2)
    assert one.warm_start([log, log]) == 60
    assert [two.warm_start(log), two.warm_start(log)] == [30, 30]
    assert saving.dumps(one.agent) == saving.dumps(two.agent)


def test_a_seed_makes_decisions_in_memory_reproducible() -> None:
    one, two, other = aw.Decider(seed=3), aw.Decider(seed=3), aw.Decider(seed=4)
    drawn = [[shop.decide({"n": i}, list("abcdef")).arm for i in range(40)] for shop in (one, two, other)]
    assert drawn[0] == drawn[1] != drawn[2]
