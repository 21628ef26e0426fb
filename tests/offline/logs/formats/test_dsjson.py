"""VW's dsjson: what we write VW reads with the same labels, and what VW reads so do we."""

# mypy: disable-error-code="index, union-attr"

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import armwise as aw
from armwise.offline import Log, LogError, WeakLogWarning, evaluate
from armwise.offline.logs.formats.dsjson import flatten, line, named_arms, named_context
from tests.offline.worlds import make

# Events as Personalizer and VW's reinforcement learning library log them, with what they like to put in.
EVENTS = [
    '{"_label_cost":-1.0,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1,"o":[{"EventId":"e1","v":1.0}],'
    '"Timestamp":"2026-03-01T10:00:00.0000000Z","Version":"1","EventId":"e1","a":[2,1,3],'
    '"c":{"User":[{"tier":"pro"},{"age":31}],"_multi":[{"_tag":"news","i":{"constant":1,"id":"news"}},'
    '{"_tag":"sport","i":{"constant":1,"id":"sport"},"Topic":[{"hot":true}]},{"_tag":"music","i":{"constant":1,"id":"music"}}]},'
    '"p":[0.8,0.1,0.1],"VWState":{"m":"a/b"},"_original_label_cost":-1.0}',
    '{"_label_cost":0,"_label_probability":0.1,"_label_Action":1,"_labelIndex":0,"Timestamp":"2026-03-01T10:01:00.0000000Z",'
    '"Version":"1","EventId":"e2","a":[1,2],"c":{"User":[{"tier":"free"},{"age":54}],"_multi":[{"_tag":"news","i":{"constant":1,'
    '"id":"news"}},{"_tag":"music","i":{"constant":1,"id":"music"}}]},"p":[0.1,0.9],"VWState":{"m":"a/b"}}',
    '{"_label_cost":-0.5,"_label_probability":0.25,"_label_Action":3,"_labelIndex":2,"EventId":"e3","a":[3,1,2],"c":{'
    '"User":[{"tier":"pro"}],"_multi":[{"_tag":"a"},{"_tag":"b"},{"_tag":"c"}]},"p":[0.25,0.5,0.25],"_skipLearn":true}',
]  # fmt: skip


def vw_loss(path, n):
    """VW's average loss for uniform exploration: minus its IPS estimate of the uniform policy."""
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace(f"--cb_explore_adf --dsjson -d {path} --epsilon 1.0 -t --quiet")
    assert workspace.get_weighted_examples() == n
    return workspace.get_sum_loss() / n


def vw_labels(path):
    """(chosen action, cost, probability) of each event, as VW parsed it."""
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace("--cb_explore_adf --dsjson -t --quiet")
    found = []
    for text in path.read_text().splitlines():
        examples = workspace.parse(text)
        for i, example in enumerate(examples[1:]):  # the first one is shared
            costs = example.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs
            if costs:
                found.append((i, costs[0].cost, costs[0].probability))
        workspace.finish_example(examples)
    return np.array(found)


def changing(n=200):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 5, n)
    contexts = [rng.normal(size=(k, 2)) for k in sizes]
    arms = np.array([rng.integers(k) for k in sizes])
    return Log(contexts=contexts, arms=arms, rewards=rng.random(n) - 0.3, probabilities=1.0 / sizes)


@pytest.mark.parametrize("log", [make(300, seed=1)[0], changing()], ids=["shared", "changing arms"])
def test_vw_reads_what_we_write_with_the_same_labels(log, tmp_path):
    path = tmp_path / "log.dsjson"
    log.to_dsjson(path)
    labels = vw_labels(path)
    assert len(labels) == len(log)  # VW dropped no label
    np.testing.assert_array_equal(labels[:, 0], log.arms)
    np.testing.assert_allclose(labels[:, 1], -log.rewards, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(labels[:, 2], log.probabilities, rtol=1e-6)
    ours = evaluate(log, aw.Uniform(log.n_arms), "ips")["ips"].value
    assert vw_loss(path, len(log)) == pytest.approx(-ours, rel=1e-5)


@pytest.mark.parametrize("log", [make(300, seed=1)[0], changing()], ids=["shared", "changing arms"])
@pytest.mark.parametrize("name", ["log.dsjson", "log.dsjson.gz"])
def test_we_read_what_we_write(log, name, tmp_path):
    log.to_dsjson(tmp_path / name)
    again = Log.from_dsjson(tmp_path / name)
    assert len(again) == len(log)
    assert again.n_arms == log.n_arms
    np.testing.assert_array_equal(again.arms, log.arms)
    np.testing.assert_array_equal(again.rewards, log.rewards)
    np.testing.assert_array_equal(again.probabilities, log.probabilities)
    if log.contexts.ndim == 2:
        np.testing.assert_array_equal(again.contexts, log.contexts)
    else:
        np.testing.assert_array_equal(again.arm_features, log.contexts)
        np.testing.assert_array_equal(again.available, log.available)


def test_we_read_what_vw_reads(tmp_path):
    path = tmp_path / "vw.dsjson"
    path.write_text("\n".join(EVENTS) + "\n")
    log = Log.from_dsjson(path)
    assert len(log) == 2
    assert log.n_arms == 3
    assert log.arms.tolist() == [1, 0]
    assert log.rewards.tolist() == [1.0, 0.0]
    assert log.probabilities.tolist() == [0.8, 0.1]
    assert log.available.tolist() == [[True, True, True], [True, False, True]]  # by their tags
    assert log.contexts.tolist() == [[1.0, 31.0, 0.0], [0.0, 54.0, 1.0]]  # tier=pro, age, tier=free
    assert log.arm_features.shape == (2, 3, 5)  # constant, three ids, hot
    assert log.timestamps[0].startswith("2026-03-01")
    path.write_text("\n".join(EVENTS[:2]) + "\n")
    assert vw_loss(path, 2) == pytest.approx(-evaluate(log, aw.Uniform(3), "ips", warn=False)["ips"].value, rel=1e-5)


def tagged(path, *rows):
    path.write_text("\n".join(
        line(event_id="e", arm=0, reward=1.0, probabilities=[1.0 / len(tags)] * len(tags), context={},
             actions=[{} if tag is None else {"_tag": tag} for tag in tags]) for tags in rows
    ))  # fmt: skip
    return Log.from_dsjson(path).arm_names


def test_tags_are_the_names_of_the_arms(tmp_path):
    path = tmp_path / "log.dsjson"
    assert tagged(path, ["pasta", "salad"], ["pasta"], ["pasta", "salad", "soup"]) == ["pasta", "salad", "soup"]
    assert tagged(path, ["pasta", "salad"], ["salad", "pasta"]) == ["pasta", "salad"]  # wherever they stand
    assert tagged(path, ["pasta", "salad"], ["soup", "pasta"]) == ["pasta", "salad", "soup"]
    assert tagged(path, ["pasta", "pasta"]) is None
    assert tagged(path, ["pasta", None]) is None
    log, _ = make(50, seed=1)
    log.to_dsjson(path)
    assert Log.from_dsjson(path).arm_names is log.arm_names is None


def test_we_read_the_log_of_the_decision_service(tmp_path):
    event = {"seq": 1, "id": "e1", "time": "2026-03-01T10:00:00.000Z", "context": {"hour": 7, "geo": "UK"},
             "arms": ["a", {"id": "b", "features": {"price": 2.5}}, "excluded"], "offered": 2, "arm": "b", "index": 1,
             "probabilities": [0.25, 0.75], "probability": 0.75, "reward": 0.5}  # fmt: skip
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in (event, event | {"reward": None}, event | {"index": 0})))
    with pytest.raises(ValueError, match="would select by outcome: export it again"):
        Log.from_dsjson(path)  # without ages, and an open decision among the rewarded ones
    path.write_text("\n".join(json.dumps(e) for e in (event, event | {"index": 0})))
    log = Log.from_dsjson(path)
    assert log.arms.tolist() == [1, 0]
    assert log.rewards.tolist() == [0.5, 0.5]
    assert log.n_arms == 2
    assert log.contexts.tolist() == [[7.0, 1.0]] * 2
    assert log.arm_features[0].tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 2.5]]
    assert log.support.tolist() == [[True, True]] * 2


def test_the_distributions_say_which_actions_were_never_tried(tmp_path):
    never = {"id": "e", "context": {}, "arms": ["a", "b", "c"], "index": 0, "probability": 1.0, "reward": 1.0,
             "probabilities": [1.0, 0.0, 0.0]}  # fmt: skip
    even = never | {"probability": 0.5, "probabilities": [0.5, 0.0, 0.5]}
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(e) for e in [never, even] * 50))
    log = Log.from_dsjson(path)
    assert log.support[:2].tolist() == [[True, False, False], [True, False, True]]
    with pytest.warns(WeakLogWarning, match="in 50.0% of its decisions the target plays an arm"):  # 2/3 and 1/3
        assert evaluate(log, aw.Uniform(3), "ips").diagnostics.unsupported == pytest.approx(0.5)
    path.write_text("\n".join(json.dumps(e) for e in [never, even | {"probabilities": [0.5]}]))
    assert Log.from_dsjson(path).support is None  # one event that does not say is enough


def test_features_may_be_left_out(tmp_path):
    path = tmp_path / "vw.dsjson"
    path.write_text("\n".join(EVENTS))
    log = Log.from_dsjson(path, features=False)
    assert log.contexts is None
    assert log.arm_features is None
    assert log.arms.tolist() == [1, 0]
    with pytest.raises(ValueError, match="features=False"):
        Log.from_dsjson(path, max_features=3)


def test_bad_lines_are_all_reported_or_skipped(tmp_path):
    dropped = json.loads(EVENTS[0]) | {"pdrop": 0.5}
    beyond = json.loads(EVENTS[0]) | {"_labelIndex": 7}
    bad = [
        '{"RewardValue":1.0,"EventId":"e9"}',
        "not json",
        json.dumps(dropped),
        json.dumps(beyond),
        '{"c":{"_multi":[]}}',
    ]
    path = tmp_path / "bad.dsjson"
    path.write_text("\n".join([EVENTS[0], *bad]))
    with pytest.raises(LogError) as caught:
        Log.from_dsjson(path)
    assert [p.split(":")[0] for p in caught.value.problems] == [f"line {i}" for i in range(2, 7)]
    assert "pdrop" in caught.value.problems[2]
    assert "number 8" in caught.value.problems[3]
    assert len(Log.from_dsjson(path, skip=True)) == 1


def test_labels_come_before_features_and_the_chosen_action_first():
    event = json.loads(line(event_id="e", arm=2, reward=0.25, probabilities=[0.2, 0.3, 0.5], context={"x": {"a": 1}},
                            actions=[{"_tag": "p"}, {"_tag": "q"}, {"_tag": "r"}]))  # fmt: skip
    keys = list(event)
    assert all(
        keys.index(k) < keys.index("c") for k in ("_label_cost", "_label_probability", "_label_Action", "_labelIndex")
    )
    assert event["a"] == [3, 1, 2]
    assert event["p"] == [0.5, 0.2, 0.3]
    assert event["_label_cost"] == -0.25
    assert event["_label_Action"] == 3
    assert event["_labelIndex"] == 2


def test_writing_needs_probabilities(tmp_path):
    log, _ = make(5, seed=1, hidden=True)
    with pytest.raises(ValueError, match="no probabilities"):
        log.to_dsjson(tmp_path / "log.dsjson")
    named = Log(contexts=["red", "blue"], arms=[0, 1], rewards=[1, 0], probabilities=[0.5, 0.5], arm_names=["a", "b"])
    named.to_dsjson(tmp_path / "log.dsjson.gz")
    with gzip.open(tmp_path / "log.dsjson.gz", "rt") as file:
        first = json.loads(file.readline())
    assert first["c"]["x"] == {"key": "red"}
    assert [a["_tag"] for a in first["c"]["_multi"]] == ["a", "b"]


def test_shared_features_by_name():
    assert named_context({"User": {"age": 30}, "_multi": []}) == {"User": {"age": 30}}
    assert named_context({"shared": {"hour": 9}, "_multi": []}) == {"hour": 9}


def test_actions_have_their_tag_or_place_as_id():
    found = named_arms([{"_tag": "hat", "i": {"id": "hat"}, "f": {"price": 3}}, {"Article": {"tokens": 8}}])
    assert found == [{"id": "hat", "features": {"price": 3}}, {"id": "1", "features": {"Article": {"tokens": 8}}}]


def test_nested_features_are_flat_numbers():
    found = flatten({"User": {"age": 30, "geo": "UK"}, "ok": True, "_tag": "x", "v": [0.5, {"w": 2}]})
    assert found == {"User.age": 30.0, "User.geo=UK": 1.0, "ok": 1.0, "v.0": 0.5, "v.w": 2.0}


def test_labels_come_before_the_features():
    text = line(
        event_id="e1",
        arm=1,
        reward=0.5,
        probabilities=[0.25, 0.75],
        context={"User": {"age": 30}},
        actions=[{"_tag": "a"}, {"_tag": "b"}],
    )
    assert text.startswith('{"_label_cost": -0.5, "_label_probability": 0.75, "_label_Action": 2, "_labelIndex"')
