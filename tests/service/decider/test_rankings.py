"""Rankings in memory, in a folder and over HTTP: one list per id, late clicks by arm or slot, silence, replay, logs."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import armwise as aw
from armwise import offline
from armwise.features.encoding import from_python
from armwise.features.encoding.from_python import arm_to_json
from armwise.service.engine.application import Application
from armwise.service.engine.requests.ranking import read_list_rewards
from armwise.service.journal.events import Change
from armwise.service.server.app import Service
from armwise.service.server.config import Config
from tests.service.serving import Running

ARMS: list[Any] = ["red", "green", {"id": "blue", "price": 3}, {"id": "grey", "price": 3}]
WHERE = {"device": "phone"}


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_list_is_ranked_and_rewarded(shop: Any) -> None:
    ranked = shop.rank(WHERE, ARMS, k=3)
    assert len(set(ranked.arms)) == 3 and len(ranked) == 3
    assert all(0 < p <= 1 for p in ranked.probabilities)
    assert [each.status for each in shop.reward(ranked, {ranked.arms[1]: 1})] == ["taken"]
    assert [each.status for each in shop.reward(ranked.id, {0: 0.5, 2: 1})] == ["taken", "taken"]
    assert [each.status for each in shop.reward(ranked.id, [1, None, 0])] == ["repeated", "repeated"]
    assert set(shop.explain(ranked[0]).arms) == {"red", "green", "blue", "grey"}
    many = shop.rank_many([{"arms": ARMS, "k": 2}, {"context": WHERE, "arms": ["a"], "k": 1}])
    assert [len(each) for each in many] == [2, 1] and many[1].arms == ["a"] and many[1].probability == 1.0
    assert len(asyncio.run(shop.arank(WHERE, ARMS, k=2))) == 2


def test_a_slot_is_a_decision_that_may_be_rewarded_by_itself(shop: Any) -> None:
    ranked = shop.rank(WHERE, ARMS, k=3)
    assert shop.reward(ranked[1], 1.0).status == "taken" and shop.reward(ranked[1].id, 1.0).status == "repeated"
    other = shop.decide(WHERE, ARMS)
    receipts = shop.reward_many([(other, 1.0), (ranked[0], 0.0), (ranked[1], 1.0)])
    assert [each.status for each in receipts] == ["taken", "taken", "repeated"]
    assert [each.status for each in shop.reward(ranked.id, {ranked.arms[0]: 0.0, 2: 1})] == ["repeated", "taken"]


def test_no_click_so_far_is_no_error(shop: Any) -> None:
    """``{arm: 1 for arm in clicked}`` of a list that nobody clicked: nothing is said, and clicks may follow."""
    ranked = shop.rank(WHERE, ARMS, k=3)
    assert shop.reward(ranked, {}) == shop.reward(ranked.id, {}) == shop.reward(ranked, [None] * 3) == []
    assert [each.status for each in shop.reward(ranked, {ranked.arms[2]: 1})] == ["taken"]
    with pytest.raises(aw.UnknownDecision, match="e9"):
        shop.reward("e9", {})


def test_numbers_of_numpy_are_numbers(shop: Any) -> None:
    ranked = shop.rank(WHERE, ARMS, k=np.int64(2), pinned={np.int64(1): "red"}, at_most={"price": np.int32(1)})
    assert len(ranked) == 2 and ranked.arms[1] == "red"
    assert [each.status for each in shop.reward(ranked, {np.int64(0): np.float32(1)})] == ["taken"]
    assert [each.status for each in shop.reward(ranked.id, np.array([1.0, 0.0]))] == ["repeated", "taken"]
    with pytest.raises(ValueError, match=r"k must be a whole number from 1 to 50, got np\.True_"):
        shop.rank(WHERE, ARMS, k=np.True_)


def test_a_list_is_explained_slot_by_slot(shop: Any) -> None:
    """Among the arms that the slot could show: those above it, and what at_most forbids, are no alternatives."""
    ranked = shop.rank(WHERE, ARMS, k=3, pinned={0: "blue"}, at_most={"price": 1})
    assert set(shop.explain(ranked[0]).arms) == {"blue"}
    assert set(shop.explain(ranked[1]).arms) == {"red", "green"} and set(ranked[1].probabilities) <= {"red", "green"}
    last = shop.explain(ranked[2]).arms
    assert set(last) == {ranked.arms[2]} and last[ranked.arms[2]]["probability"] == 1.0
    with pytest.raises(ValueError, match=r"decision must be one slot of a list: explain\(ranked\[0\]\)"):
        shop.explain(shop.rank(WHERE, ARMS, k=2))


def test_the_same_id_is_the_same_list(shop: Any) -> None:
    first = shop.rank(WHERE, ARMS, k=3, id="e/1")
    for _ in range(3):  # what is learnt in between changes no answer
        shop.reward(shop.rank(WHERE, ARMS, k=3), [0, 0, 1])
    again = shop.rank(WHERE, ARMS, k=3, id="e/1")
    assert (again.id, again.arms, again.probabilities) == ("e/1", first.arms, first.probabilities)
    with pytest.raises(ValueError, match="event e/1 was requested before with other content"):
        shop.rank(WHERE, ARMS, k=2, id="e/1")
    assert shop.decide(WHERE, ARMS, id="e/1").arm in ("red", "green", "blue", "grey")  # a decision is another thing


def test_pinned_slots_and_at_most_so_many_alike(shop: Any) -> None:
    for _ in range(5):
        ranked = shop.rank(WHERE, ARMS, k=3, pinned={1: "red"}, at_most={"price": 1})
        assert ranked.arms[1] == "red" and ranked.probabilities[1] == 1.0
        assert not {"blue", "grey"} <= set(ranked.arms)


def test_what_makes_no_sense_is_a_value_error_and_changes_nothing(shop: Any) -> None:
    ranked = shop.rank(WHERE, ARMS, k=2, id="e1")
    other = next(arm for arm in ("red", "green", "blue", "grey") if arm not in ranked.arms)
    for call, said in (
        (lambda: shop.rank(WHERE, ARMS, k=5), "k must be at most the number of arms, 4, got 5"),
        (lambda: shop.rank(WHERE, ARMS, k=0), "k must be a whole number from 1 to 50"),
        (lambda: shop.rank(WHERE, ["a", "a"], k=2), "two arms have the id 'a'"),
        (lambda: shop.rank(WHERE, ARMS, k=4, at_most={"price": 1}), "k is 4, but the arms .* fill at most 3$"),
        (lambda: shop.rank(WHERE, ARMS, k=2, at_most={"size": 1}), "no arm has a feature 'size'"),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={2: "red"}), "pinned must have slots 0 to 1"),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={0: "pink"}), "'pink' is not one of the arms"),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={0: "red", 1: "red"}), "pinned must not name an arm twice.*red"),
        (
            lambda: shop.rank(WHERE, ARMS, k=2, pinned={0: "red", "0": "blue"}),
            "pinned must not name a slot twice, got 0",
        ),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={"00": "red"}), "pinned must have slots 0 to 1, got '00'"),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={"٠": "red"}), "pinned must have slots 0 to 1"),
        (lambda: shop.rank(WHERE, ARMS, k=2, pinned={0: "blue", 1: "grey"}, at_most={"price": 1}), "at_most allows$"),
        (lambda: shop.rank(WHERE, ARMS, k=2, id=""), "the event id must have 1 to 256 characters"),
        (lambda: shop.reward("e1", {other: 1}), "is not one of the arms that the list showed"),
        (lambda: shop.reward("e1", 1.0), "rewards must be {arm: value}, {slot: value} or a value per slot, got 1.0"),
        (lambda: shop.reward("e1", {2: 1}), "the list has slots 0 to 1, got 2"),
        (lambda: shop.reward("e1", {-1: 1}), "slots 0 to 1, got -1|whose keys are slots from 0.* got '-1'"),
        (lambda: shop.reward("e1", [1, 0, 0]), "or 2 values"),
        (lambda: shop.reward("e1", {}, final=True), "must name the slots for which they are final"),
        (lambda: shop.reward("e1", {ranked.arms[0]: "much"}), "must have a number"),
        (lambda: shop.reward("e1", [float("nan"), 1]), "slot 0 must have a number of at most 1e\\+150, got nan"),
        (lambda: shop.reward("e1", {(1,): 1}), "is not one of the arms"),
        (lambda: shop.reward("e1", {ranked.arms[0]: 1, 0: 1}), "a slot is named twice"),
        (lambda: shop.reward("e1", {ranked.arms[0]: 1}, cost=1.0), "cost must be left out"),
        (lambda: shop.rank_many([{"arms": ARMS, "kk": 2}]), "a request has context, arms, k"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
    for value in ({"red": 1}, 1.0):
        with pytest.raises(aw.UnknownDecision, match="e9"):
            shop.reward("e9", value)
    assert {each.status for each in shop.reward("e1", [1, 1])} == {"taken"}  # nothing was taken before
    assert len(shop.log()) == 1


def test_a_list_in_memory_writes_no_json_of_its_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 arms take longer to write than ten slots to draw."""
    shop, written = aw.Decider(seed=1), 0

    def spy(arm: Any) -> bytes:
        nonlocal written
        written += 1
        return arm_to_json(arm)

    monkeypatch.setattr(from_python, "arm_to_json", spy)
    arms = [{"id": f"arm {i}", "price": i % 7} for i in range(200)]
    ranked = shop.rank(WHERE, arms, k=5, pinned={3: "arm 9"})
    shop.reward(ranked, [0, 1, 0, 0, 0])
    assert written == 0
    assert shop.rank(WHERE, arms, k=5, pinned={3: "arm 9"}, id=ranked.id).arms == ranked.arms


def test_a_log_of_lists_is_a_slate_log(shop: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        ranked = shop.rank(WHERE, ["a", "b", "c"], k=2)
        shop.reward(ranked, [float(rng.random() < 0.2 + 0.6 * (arm == "b")) for arm in ranked.arms])
    log = shop.log()
    assert isinstance(log, offline.SlateLog) and log.actions.shape == (60, 2) and log.arm_names is not None
    result = offline.evaluate_slates(log, ["b", "a", "c"], warn=False)
    assert 0.0 <= result["rips"].value < 3.0
    with pytest.raises(ValueError, match="must name different arms of the log"):
        offline.evaluate_slates(log, ["b", "z"])
    with pytest.raises(ValueError, match="has no arm left"):
        offline.evaluate_slates(log, ["b"])
    shop.decide(WHERE, ["a", "b"])  # lists and decisions: the slots are decisions among the others
    assert isinstance(shop.log(), offline.Log)


def test_a_log_of_lists_warms_another_shop(tmp_path: Path) -> None:
    """Of a shop, of its file, and of VW's CCB: the slots are learnt as the shop learns its own."""
    shop, rng = aw.Decider(seed=1), np.random.default_rng(1)
    for _ in range(80):
        ranked = shop.rank(WHERE, ARMS, k=2, at_most={"price": 1})
        shop.reward(ranked, [float(rng.random() < 0.1 + 0.7 * (arm == "blue")) for arm in ranked.arms])
    log = shop.log()
    row = next(log.decisions())
    assert row["context"] == WHERE | {"slot": {"position": "1"}} and len(row["arms"]) == 4
    assert {"id": "blue", "features": {"price": 3}} in row["arms"]
    other = aw.Decider(seed=2)
    assert other.warm_start(log) == 160
    asked = other.rank(WHERE, ARMS, k=2)
    assert other.explain(asked[0]).arms["blue"]["estimate"] == pytest.approx(
        shop.explain(shop.rank(WHERE, ARMS, k=2)[0]).arms["blue"]["estimate"], abs=0.02
    )
    log.to_dsjson(tmp_path / "ccb.dsjson")  # VW's format
    assert aw.Decider(seed=2).warm_start(offline.SlateLog.from_dsjson(tmp_path / "ccb.dsjson")) == 160
    whole = offline.SlateLog(None, [[0, 1]], [1.0], [[0.5, 1.0]], n_arms=2)
    with pytest.raises(ValueError, match="one reward for the whole ranking"):
        other.warm_start(whole)


def test_an_apprentice_shows_the_order_that_it_is_given(tmp_path: Path) -> None:
    """A shop's own order, with what is pinned, while clicks are learnt; then the model's."""
    running = Running(Service(Config(storage=str(tmp_path / "d"), applications={"shop": Application(apprentice=True)})))
    with aw.Client(running.url, app="shop") as client:
        for _ in range(20):
            ranked = client.rank(WHERE, ["a", "b", "c", "d"], k=3, pinned={1: "d"})
            assert ranked.arms == ["a", "d", "b"]
            client.reward(ranked, [0, 0, 1])
        engine = running.service.engine
        engine.configure("shop", Change(apprentice=False))
        engine.wait_learnt()
        tops = Counter(client.rank(WHERE, ["a", "b", "c", "d"], k=1).arms[0] for _ in range(40))
        assert tops["a"] < 20
    running.stop()


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_silence_is_no_click_once_the_window_closes(where: str, tmp_path: Path) -> None:
    clock = Clock()
    with aw.Decider(*([tmp_path / "d"] if where == "folder" else []), seed=1, window=60, clock=clock) as shop:
        ranked = shop.rank(WHERE, ARMS, k=3)
        clock.now += 30
        shop.reward(ranked, {0: 1})
        clock.now += 60
        assert shop.reward(ranked, {1: 1})[0].status == "late"
        log = shop.log()
        assert log.rewards.tolist() == [[1.0, 1.0, 0.0]]  # what came late is in the log, and not learnt
        assert shop.log(horizon=40).rewards.tolist() == [[1.0, 0.0, 0.0]]


def test_a_folder_replays_to_the_bit(tmp_path: Path) -> None:
    with aw.Decider(tmp_path / "d", seed=1) as shop:
        for i in range(25):
            ranked = shop.rank({"hour": i % 3}, ARMS, k=3)
            shop.reward(ranked, {0: float(ranked.arms[0] == "red")})
        asked = {"hour": 1}
        before = shop.rank(asked, ARMS, k=3, id="last")
        lines = list(shop._backend.lines())
    with aw.Decider(tmp_path / "d") as shop:
        assert shop.rank(asked, ARMS, k=3, id="last").probabilities == before.probabilities
        assert len(list(shop._backend.lines())) == len(lines) == 78


def test_lists_are_drawn_with_the_probabilities_that_are_answered() -> None:
    """A frozen shop, 1,500 lists of 2. A failure would mean that IPS of a shop's lists is biased."""
    shop = aw.Decider(seed=3, learn="close")  # nothing is learnt of lists whose window is open
    for _ in range(20):
        ranked = shop.rank({}, ["a", "b", "c"], k=2)
        shop.reward(ranked, [float(arm == "a") for arm in ranked.arms], final=True)
    counts: Counter[tuple[str, ...]] = Counter()
    expected: dict[tuple[str, ...], float] = {}
    for _ in range(1500):
        ranked = shop.rank({}, ["a", "b", "c"], k=2)
        counts[tuple(ranked.arms)] += 1
        expected[tuple(ranked.arms)] = expected.get(tuple(ranked.arms), 0.0) + ranked.probability
    seen = list(counts)
    weights = np.array([counts[each] for each in seen], float)
    means = np.array([expected[each] / counts[each] for each in seen]) * 1500
    assert stats.chisquare(weights, means * weights.sum() / means.sum()).pvalue > 1e-4


def test_clicks_find_the_best_order() -> None:
    """Arms at 60, 30 and 5 %, the second slot seen half as often. A failure would mean that lists teach nothing."""
    shop, rng, top = aw.Decider(seed=2), np.random.default_rng(2), Counter[str]()
    worth = {"a": 0.05, "b": 0.6, "c": 0.3}
    for t in range(600):
        ranked = shop.rank({}, list(worth), k=2)
        seen = (1.0, 0.5)
        clicks = [float(rng.random() < seen[slot] * worth[arm]) for slot, arm in enumerate(ranked.arms)]
        shop.reward(ranked, clicks)
        if t >= 300:
            top[ranked.arms[0]] += 1
    assert top["b"] > 200


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"c": 1}, "is not one of the arms"),
        ({True: 1}, "is not one of the arms"),
        ({"a": 1, 0: 1}, "named twice"),
        ([1], "or 2 values"),
        ("ab", "or a value per slot"),
        ([float("nan"), 1], "must have a number"),
        ([True, 1], "must have a number"),
    ],
)
def test_wrong_rewards_of_a_list_are_named(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_list_rewards(["a", "b"], given)


def test_an_agent_with_arms_of_its_own_says_what_lists_need() -> None:
    with pytest.raises(ValueError, match="this application has 4 arms, got 3: lists and excluded arms leave fewer"):
        aw.Decider(agent=aw.UCB1(n_arms=4), learn="arrival").rank({}, ["a", "b", "c", "d"], k=2)


def test_a_ranker_in_a_decider_is_told_that_lists_need_none() -> None:
    with pytest.raises(ValueError, match=r"got TopRank .*: shop\.rank fills lists with any agent, slot by slot"):
        aw.Decider(agent=aw.TopRank(4, horizon=100))  # type: ignore[arg-type]
