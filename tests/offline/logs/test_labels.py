"""Arms have names: of columns, of identifiers, of what a policy answers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import armwise as aw
from armwise import offline
from armwise.cli.main import main
from armwise.core import saving
from armwise.offline import Log, LogError, evaluate
from armwise.offline.logs.labels import ArmNames, are_ids, as_places, labels_of, placed, whole


@pytest.fixture
def trial():
    rng = np.random.default_rng(1)
    arms = rng.choice(["Mens", "No", "Womens"], 3000)
    rewards = (arms == "Mens") * 2.0 + (arms == "Womens") * 1.0 + rng.random(3000)
    return Log(arms=arms, rewards=rewards, probabilities=1 / 3)


@pytest.mark.parametrize("module", [pandas, polars], ids=["pandas", "polars"])
def test_the_columns_of_a_table_of_probabilities_go_by_name(trial, module):
    shuffled = module.DataFrame({"Womens": np.full(3000, 0.2), "No": np.zeros(3000), "Mens": np.full(3000, 0.8)})
    by_place = np.tile([0.8, 0.0, 0.2], (3000, 1))
    assert trial.arm_names == ["Mens", "No", "Womens"]
    assert evaluate(trial, shuffled, "ips")["ips"].value == evaluate(trial, by_place, "ips")["ips"].value
    with pytest.raises(ValueError, match="columns Womens, No, Men, expected one for each arm of the log"):
        evaluate(trial, module.DataFrame({"Womens": np.ones(3000), "No": np.zeros(3000), "Men": np.zeros(3000)}))


def test_a_table_without_names_goes_by_place(trial):
    table = np.tile([0.8, 0.0, 0.2], (3000, 1))
    assert evaluate(trial, pandas.DataFrame(table), "ips")["ips"].value == evaluate(trial, table, "ips")["ips"].value


def test_policies_may_answer_names(trial):
    expected = evaluate(trial, aw.Constant(2), "ips")["ips"].value
    assert evaluate(trial, lambda x: "Womens", "ips")["ips"].value == expected
    assert evaluate(trial, ["Womens"] * 3000, "ips")["ips"].value == expected
    with pytest.raises(ValueError, match="answered 'Woman', expected one of Mens, No, Womens"):
        evaluate(trial, lambda x: "Woman", "ips")
    with pytest.raises(ValueError, match="row 1: the arm is 'Woman'"):
        evaluate(trial, ["Womens", "Woman"] * 1500, "ips")


def ids(n=600):
    rng = np.random.default_rng(2)
    names = np.array([300_000_017, 299_999_991, 300_000_402])
    arms = names[rng.integers(0, 3, n)]
    return arms, (arms == 300_000_017) * 0.5 + 0.5 * rng.random(n)


def test_integer_ids_are_categories():
    # Before, 600 rows with ids around 3e8 made 3e8 arms: 45 s to load, and the evaluation never ended.
    arms, rewards = ids()
    log = Log(arms=arms, rewards=rewards, probabilities=np.full(len(arms), 1 / 3))
    assert log.n_arms == 3
    assert log.arm_names == [299_999_991, 300_000_017, 300_000_402]
    assert evaluate(log, aw.Constant(300_000_017), "snips")["snips"].value == pytest.approx(0.75, abs=0.05)
    places = Log(arms=[0, 2, 1, 4], rewards=np.zeros(4), n_arms=5)  # as many arms as that: numbers are places
    assert (places.n_arms, places.arm_names, places.arms.tolist()) == (5, None, [0, 2, 1, 4])


@pytest.mark.parametrize(
    "names",
    [[1, 2, 3], [0, 2, 3], [-1, 1], [2**63 + 1, 2**63 + 7, 2**64 - 1], [5], [-(2**40), 0, 7, 2**40]],
    ids=["from 1", "a gap", "negative", "above 2^63", "one", "far apart"],
)
def test_the_rule_is_the_same_for_small_and_large_ids_and_for_every_source(tmp_path, names):
    rng = np.random.default_rng(4)
    drawn = rng.integers(0, len(names), 300)
    arms = np.array(names)[drawn]
    frame = pandas.DataFrame({"arm": arms, "reward": rng.random(300), "probability": 1 / len(names)})
    frame.to_parquet(tmp_path / "log.parquet")
    logs = [Log(arms=arms, rewards=frame.reward, probabilities=frame.probability), Log.from_pandas(frame)]
    logs += [Log.from_parquet(tmp_path / "log.parquet"), Log.from_polars(polars.read_parquet(tmp_path / "log.parquet"))]
    if max(names) < 2**63:  # a CSV does not say that a number is meant to be so large
        frame.to_csv(tmp_path / "log.csv", index=False)
        logs.append(Log.from_csv(tmp_path / "log.csv"))
    for log in logs:
        assert (log.n_arms, log.arm_names) == (len(names), names)
        assert log.arms.tolist() == drawn.tolist()
        for arm, name in enumerate(names):
            by_hand = frame.reward[drawn == arm].mean()
            shares = np.eye(len(names))[arm]
            alike = [lambda x, name=name: name, np.full(300, name), pandas.Series(np.full(300, name)), shares,
                     lambda x, name=name: {name: 1.0}, lambda x, name=name: str(name), Asked(name)]  # fmt: skip
            alike += [aw.Constant(name)] if 0 <= name < 2**63 else []
            for policy in alike:
                found = evaluate(log, policy, "snips", warn=False)["snips"]
                assert found.value == pytest.approx(by_hand, rel=1e-12), policy


class Asked:
    """A policy with ``many``, which answers ids."""

    def __init__(self, name):
        self.name = name

    def many(self, contexts):
        return np.full(len(contexts), self.name)


def test_a_number_that_is_no_id_is_refused_and_the_policy_named():
    log = Log(arms=[1, 2, 3] * 100, rewards=np.zeros(300), probabilities=1 / 3)

    def zero(context):
        return 0

    for policy in (zero, np.zeros(300, int), aw.Constant(0), Asked(0)):
        with pytest.raises(ValueError, match=r"row 0: .* 0, expected one of 1, 2, 3") as refused:
            evaluate(log, policy, "ips")
        assert "lambda" not in str(refused.value)
    with pytest.raises(ValueError, match="zero answered 0, expected one of"):
        evaluate(log, zero, "ips")
    with pytest.raises(ValueError, match="answered 'x', expected one of 1, 2, 3"):
        evaluate(log, lambda x: {1: 0.5, "x": 0.5}, "ips")
    places = Log(arms=[0, 1] * 50, rewards=np.zeros(100), probabilities=0.5, n_arms=2)
    with pytest.raises(ValueError, match="a function answered 2, expected 0 to 1"):
        evaluate(places, lambda x: 2, "ips")


def test_a_policy_may_answer_a_dictionary_of_names(trial):
    expected = evaluate(trial, [0.5, 0.5, 0.0], "ips")["ips"].value
    assert evaluate(trial, lambda x: {"Mens": 0.5, "No": 0.5}, "ips")["ips"].value == expected
    with pytest.raises(ValueError, match=r"row 0: the probabilities must be non-negative and sum to 1"):
        evaluate(trial, lambda x: {"Mens": 0.5, "No": 0.4}, "ips")


def test_names_that_are_numbers_as_text_are_ids_too():
    log = Log(arms=["7", "8", "9"] * 100, rewards=[1.0, 0.0, 0.0] * 100, probabilities=1 / 3)
    assert evaluate(log, lambda x: 7, "snips", warn=False)["snips"].value == 1.0
    assert evaluate(log, np.full(300, 8), "snips", warn=False)["snips"].value == 0.0


def test_what_is_learnt_from_a_log_of_ids_answers_ids(tmp_path):
    rng = np.random.default_rng(5)
    x, drawn = rng.normal(size=(3000, 1)), rng.integers(0, 2, 3000)
    rewards = (rng.random(3000) < np.where(drawn == (x[:, 0] > 0), 0.9, 0.1)).astype(float)
    log = Log(contexts=x, arms=np.array([1, 2])[drawn], rewards=rewards, probabilities=0.5)
    fitted = aw.offline.fit(log, aw.LinearOracle(dim=1))
    assert fitted.policy.many([[-1.0], [1.0]]).tolist() == [1, 2]
    assert fitted.policy([1.0]) == 2
    assert evaluate(log, fitted.policy, "snips")["snips"].value > 0.85
    again: Any = saving.loads(saving.dumps(fitted.policy))
    assert again.many([[-1.0], [1.0]]).tolist() == [1, 2]


def test_the_command_line_judges_ids(tmp_path, capsys):
    # ids 1, 2, 3 used to have an arm 0 beside them: a uniform policy put a quarter on it
    rng = np.random.default_rng(6)
    arms, path = rng.integers(1, 4, 900), str(tmp_path / "log.csv")
    frame = pandas.DataFrame({"arm": arms, "reward": (rng.random(900) < 0.2 * arms) * 1.0, "probability": 1 / 3})
    frame["other"] = 4 - arms
    frame.to_csv(path, index=False)
    for policy, expected in (("uniform", frame.reward.mean()), ("arm:3", frame.reward[arms == 3].mean()),
                             ("column:other", frame.reward[arms == 2].mean())):  # fmt: skip
        main(["evaluate", path, "--policy", policy, "--estimators", "snips", "--contexts", "", "--json"])
        assert json.loads(capsys.readouterr().out)["estimates"]["snips"]["value"] == pytest.approx(expected)
    main(["evaluate", path, "--contexts", "", "--estimators", "ips"])
    out = capsys.readouterr().out
    assert "arm:1" in out
    assert "arm:0" not in out
    main(["compare", path, "--contexts", "", "--first", "arm:3", "--second", "arm:1", "--estimator", "snips"])
    assert "first, always 3" in capsys.readouterr().out


def test_whole_numbers_only_are_ids(tmp_path):
    for arms in ([1.5, 2.5] * 10, [1.0, float("inf")] * 10):
        row, wrong = (0, 1.5) if arms[0] == 1.5 else (1, float("inf"))
        for n_arms in (None, 3):
            options = {"n_arms": n_arms}
            with pytest.raises(LogError, match=f"row {row}: arm is {wrong}, expected a whole number or a name"):
                Log(arms=arms, rewards=np.zeros(20), n_arms=n_arms)
            with pytest.raises(LogError, match=f"row {row}: arm is {wrong} in column 'arm', expected a whole number"):
                Log.from_pandas(pandas.DataFrame({"arm": arms, "reward": 0.0}), **options)


def test_rankings_of_ids_follow_the_same_rule():
    log = aw.offline.SlateLog(actions=[[1, 2], [2, 1]], rewards=[1.0, 0.0], probabilities=[[0.5, 1.0]] * 2)
    assert (log.n_arms, log.arm_names, log.actions.tolist()) == (2, [1, 2], [[0, 1], [1, 0]])
    assert (log.arm(1), log.arm(2), log.arm(0)) == (0, 1, None)
    seen: list[list[int]] = []

    def in_order(x, above):
        seen.append(above)
        return 2 if above == [1] else 1

    aw.offline.evaluate_slates(log, in_order, "sips", warn=False)
    assert seen == [[], [1], [], [2]]


def test_integer_ids_of_files_and_frames_are_categories(tmp_path):
    arms, rewards = ids()
    frame = pandas.DataFrame({"arm": arms, "reward": rewards, "probability": 1 / 3, "x": 0.5})
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    for log in (
        Log.from_pandas(frame, contexts=["x"]),
        Log.from_parquet(tmp_path / "log.parquet", contexts=["x"]),
        Log.from_csv(tmp_path / "log.csv", contexts=["x"]),
    ):
        assert log.arm_names == [299_999_991, 300_000_017, 300_000_402]
        assert np.array_equal(np.asarray(log.arm_names)[log.arms], arms)


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(LogError, match="row 1: arm is 'c', expected one of"):
        Log(arms=["a", "c"], rewards=[0, 1], arm_names=["a", "b"])
    with pytest.raises(LogError, match="arm_names has 3 names, but there are 2 arms"):
        Log(arms=[0, 1], rewards=[0, 1], arm_names=["a", "b", "c"], n_arms=2)


def test_large_ids_do_not_become_one_another():
    """As floats 2^53 and 2^53 + 1 are one number: whole numbers stay whole, and floats of that size are refused."""
    large = [2**53, 2**53 + 1, 7, 2**53]
    for arms in (large, np.array(large), np.array(large, object)):
        assert Log(arms=arms, rewards=np.ones(4)).arm_names == [7, 2**53, 2**53 + 1]
    hashed = [5, 2**64 - 1, 2**64 - 2, 5]  # NumPy makes floats of such a list
    for arms in (hashed, np.array(hashed, object), np.array(hashed, np.uint64)):
        log = Log(arms=arms, rewards=np.ones(4), probabilities=0.5)
        assert log.arm_names == [5, 2**64 - 2, 2**64 - 1] and log.arms.tolist() == [0, 2, 1, 0]
    with pytest.raises(LogError, match=r"row 0: arm is 9007199254740992\.0.*may have been any of several"):
        Log(arms=np.array([2.0**53, 1.0]), rewards=[1, 0])
    with pytest.raises(LogError, match=r"row 0: arm is 9007199254740992\.0.*may have been any of several"):
        Log.from_pandas(pandas.DataFrame({"arm": [2.0**53, 1.0], "reward": [1, 0]})).validate()


@pytest.mark.parametrize("answer", [0.7, 1.0, 1.9, np.float64(1.0), float("nan"), None, b"1", 1j])
def test_answers_that_are_no_arm_are_refused(answer):
    """A chance of 0.7 was read as arm 0: an answer that is neither a whole number nor a name is none."""
    log = Log(contexts=np.zeros((4, 1)), arms=[0, 1, 2, 1], rewards=[1, 0, 1, 0], probabilities=0.5, n_arms=3)
    with pytest.raises(ValueError, match=r"policy, row 0: a function answered .*expected an arm, 0 to 2"):
        evaluate(log, lambda x: answer, "snips", warn=False)


def test_a_table_whose_columns_may_be_arms_or_places_is_refused():
    """Texts sort as texts, 0, 1, 10, 2, ...: a column called 2 is the arm 2, or the third of the log, which is 10."""
    arms = np.array([str(i) for i in range(11)] * 4)
    log = Log(arms=arms, rewards=np.arange(44.0), probabilities=1 / 11)
    frame = pandas.DataFrame(np.tile(np.eye(11)[2], (44, 1)))
    with pytest.raises(ValueError, match="columns 0 to 10 may be arms or places"):
        evaluate(log, frame, "snips", warn=False)
    by_name = evaluate(log, frame.rename(columns=str), "snips", warn=False)["snips"].value
    assert by_name == pytest.approx(log.rewards[arms == "2"].mean())
    by_place = evaluate(log, frame.to_numpy(), "snips", warn=False)["snips"].value
    assert by_place == pytest.approx(log.rewards[arms == "10"].mean())


@pytest.mark.parametrize("kind", [int, str])
def test_an_agents_log_reads_a_number_as_an_id_alone(kind):
    """In a log of the arms 1, 5, 7 there is no arm 0, and 1 is the arm 1, also where the ids are texts."""
    rng = np.random.default_rng(3)
    arms = np.array([1, 5, 7])[rng.integers(3, size=300)]
    log = Log(arms=arms.astype(kind), rewards=rng.random(300), probabilities=1 / 3)
    for arm in (1, 5, 7):
        share = np.eye(3)[(1, 5, 7).index(arm)]
        expected = offline.adaptive(log, {"it": share}, warn=False)["it"].value
        for said in (arm, np.int64(arm), str(arm)):
            assert offline.adaptive(log, {"it": said}, warn=False)["it"].value == expected
    for said in (0, 2, "0"):
        with pytest.raises(ValueError, match=r"there is no arm .*: expected one of 1, 5, 7"):
            offline.adaptive(log, {"it": said}, warn=False)
        with pytest.raises(ValueError, match="there is no arm"):
            offline.adaptive(log, control=said, warn=False)


def test_indices_are_no_names():
    assert labels_of([3, 0, 1]) == [0, 1, 3]
    assert labels_of([1, 0, 2]) is None


def test_numbers_are_ids():
    assert are_ids([5, 7])
    assert not are_ids(["a", "b"])
    assert not are_ids(None)


def test_what_is_not_whole_has_no_place():
    found = whole(np.array([2.0, 1.5, np.nan]))
    assert found[0].tolist() == [2, -1, -1]
    assert found[1].tolist() == [False, True, True]


def test_a_number_that_no_int64_holds_is_too_large():
    assert as_places(np.array([1, 2**64 - 1], np.uint64)).tolist() == [1, 9223372036854775807]


def test_places_among_the_names():
    assert placed(np.array([7, 5, 6]), [5, 7]).tolist() == [1, 0, -1]


def test_an_index_is_no_name_where_numbers_are_ids():
    arms = ArmNames([5, 7], 2)
    assert arms.place(7) == 1
    assert arms.place("5") == 0
    assert arms.place(1) is None
    assert ArmNames(["a", "b"], 2).place(1) == 1
    assert ArmNames(None, 2).place(2) is None


def test_places_of_some_arms_begin_at_0():
    assert ArmNames(["a", "b", "c"], 3).of([0, 2]).place("c") == 1


def test_places_of_an_array_of_names():
    assert ArmNames([5, 7], 2).places(np.array([7, 5, 6])).tolist() == [1, 0, -1]


def test_shares_by_name_are_one_entry_per_arm():
    assert ArmNames(["a", "b"], 2).shares({"b": 1.0}) == pytest.approx([0.0, 1.0])
