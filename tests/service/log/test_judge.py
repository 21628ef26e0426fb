"""How exported rows, erasures and estimates of a policy are made from the journal's rows."""

from __future__ import annotations

import msgspec

from armwise.service.journal.events import Decision, Row
from armwise.service.journal.rules import Status
from armwise.service.log.export_journal import Entry, Outcome, as_dsjson, as_json, outcomes, played_arm, stamp
from armwise.service.log.judge import as_log, judged, missed
from armwise.service.log.subjects import erasure, values_at
from armwise.service.log.verify import explained, sum_of

ASKED = Decision(msgspec.Raw(b"{}"), [msgspec.Raw(b'"a"')], [1.0], 0, 0, 1, 0.0)
ROW = Row(1, 0, "shop", "decision", "e1", b"")


def test_the_two_json_formats_say_the_reward_once_it_is_settled() -> None:
    open_, closed = (Status("shop", "e1", 1, 5, "sum", reward, True) for reward in (0.0, 0.5))
    closed.closed = True
    line = msgspec.json.decode(as_json(Entry(ROW, ASKED, open_, [], now=3)))
    assert (line["arm"], line["status"], line["reward"]) == ("a", "open", None)
    assert as_dsjson(Entry(ROW, ASKED, closed, [], now=9)).startswith(b'{"_label_cost":-0.5,"_label_probability"')
    assert played_arm(ASKED) == "a"


def test_outcomes_have_their_time_and_whether_they_were_late() -> None:
    reward = Row(2, 1000, "shop", "reward", "e1", b'{"value":0.5,"decision":1,"late":true}')
    assert outcomes([reward]) == [Outcome(0.5, 1000, late=True)]
    said = {"value": 0.5, "time": "1970-01-01T00:00:01.000Z", "late": True, "final": False}
    assert Outcome(0.5, 1000, late=True).to_dict() == said
    assert stamp(0) == "1970-01-01T00:00:00.000Z"


def test_rounds_without_an_answer_are_counted_with_their_reason() -> None:
    said = "it could not answer 1 of 2 decisions (it has 2 arms, got 1), which are left out"
    assert missed([[1.0], "it has 2 arms, got 1"]) == said
    assert missed([[1.0]]) == ""


def test_an_arm_that_could_not_be_drawn_is_outside_the_support() -> None:
    asked = Decision(msgspec.Raw(b"{}"), [], [1.0, 0.0], 0, 0, 1, 0.0)
    log, targets = as_log([(ROW, asked, 1.0)], [[0.5, 0.5]])
    assert log.support is not None and log.support.tolist() == [[True, False]]
    assert targets.tolist() == [[0.5, 0.5]]


def test_a_policy_that_plays_the_rewarded_arm_earns_its_reward() -> None:
    asked = Decision(msgspec.Raw(b"{}"), [], [0.5, 0.5], 0, 0, 1, 0.0)
    rounds = [(Row(i, i, "shop", "decision", str(i), b""), asked, 1.0) for i in range(50)]
    assert judged(rounds, [[1.0, 0.0]] * 50)[0]["total"]["averageReward"] == 1.0


def test_one_number_is_one_subject_however_it_is_written() -> None:
    assert erasure(b"secret", "user", 7) == erasure(b"secret", "user", 7.0) == erasure(b"secret", "user", "7")
    assert erasure(b"secret", "user", 7) != erasure(b"other", "user", 7)


def test_a_path_finds_values_inside_lists_and_dotted_names() -> None:
    nested = [{"user": {"id": 7}}, {"user.id": [8, 9]}]
    assert list(values_at(nested, ["user", "id"])) == [7, [8, 9], 8, 9]


def test_sums_wrap_around_and_a_missing_key_is_named() -> None:
    assert sum_of(2**128 + 5) == "sum:00000000000000000000000000000005"
    assert explained(KeyError("e1")) == "there is no 'e1'"
