"""Rankings: against explicit loops over rows and slots, worlds with known truth, and the formats they come in."""

# mypy: disable-error-code="index, var-annotated"

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import armwise as aw
from armwise import Decider
from armwise.cli.main import main
from armwise.offline import Log, LogError, SlateLog, WeakLogWarning, evaluate_slates
from benchmarks.faulty_designs import rankings

K, L = 4, 3
BASE = np.array([0.1, 0.3, 0.5, 0.7])


def conditional(scores, above):
    """Plackett-Luce: the next arm, of those that are left."""
    left = np.array([a not in above for a in range(K)])
    p = np.where(left, np.exp(scores - scores.max()), 0.0)
    return p / p.sum()


def logger(x, above):
    return conditional(0.4 * x[0] * np.arange(K), above)


def target(x, above):
    return conditional(0.8 * np.arange(K) + 0.2 * x[1], above)


def click(x, ranking, slot):
    """A user who reads from the top: a good arm above takes from those below."""
    taken = sum(BASE[a] for a in ranking[:slot])
    return BASE[ranking[slot]] * (1 - 0.25 * taken)


def conditionals(scores, actions, slot):
    """What ``conditional`` says in every row of (n, K) scores, below the arms above the slot."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.put_along_axis(p, actions[:, :slot], 0.0, axis=1)
    return p / p.sum(axis=1, keepdims=True)


def make(n, seed, cascade=True):
    """Rankings by ``logger``, a slot of all rows at a time; without the cascade the slots are independent."""
    rng = np.random.default_rng([seed, 5])
    x = rng.uniform(-1, 1, (n, 2))
    actions, p, means = np.zeros((n, L), int), np.ones((n, L)), np.zeros((n, L))
    for slot in range(L):
        dist = conditionals(0.4 * x[:, :1] * np.arange(K), actions, slot if cascade else 0)
        drawn = (dist.cumsum(axis=1) <= rng.random((n, 1)) * dist.sum(axis=1, keepdims=True)).sum(axis=1)
        actions[:, slot], p[:, slot] = drawn, dist[np.arange(n), drawn]
        means[:, slot] = BASE[drawn] * (1 - 0.25 * BASE[actions[:, :slot]].sum(axis=1) * cascade)
    return SlateLog(x, actions, (rng.random((n, L)) < means).astype(float), p, n_arms=K)


def target_table(log):
    """``target`` in every slot of every row."""
    scores = 0.8 * np.arange(K) + 0.2 * log.contexts[:, 1:]
    return np.stack([conditionals(scores, log.actions, slot) for slot in range(L)], axis=1)


def truth():
    """The target's value, by all rankings; it does not depend on x, whose part is the same for every arm."""
    total = 0.0
    for ranking in itertools.permutations(range(K), L):
        chance = np.prod([target(np.zeros(2), list(ranking[:slot]))[ranking[slot]] for slot in range(L)])
        total += chance * sum(click(None, ranking, slot) for slot in range(L))
    return total


def test_estimators_equal_loops_over_rows_and_slots():
    log = make(200, seed=1)
    total = dict.fromkeys(["sips", "iips", "rips", "pi"], 0.0)
    for i in range(200):
        whole, alone = 1.0, []
        for slot in range(L):
            above = log.actions[i, :slot].tolist()
            w = target(log.contexts[i], above)[log.actions[i, slot]] / log.probabilities[i, slot]
            whole *= w
            alone.append(w)
            total["iips"] += w * log.rewards[i, slot]
            total["rips"] += whole * log.rewards[i, slot]
        total["sips"] += whole * log.rewards[i].sum()
        total["pi"] += (sum(alone) - L + 1) * log.rewards[i].sum()
    found = evaluate_slates(log, target, ["sips", "iips", "rips", "pi"], warn=False)
    for name, value in total.items():
        assert found[name].value == pytest.approx(value / 200, rel=1e-12), name


def test_cascade_estimators_hold_the_truth_and_the_model_pays():
    # 100 logs of 400 rankings of a cascade world: below .87 would be 3.5 standard errors off 95 %.
    held, errors, right = {"sips": 0, "rips": 0, "cascade-dr": 0}, {}, truth()
    for run in range(100):
        log = make(400, run)
        found = evaluate_slates(log, target_table(log), list(held), warn=False)
        for name in held:
            held[name] += found[name].low <= right <= found[name].high
            errors.setdefault(name, []).append(found[name].value - right)
    assert min(held.values()) >= 87, held
    spread = {name: np.std(e) for name, e in errors.items()}
    assert spread["cascade-dr"] < 0.9 * spread["rips"] < 0.9 * spread["sips"]
    assert abs(np.mean(errors["cascade-dr"])) < 4 * spread["cascade-dr"] / 10  # unbiased: folds do not leak


def test_independent_slots_have_iips_and_the_pseudo_inverse():
    def even(x, above):
        return np.array([0.1, 0.2, 0.3, 0.4])

    right = 3 * (even(None, []) @ BASE)
    for name in ("iips", "pi", "sn-iips"):
        errors = [
            evaluate_slates(make(300, run, False), even, name, warn=False)[name].value - right for run in range(60)
        ]
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(60), name


def test_a_model_of_the_rewards_leaves_the_mean_unbiased_even_if_it_is_wrong():
    # A target that is the logger: the weights are 1, and every estimator is near the mean of the log.
    log = make(2000, seed=9)
    found = evaluate_slates(log, logger, ["sips", "iips", "rips", "pi", "cascade-dr"], warn=False)
    for name in ("sips", "iips", "rips", "pi"):
        assert found[name].value == pytest.approx(log.totals.mean(), rel=1e-9)
    assert found["cascade-dr"].value == pytest.approx(log.totals.mean(), abs=0.02)


def test_slots_that_never_repeat_an_arm_are_not_independent():
    found = evaluate_slates(make(200, 1), target, "iips", warn=False)
    assert "marginals" in found.verdict


def test_a_policy_may_be_arrays_and_a_reward_that_of_the_whole():
    log = make(100, 2)
    table = np.array([[target(log.contexts[i], log.actions[i, :s].tolist()) for s in range(L)] for i in range(100)])
    np.testing.assert_allclose(target_table(log), table, rtol=1e-12)
    by_function = evaluate_slates(log, target, "cascade-dr", warn=False)["cascade-dr"].value
    assert evaluate_slates(log, table, "cascade-dr", warn=False)["cascade-dr"].value == pytest.approx(by_function)
    logged = np.take_along_axis(table, log.actions[:, :, None], axis=2)[:, :, 0]
    whole = SlateLog(log.contexts, log.actions, log.totals, log.probabilities, n_arms=K)
    assert set(evaluate_slates(whole, logged, warn=False)) == {"sips"}
    free = make(100, 2, cascade=False)
    alone = SlateLog(free.contexts, free.actions, free.totals, free.probabilities, n_arms=K)
    assert set(evaluate_slates(alone, logged, warn=False)) == {"sips", "pi"}
    with pytest.raises(ValueError, match="rips needs a reward per slot"):
        evaluate_slates(whole, logged, "rips")
    with pytest.raises(ValueError, match="cascade-dr needs the target's probabilities of all arms"):
        evaluate_slates(log, logged, "cascade-dr")


def ccb(chosen, p, costs):
    multi = [{"_tag": name, "i": {"id": name}} for name in ("a", "b", "c")]
    outcomes = [{"_label_cost": c, "_a": a, "_p": q} for a, q, c in zip(chosen, p, costs, strict=True)]
    return {"c": {"User": {"age": 30}, "_multi": multi, "_slots": [{} for _ in chosen]}, "_outcomes": outcomes}


def decision_service_line(event, slots, outcomes):
    """A line as VW's decision service writes them for CCB: the whole envelope, probabilities in single precision."""
    made = []
    for slot, (order, p, value) in zip(slots, outcomes, strict=True):
        observed = [{"v": value, "EventId": event, "Index": slot, "ActionTaken": False}] if value else []
        made.append({"_label_cost": -value, "_id": slot, "_a": order, "_p": [p] * len(order), "_o": observed,
                     "_original_label_cost": -value})  # fmt: skip
    leaves = {"Assam": "black", "Sencha": "green", "Oolong": "blue", "Keemun": "black"}
    tea = [{"_tag": name, "i": {"constant": 1, "id": name}, "j": [{"leaf": leaf}]} for name, leaf in leaves.items()]
    context = {"FromUrl": [{"season": "winter"}], "_multi": tea,
               "_slots": [{"_id": slot, "sj": [{"size": "wide", "position": "top"}]} for slot in slots]}  # fmt: skip
    return {"Timestamp": "2024-01-05T10:00:00.0000000", "Version": "1", "EventId": event, "c": context,
            "_outcomes": made, "_ba": list(range(1, 1 + len(slots))), "VWState": {"m": "N/A"}}  # fmt: skip


def test_lines_of_vws_decision_service_with_one_and_two_slots_are_read(tmp_path):
    third = 0.33333334  # of single precision: three of them make more than 1
    lines = [
        decision_service_line("e0", ["Main", "Side"], [([3, 1, 2, 0], 0.25, 0.5), ([0, 1, 2], third, 0.0)]),
        decision_service_line("e1", ["Main", "Side"], [([1, 0, 2, 3], 0.25, 0.0), ([2, 0, 3], third, 0.25)]),
        decision_service_line("e2", ["slot_0"], [([2, 1, 0, 3], 0.25, 1.0)]),
    ]
    path = tmp_path / "decisions.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    log = SlateLog.from_dsjson(path)
    assert log.arm_names == ["Assam", "Sencha", "Oolong", "Keemun"]
    assert log.actions.tolist() == [[3, 0], [1, 2], [2, -1]]
    assert log.rewards.tolist() == [[0.5, 0.0], [0.0, 0.25], [1.0, 0.0]]
    assert log.probabilities.tolist() == [[0.25, third], [0.25, third], [0.25, 1.0]]
    assert log.offered[0].tolist() == [[True] * 4, [True, True, True, False]]
    # what a policy that always shows these two would have earned: two of its decisions are there
    value = evaluate_slates(log, lambda x, above: "Sencha" if not above else "Oolong", "iips", warn=False)["iips"].value
    assert value == pytest.approx(0.25 / third / 3)


def test_ccb_logs_are_read_with_their_slots(tmp_path):
    lines = [
        ccb([[2, 0, 1], [0, 1]], [[0.5, 0.25, 0.25], [0.6, 0.4]], [-1.0, 0.0]),
        ccb([[1, 0, 2]], [[0.4, 0.3, 0.3]], [-0.5]),
        {"_skipLearn": True},
    ]
    path = tmp_path / "ccb.json"
    path.write_text("\n".join(map(json.dumps, lines)))
    log = SlateLog.from_dsjson(path)
    assert log.actions.tolist() == [[2, 0], [1, -1]] and log.arm_names == ["a", "b", "c"]
    assert log.rewards.tolist() == [[1.0, 0.0], [0.5, 0.0]] and log.probabilities.tolist() == [[0.5, 0.6], [0.4, 1.0]]
    assert log.offered[0].tolist() == [[True, True, True], [True, True, False]]
    assert log.contexts.tolist() == [[30.0], [30.0]]
    value = evaluate_slates(log, lambda x, above: "c" if not above else "a", "rips", warn=False)["rips"].value
    assert value == pytest.approx((1.0 / 0.5) / 2)
    with pytest.raises(
        LogError, match=r"first is line 1.* are decisions of several slots: read the file with .*SlateLog"
    ):
        Log.from_dsjson(path)


def test_slates_logs_are_read_with_the_actions_of_each_slot(tmp_path):
    line = {
        "_label_cost": -2.0,
        "c": {"_multi": [{"_slot_id": 0, "_tag": "x"}, {"_slot_id": 0, "_tag": "y"}, {"_slot_id": 1, "_tag": "z"}],
              "_slots": [{}, {}]},
        "_outcomes": [{"_a": [1, 0], "_p": [0.8, 0.2]}, {"_a": [0], "_p": [1.0]}],
    }  # fmt: skip
    (tmp_path / "slates.json").write_text(json.dumps(line))
    log = SlateLog.from_dsjson(tmp_path / "slates.json")
    assert log.actions.tolist() == [[1, 2]] and log.rewards.tolist() == [2.0]
    assert log.probabilities.tolist() == [[0.8, 1.0]] and log.offered[0, 1].tolist() == [False, False, True]


def test_the_services_slots_are_one_ranking_per_event(tmp_path):
    def slot(k, arms, index, p, reward):
        return {"id": f"e1\x1f{k}", "context": {"User": {"age": 5}}, "arms": arms, "offered": len(arms), "index": index,
                "probability": p, "reward": reward}  # fmt: skip

    lines = [slot(1, [{"id": "a"}, {"id": "c"}], 0, 0.7, 1.0), slot(0, [{"id": "a"}, {"id": "b"}], 1, 0.5, 0.0)]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    log = SlateLog.from_dsjson(tmp_path / "log.jsonl")
    assert [log.arm_names[a] for a in log.actions[0]] == ["b", "a"]
    assert log.probabilities.tolist() == [[0.5, 0.7]] and log.rewards.tolist() == [[0.0, 1.0]]


def test_bad_lines_and_arrays_are_named(tmp_path):
    (tmp_path / "bad.json").write_text(
        '{"c": {}}\n{"c": {"_multi": [{}], "_slots": [{}]}, "_outcomes": [{"_a": [0]}]}\n'
    )
    with pytest.raises(LogError) as caught:
        SlateLog.from_dsjson(tmp_path / "bad.json")
    assert caught.value.problems[0].startswith("line 1: not a ranking")
    assert caught.value.problems[1] == "line 2: slot 0: no '_a' and '_p', the actions and their probabilities"
    with pytest.raises(LogError, match="row 0, slot 1: the arm is 5, expected 0 to 1"):
        SlateLog(actions=[[0, 5]], rewards=[[0, 0]], probabilities=[[1, 1]], n_arms=2)
    with pytest.raises(LogError, match=r"row 0, slot 0: probabilities has 0\.0"):
        SlateLog(actions=[[0]], rewards=[[0]], probabilities=[[0.0]])


def two_of_four(n, seed=0):
    """Two of four arms at random, no arm twice; a slot's reward depends on its own arm alone."""
    rng = np.random.default_rng([seed, 8])
    actions = np.array([rng.permutation(4)[:2] for _ in range(n)])
    rewards = (rng.random((n, 2)) < 0.1 + 0.2 * actions).astype(float)
    return SlateLog(actions=actions, rewards=rewards, probabilities=np.tile([1 / 4, 1 / 3], (n, 1)),
                    marginals=np.full((n, 2), 1 / 4), n_arms=4)  # fmt: skip


def best_first(context, above):
    return 3 - len(above)


def test_the_pseudo_inverse_is_not_offered_where_slots_depend_on_each_other():
    # Its value there is 1.067 in the limit, and 1.2 is right: the other arm's reward is another one beside arm 3.
    log = two_of_four(20_000)
    found = evaluate_slates(log, best_first)
    assert "pi" not in found and found.verdict == ""
    assert all(e.low < 1.2 < e.high for e in found.values())
    asked = evaluate_slates(log, best_first, ("pi", "sips"), warn=False)
    assert abs(asked["pi"].value - 1.067) < 0.06 and asked["pi"].high > asked["sips"].high - 1e-9
    assert "biased: pi is for slots that are filled independently" in asked.verdict
    assert "probabilities are wrong" not in asked.verdict
    rng = np.random.default_rng(3)  # and where they do not, its weights, some below 0, average 1
    actions = rng.integers(0, 4, (5000, 2))
    earned = (rng.random((5000, 2)) < 0.1 + 0.2 * actions).sum(axis=1)
    p = np.full((5000, 2), 1 / 4)
    alone = SlateLog(actions=actions, rewards=earned, probabilities=p, n_arms=4)
    pi = evaluate_slates(alone, best_first)
    assert pi.verdict == "" and pi["pi"].low < 1.2 < pi["pi"].high


def test_pages_say_what_the_log_earned_and_what_the_estimates_take_for_granted(tmp_path):
    log = two_of_four(2000)
    found = evaluate_slates(log, best_first)
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"the log earned {log.totals.mean():.4f} per ranking" in page and found.logged == log.totals.mean()
    assert "Offline evaluation of best_first" in page and "right if a user reads from the top" in page
    assert "iips: a slot&#x27;s probability under the target is taken as that given the slots above it" in page
    assert found.plot().axes[0].get_xlabel().startswith("estimated reward per ranking")


def test_few_rows_are_said_once_with_their_estimators():
    found = evaluate_slates(two_of_four(16), best_first, ["sips", "rips", "cascade-dr"], warn=False)
    assert found.verdict.count("too few rows") == 1
    assert "(sips, rips, cascade-dr) of 16" in found.verdict


def test_three_hundred_rankings_without_a_click_are_warned_of():
    log = two_of_four(300)
    log.rewards[:] = 0.0
    found = evaluate_slates(log, best_first, "iips", warn=False)
    assert found["iips"].high == found["iips"].low == 0.0
    assert "few different rewards: 0 of" in found.verdict


def test_arms_by_name_and_by_ids_that_are_no_places():
    log = two_of_four(2000)
    names = ["none", "mens", "womens", "both"]
    named = SlateLog(actions=np.array(names)[log.actions], rewards=log.rewards, probabilities=log.probabilities,
                     marginals=log.marginals, arm_names=names)  # fmt: skip
    wanted = evaluate_slates(log, best_first, "rips")["rips"]
    assert evaluate_slates(named, lambda x, above: ["both", "womens"][len(above)], "rips")["rips"] == wanted
    ids = 300_000_000 + 7 * log.actions
    by_id = SlateLog(actions=ids, rewards=log.rewards, probabilities=log.probabilities, marginals=log.marginals)
    assert by_id.n_arms == 4 and by_id.arm_names == [300_000_000 + 7 * a for a in range(4)]
    assert evaluate_slates(by_id, lambda x, above: 300_000_021 - 7 * len(above), "rips")["rips"] == wanted


def _with_nan(values):
    values = np.array(values, float)
    values.flat[7] = np.nan
    return values


A, R, P = np.array([[0, 1], [1, 0]] * 50), np.array([[1.0, 0.0], [0.0, 0.0]] * 50), np.array([[0.5, 1.0]] * 100)


@pytest.mark.parametrize(("columns", "message"), [
    ({"actions": _with_nan(A)}, "row 3, slot 1: actions has nan"),
    ({"actions": A + 0.5}, "row 0, slot 0: actions has 0.5"),
    ({"actions": [[0, 1], [0]]}, "actions must be one table"),
    ({"actions": [["a", "b"]] * 100, "arm_names": ["a", "c"]}, "row 0, slot 1: the arm is 'b'"),
    ({"rewards": _with_nan(R)}, "row 3: rewards holds NaN"),
    ({"contexts": _with_nan(R)}, "row 3: contexts holds NaN"),
    ({"probabilities": P[:5]}, r"probabilities has shape \(5, 2\), expected \(100, 2\)"),
    ({"marginals": P[:, 0]}, r"marginals has shape \(100,\), expected \(100, 2\)"),
])  # fmt: skip
def test_columns_that_are_wrong_are_named(columns, message):
    with pytest.raises(LogError, match=message):
        SlateLog(**{"actions": A, "rewards": R, "probabilities": P, **columns})


@pytest.mark.parametrize(("policy", "options", "message"), [
    (lambda x, above: 5, {}, r"row 0, slot 0: it answered 5, expected an arm \(0 to 1\)"),
    (lambda x, above: -1, {}, "it answered -1, expected an arm"),
    (lambda x, above: "b", {}, "it answered 'b', expected an arm"),
    (lambda x, above: None, {}, "it answered None, expected an arm"),
    (lambda x, above: [0.2, 0.3, 0.5], {}, r"it answered shape \(3,\), expected an arm or 2 probabilities"),
    ("best", {}, "policy must be a function of the context and the arms above"),
    (best_first, {"marginals": np.ones((3, 3))}, "marginals must be probabilities of shape"),
    (lambda x, above: 0, {"marginals": np.full((100, 2), np.nan)}, "marginals must be probabilities, numbers"),
])  # fmt: skip
def test_policies_that_answer_something_else_are_named(policy, options, message):
    log = SlateLog(actions=A, rewards=R, probabilities=P, n_arms=4 if policy is best_first else 2)
    with pytest.raises(ValueError, match=message):
        evaluate_slates(log, policy, **options)


def test_a_file_of_both_kinds_of_decisions_says_what_is_left_out(tmp_path, capsys):
    slot = {"_label_cost": -1.0, "_a": [1, 0], "_p": [0.75, 0.25]}
    ranking = {"c": {"_multi": [{"x": 1}, {"x": 2}], "_slots": [{}]}, "_outcomes": [slot]}
    single = {"_label_cost": -1.0, "_label_probability": 0.5, "_labelIndex": 0, "a": [1, 2], "p": [0.5, 0.5],
              "c": {"_multi": [{"x": 1}, {"x": 2}]}}  # fmt: skip
    path = tmp_path / "both.dsjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in [ranking, single, ranking, single, single]))
    with pytest.warns(WeakLogWarning, match="3 of 5 decisions are of single arms, and left out"):
        log = SlateLog.from_dsjson(path)
    assert len(log) == 2
    path.write_text(json.dumps(single) + "\n")
    with pytest.raises(LogError, match="holds no ranking: its decisions are of single arms"):
        SlateLog.from_dsjson(path)
    path.write_text("".join(json.dumps(line) + "\n" for line in [ranking, single] * 30))
    assert main(["evaluate", str(path), "--policy", "uniform"]) == 2  # no log of rankings, and none of single decisions
    said = capsys.readouterr().err
    assert said.count("SlateLog.from_dsjson") == 1
    assert "evaluate_slates" in said


def shared_rankings(n, seed, effect):
    """Rankings of four arms in three slots, drawn evenly; ``effect`` (own, above, below worths) is a slot's mean."""
    rng = np.random.default_rng([seed, 88])
    actions = rng.integers(0, K, (n, L))
    worth = BASE[actions]
    means = np.stack([effect(worth[:, slot], worth[:, :slot].sum(axis=1), worth[:, slot + 1 :].sum(axis=1))
                      for slot in range(L)], axis=1)  # fmt: skip
    return SlateLog(None, actions, (rng.random((n, L)) < means).astype(float), np.full((n, L), 1 / K), n_arms=K)


BEST = np.full((L, K), 0.025)
BEST[[0, 1, 2], [3, 2, 3]] = 0.925


@pytest.mark.parametrize(("effect", "wrong"), [
    (lambda own, above, below: own, ()),
    (lambda own, above, below: own * (1 - 0.35 * above), ("iips",)),
    (lambda own, above, below: own * (1 - 0.35 * below), ("iips", "rips", "cascade-dr")),
])  # fmt: skip
def test_what_estimators_assume_of_the_slots_is_tested(effect, wrong):
    # 25 logs of 4,000 rankings: iips covers about .1 of the second and third kind, and nothing said so.
    alarms = dict.fromkeys(("iips", "rips", "cascade-dr"), 0)
    for seed in range(25):
        found = evaluate_slates(shared_rankings(4000, seed, effect), np.broadcast_to(BEST, (4000, L, K)), warn=False)
        for name in alarms:
            alarms[name] += any("which" in text and "take" in text for text in found[name].warnings)
    for name, count in alarms.items():
        assert count >= 24 if name in wrong else count <= 3, (name, count)


def test_a_reward_that_is_no_sum_speaks_against_pi_alone():
    rng = np.random.default_rng(4)
    actions = rng.integers(0, K, (4000, L))
    twice = (np.diff(np.sort(actions, axis=1), axis=1) == 0).any(axis=1)  # the same arm again is worth nothing
    rewards = (rng.random(4000) < 0.8 * ~twice).astype(float)
    log = SlateLog(None, actions, rewards, np.full((4000, L), 1 / K), n_arms=K)
    found = evaluate_slates(log, np.broadcast_to(BEST, (4000, L, K)), warn=False)
    assert "not a sum over the slots" in " ".join(found["pi"].warnings)
    assert not any("assum" in text or "take" in text for text in found["sips"].warnings)


def test_a_log_of_rankings_goes_to_ccb_and_back(tmp_path):
    rng = np.random.default_rng(1)
    actions = np.array([rng.permutation(3)[:2] for _ in range(20)])
    actions[3, 1] = -1
    offered = np.ones((20, 2, 3), bool)
    offered[np.arange(20), 1, actions[:, 0]] = False
    rewards, p = rng.random((20, 2)) * (actions >= 0), np.where(actions >= 0, rng.uniform(0.1, 1, (20, 2)), 1.0)
    log = SlateLog(rng.normal(size=(20, 2)), actions, rewards, p, n_arms=3, offered=offered, arm_names=["a", "b", "c"])
    log.to_dsjson(tmp_path / "ccb.dsjson")
    again = SlateLog.from_dsjson(tmp_path / "ccb.dsjson")
    for name in ("actions", "rewards", "probabilities", "contexts", "arm_names"):
        assert np.array_equal(getattr(again, name), getattr(log, name)), name
    with pytest.raises(ValueError, match="one reward for the whole ranking"):
        SlateLog(actions=[[0, 1]], rewards=[1.0], probabilities=[[0.5, 1.0]], n_arms=2).to_dsjson(tmp_path / "no")


def test_ccb_keeps_contexts_and_arms_as_an_application_named_them(tmp_path):
    """Features of actions are what VW learns from: a tag is none."""
    shop, rng = Decider(seed=1), np.random.default_rng(1)
    arms = ["boots", {"id": "hat", "features": {"price": 3.5}}, {"id": "bag", "brand": "acme"}, {"id": "new"}]
    for visit in range(12):
        offered = arms if visit % 2 else arms[:3]
        ranked = shop.rank({"user": {"device": "phone"}, "hour": visit}, offered, k=2, at_most=None)
        shop.reward(ranked, (rng.random(2) < 0.4).astype(float).tolist())
    log = shop.log()
    for name in ("ccb.dsjson", "ccb.dsjson.gz"):
        log.to_dsjson(tmp_path / name)
    line = json.loads((tmp_path / "ccb.dsjson").read_text().splitlines()[1])
    assert line["c"]["user"] == {"device": "phone"} and line["c"]["hour"] == 1
    actions = {action["_tag"]: action for action in line["c"]["_multi"]}
    assert actions["hat"] == {"_tag": "hat", "i": {"id": "hat"}, "f": {"price": 3.5}}
    assert actions["bag"]["f"] == {"brand": "acme"} and actions["boots"]["f"] == {}
    assert [slot["slot"]["position"] for slot in line["c"]["_slots"]] == ["1", "2"]
    for name in ("ccb.dsjson", "ccb.dsjson.gz"):
        again = SlateLog.from_dsjson(tmp_path / name)
        assert list(again.decisions()) == list(log.decisions())
        for column in ("actions", "rewards", "probabilities", "contexts", "offered", "arm_names"):
            assert np.array_equal(getattr(again, column), getattr(log, column)), column


def test_actions_without_tags_keep_their_features(tmp_path):
    line = {"c": {"_multi": [{"f": {"price": 1}}, {"f": {"price": 2}}], "_slots": [{}]},
            "_outcomes": [{"_label_cost": -1.0, "_a": [1, 0], "_p": [0.75, 0.25]}]}  # fmt: skip
    (tmp_path / "ccb.dsjson").write_text(json.dumps(line))
    [row] = SlateLog.from_dsjson(tmp_path / "ccb.dsjson").decisions()
    assert row["arms"] == [{"id": "#0", "features": {"price": 1}}, {"id": "#1", "features": {"price": 2}}]
    assert row["arm"] == "#1"


def test_a_fixed_order_is_the_policy_that_shows_what_is_left_of_it():
    rng = np.random.default_rng(2)
    actions = np.array([rng.permutation(3)[:2] for _ in range(300)])
    rewards = (rng.random((300, 2)) < 0.3).astype(float)
    log = SlateLog(None, actions, rewards, np.tile([1 / 3, 1 / 2], (300, 1)), n_arms=3)
    order = [2, 0, 1]
    written_out = lambda context, above: next(arm for arm in order if arm not in above)  # noqa: E731
    for name in ("sips", "rips", "cascade-dr"):
        values = [evaluate_slates(log, policy, name, warn=False)[name].value for policy in (order, written_out)]
        assert values[0] == values[1]


def test_iips_is_left_out_where_nobody_knows_a_slots_own_chances():
    """Slots without replacement: the probability given those above is not that of the slot alone."""
    actions = np.argsort(np.random.default_rng(1).random((200, 3)), axis=1)[:, :2]
    p = np.tile([1 / 3, 1 / 2], (200, 1))
    logs = [
        SlateLog(None, actions, np.ones((200, 2)), p, n_arms=3, marginals=m) for m in (None, np.full((200, 2), 1 / 3))
    ]
    found = [set(evaluate_slates(log, [0, 1, 2], warn=False)) for log in logs]
    assert found == [{"sips", "rips", "cascade-dr"}, {"sips", "iips", "rips", "cascade-dr"}]


def test_a_ranker_is_judged_as_the_table_of_its_probabilities():
    """The ranker that made a log, as it was, has weights of 1; another is its own table, with features too."""
    rng = np.random.default_rng(3)
    world = rng.uniform(0, 1, (4, 2))
    rows = lambda context: world * context  # noqa: E731
    own = aw.SlotBySlot(aw.SquareCB(2, gamma=5.0), seed=1)
    contexts = rng.uniform(0.5, 1.5, (200, 2))
    for context in contexts[:30]:
        own.learn(rows(context), own.rank(rows(context), 2), [1.0, 0.0])
    lists = [own.rank(rows(context), 2) for context in contexts]
    actions, clicks = np.array([each.arms for each in lists]), (rng.random((200, 2)) < 0.4).astype(float)
    log = SlateLog(contexts, actions, clicks, np.array([each.probabilities for each in lists]), n_arms=4)
    result = evaluate_slates(log, own, ["sips", "rips"], features=rows, warn=False)
    assert result["sips"].value == pytest.approx(clicks.sum(axis=1).mean()) == result["rips"].value
    assert result.target == "SlotBySlot"
    shared = aw.SlotBySlot(aw.SquareCB(2, n_arms=4), seed=1)  # which sees the log's own contexts
    first = [shared.probabilities(context)[arm] for context, arm in zip(contexts, actions[:, 0])]
    alone = SlateLog(contexts, actions[:, :1], clicks[:, :1], log.probabilities[:, :1], n_arms=4)
    told = np.mean(first / log.probabilities[:, 0] * clicks[:, 0])
    assert evaluate_slates(alone, shared, "sips", warn=False)["sips"].value == pytest.approx(told)
    other = aw.TopRank(4, 1000, seed=1)
    uniform = np.zeros((200, 2, 4))
    uniform[:, 0] = 1 / 4
    uniform[:, 1] = 1 / 3
    uniform[np.arange(200), 1, actions[:, 0]] = 0.0
    for name in ("rips", "cascade-dr"):
        values = [evaluate_slates(log, policy, name, warn=False)[name].value for policy in (other, uniform)]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
    offered = np.ones((200, 2, 4), bool)
    offered[:, :, 3] = actions.max(axis=1)[:, None] == 3  # else arm 3 was not on offer
    offered[np.arange(200), 1, actions[:, 0]] = False
    some = SlateLog(contexts, actions, clicks, log.probabilities, n_arms=4, offered=offered)
    table = uniform * offered
    values = [evaluate_slates(some, p, "rips", warn=False)["rips"].value for p in (other, table)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.parametrize(
    ("policy", "options", "said"),
    [
        (aw.TopRank(3, 100), {}, "policy ranks 3 arms, but the log has 2"),
        (aw.SlotBySlot(aw.LinUCB(2, n_arms=3)), {}, "policy ranks 3 arms, but the log has 2"),
        (aw.CascadeLinUCB(2), {}, "features must make CascadeLinUCB's rows"),
        (aw.CascadeLinUCB(2), {"features": lambda x: np.eye(2)[:1]}, "policy, row 0, slot 1: above|it answered 1 rows"),
        (aw.CascadeLinUCB(2), {"features": lambda x: "rows"}, "policy, row 0, slot 0: X must be"),
        (aw.PositionThompson(2, 2), {}, "PositionThompson does not know the probabilities of its lists"),
        (aw.PositionUCB(2, 1), {}, "policy, row 0, slot 1: above must have fewer arms than n_slots, 1"),
        ([0, 1], {"features": np.eye}, "features must be left out"),
    ],
)
def test_rankers_that_cannot_judge_a_log_say_why(policy, options, said):
    log = SlateLog(None, [[0, 1], [1, 0]] * 5, [[1, 0], [0, 0]] * 5, [[0.5, 1], [0.5, 1]] * 5, n_arms=2)
    with pytest.raises(ValueError, match=said):
        evaluate_slates(log, policy, warn=False, **options)


def test_where_an_assumption_is_in_doubt_the_interval_reaches_over_that_of_sips():
    # Slots that take .15 from those above and below: at 2,000 rankings a test at .01 finds .4 of these logs, and the
    # interval of iips holds the truth of .53 without the other (of .92 with it, in 300 logs).
    target, held, doubted = np.broadcast_to(BEST, (2000, L, K)), 0, 0
    every = np.array(list(itertools.product(range(K), repeat=L)))
    chance = np.prod(BEST[np.arange(L), every], axis=1)

    def effect(own, above, below):
        return own * (1.0 - 0.15 * (above + below))

    worth = BASE[every]
    truth = chance @ effect(worth, worth.sum(axis=1, keepdims=True) - worth, 0.0).sum(axis=1)
    for seed in range(100):
        found = evaluate_slates(shared_rankings(2000, seed, effect), target, ["sips", "iips"], warn=False)
        held += found["iips"].low <= truth <= found["iips"].high
        if any("over that of sips" in note for note in found.notes):
            doubted += 1
            assert found["iips"].low <= found["sips"].low and found["iips"].high >= found["sips"].high
    assert doubted >= 60 and held >= 85, (doubted, held)


@pytest.mark.parametrize("n", [800, 1500])
def test_few_effective_rankings_have_a_wide_interval_and_no_warning(n):
    # About 20 or 37 rankings are effective for sips: its interval is Student's with the skewness, and covers. Of logs
    # of 800 rankings .235 were warned of for an effective size below 15; with a level of .03 nine of 80 are no chance.
    found = [rankings(np.random.default_rng([seed, 41]), True, n=n)["sips"] for seed in range(80)]
    held, warned = sum(covers for covers, _, _ in found), sum(told for _, _, told in found)
    assert held >= 70 and warned <= 8, (held, warned)


def test_clicks_in_rankings_that_hardly_weigh_do_not_hide_how_few_the_target_has():
    # Every ranking has some weight, and 1 % of them a click. Those that the target would show have one or none of them:
    # sips covers .56, and .86 of the misses were silent.
    silent = missed = 0
    for seed in range(40):
        log = shared_rankings(800, seed, lambda own, above, below: 0.1 * own)
        found = evaluate_slates(log, np.broadcast_to(BEST[:, [3, 2, 1, 0]], (800, L, K)), "sips", warn=False)
        truth = float((BEST[:, [3, 2, 1, 0]] @ (0.1 * BASE)).sum())
        misses = not found["sips"].low <= truth <= found["sips"].high
        missed, silent = missed + misses, silent + (misses and "few different rewards" not in found.verdict)
    assert missed >= 5 and silent <= 1, (missed, silent)


def test_a_log_that_rarely_shows_the_target_is_not_held_against_an_assumption():
    """Position-based clicks, so that rips is right, logged by a learner that came to prefer another order.

    The weights of whole rankings then average far from 1; a test that took this for a difference spoke against rips in
    10 of these 20 logs, at a level of .01. With that level 2 false alarms have a chance of 1 in 60.
    """
    worth, looks, alarms = np.array([0.5, 0.3, 0.1, 0.1, 0.2]), np.array([1.0, 0.6, 0.3]), 0
    chances = np.exp(np.where(np.arange(4000)[:, None] < 400, 0.0, 1.2 * np.array([0.0, 1.0, 4.0, 0.0, 2.0])))
    for run in range(20):
        rng = np.random.default_rng([run, 7])
        actions = np.argsort(-(np.log(chances) + rng.gumbel(size=(4000, 5))), axis=1)[:, :3]  # without replacement
        q = np.take_along_axis(chances, actions, axis=1)
        left = chances.sum(axis=1, keepdims=True) - np.column_stack([np.zeros(4000), np.cumsum(q, axis=1)[:, :-1]])
        clicks = (rng.random((4000, 3)) < worth[actions] * looks) * 1.0
        found = evaluate_slates(SlateLog(None, actions, clicks, q / left, n_arms=5), [0, 1, 4, 2, 3],
                                ["sips", "rips"], warn=False)  # fmt: skip
        alarms += "depends on the arms below" in found.verdict
    assert alarms <= 1
