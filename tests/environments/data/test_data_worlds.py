"""Worlds from data as it comes, published protocols, and worlds that change."""

# mypy: disable-error-code="arg-type, attr-defined, index, operator"

import numpy as np
import pandas as pd
import polars as pl
import pytest

import armwise as aw
from armwise import environments
from armwise.environments.data.frames import columns, labelled_sets, read_labelled


def test_a_data_frame_as_it_comes():
    frame = pd.DataFrame({
        "age": [30, 40, 50],
        "plan": pd.Categorical(["a", "b", "a"], categories=["a", "b", "c"]),
        "new": [True, False, True],
        "joined": pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-02"]),
        "income": [1.0, np.nan, 3.0],
    })  # fmt: skip
    table = columns("X", frame)
    assert table[:, 0].tolist() == [30, 40, 50]
    assert table[:, 1:3].tolist() == [[1, 0], [0, 1], [1, 0]]  # the plans that occur
    assert table[:, 5].tolist() == [0, 2, 1]  # days
    assert table[:, 6].tolist() == [1, 0, 3] and table[:, 7].tolist() == [0, 1, 0]  # and where it is missing
    world = environments.Rows(frame, pd.DataFrame({"stay": [1.0, 0.0, 1.0], "go": [0.0, 1.0, 0.0]}))
    assert world.arm_names == ["stay", "go"] and world.width("shared") == 9  # and a one


def test_the_numbers_of_a_frame_are_standardised_and_a_one_is_added():
    """As they come, days and ages would drown indicators, and a model per arm would have no intercept."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 200), "gap": np.where(rng.random(200) < 0.2, np.nan, 5.0)})
    world = environments.Rows(frame, rng.random((200, 2)))
    assert world.X[:, 0].mean() == pytest.approx(0.0) and world.X[:, 0].std() == pytest.approx(1.0)
    assert not world.X[:, 1].any()  # a constant and its gaps
    assert (world.X[:, -1] == 1.0).all()
    again = environments.Rows(**world.params())
    np.testing.assert_array_equal(again.X, world.X)
    np.testing.assert_array_equal(environments.Rows(pl.from_pandas(frame), world.rewards).X, world.X)


def test_costs_are_no_context(tmp_path):
    rng = np.random.default_rng(0)
    names = ["prompt", "reward big", "cost big", "reward small", "cost small"]
    frame = pd.DataFrame({name: rng.random(30) for name in names})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"'cost ' \.\.\. come once per arm.*give costs='cost '"):
        environments.Rows.from_file(tmp_path / "t.parquet", rewards="reward ")
    world = environments.Rows.from_file(tmp_path / "t.parquet", rewards="reward ", costs="cost ")
    assert world.width("shared") == 2  # the prompt and a one
    block = next(world.blocks(30, seed=1))
    row = int(np.flatnonzero(world.rewards[:, 1] == block.rewards[4, 1])[0])
    assert block.costs[4].tolist() == frame.loc[row, ["cost big", "cost small"]].tolist()
    seen = environments.Rows.from_file(tmp_path / "t.parquet", rewards="reward ", context=["prompt", "cost big"])
    assert seen.width("shared") == 3 and seen.costs is None


def test_rows_that_cannot_be_read_are_named():
    frame, rewards = pd.DataFrame({"a": [1.0, 2.0], "b": [[1], [2]]}), pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 0.0]})
    with pytest.raises(ValueError, match=r"X\['b'\] must hold numbers, texts, dates or categories, got \[1\]"):
        environments.Rows(frame, rewards)
    assert environments.Rows(frame[["a"]], rewards.to_numpy().tolist()).n_rows == 2
    with pytest.raises(ValueError, match="same index in different orders"):
        environments.Rows(frame[["a"]], rewards.iloc[::-1])
    with pytest.raises(ValueError, match=r"costs has shape \(1, 2\), rewards \(2, 2\)"):
        environments.Rows(frame[["a"]], rewards, costs=[[1.0, 2.0]])


def test_long_texts_become_hashed_words():
    frame = pd.DataFrame({"prompt": [f"question {i} about cats" for i in range(60)]})
    table = columns("X", frame)
    assert table.shape == (60, 64)
    assert np.linalg.norm(table, axis=1) == pytest.approx(np.ones(60))
    again = columns("X", frame.iloc[::-1].reset_index(drop=True))
    np.testing.assert_array_equal(again[::-1], table)  # a word's column depends on the word alone


def test_full_information_tables_and_per_arm_features(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"prompt": [f"p{i}" for i in range(80)], "score big": rng.random(80), "score small": rng.random(80)}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    world = environments.Rows.from_file(tmp_path / "t.parquet", rewards="score ")
    assert world.arm_names == ["big", "small"] and world.n_rows == 80
    with pytest.raises(ValueError, match="rewards: no column fits"):
        environments.Rows.from_file(tmp_path / "t.parquet", rewards="cost ")
    X, rewards, arms = rng.random((20, 3)), rng.random((20, 4)), rng.random((4, 2))
    block = next(environments.Rows(X, rewards, arms=arms).blocks(20, seed=1))
    shared, features = block.view("shared"), block.view("features")
    for t in (0, 7):
        for a in range(4):
            assert features[t, a] == pytest.approx(np.concatenate([arms[a], np.outer(shared[t], arms[a]).ravel()]))
    own = rng.random((20, 4, 2))
    assert next(environments.Rows(own, rewards).blocks(20, seed=1)).view("features").shape == (20, 4, 2)
    with pytest.raises(ValueError, match="X has features of 4 arms, rewards of 3"):
        environments.Rows(own, rewards[:, :3])
    with pytest.raises(ValueError, match="arms must have one row per arm"):
        environments.Rows(X, rewards, arms=arms[:2])


def test_a_log_as_a_world_is_right_on_average():
    """Doubly robust totals: off by more than 0.05 here (four deviations) would mean a wrong correction."""
    rng = np.random.default_rng(1)
    n = 4000
    X = rng.random((n, 2))
    truth = np.column_stack([0.2 + 0.5 * X[:, 0], 0.8 - 0.6 * X[:, 1] ** 2, np.full(n, 0.4)])
    p = np.array([0.6, 0.3, 0.1])
    arms = rng.choice(3, size=n, p=p)
    rewards = (rng.random(n) < truth[np.arange(n), arms]).astype(float)
    log = aw.offline.Log(contexts=X, arms=arms, rewards=rewards, probabilities=p[arms], n_arms=3)
    world = environments.FromLog.from_log(log, cut=False)
    assert world.rewards.mean(axis=0) == pytest.approx(truth.mean(axis=0), abs=0.05)
    assert "no better than that model" in world.caveat
    cut = environments.FromLog.from_log(log)
    assert cut.rewards.min() >= 0 and cut.rewards.max() <= 1
    assert aw.race([aw.LinUCB(2, n_arms=3)], cut, horizon=100, seeds=1).failures == []
    with pytest.raises(ValueError, match="probabilities must lie in"):
        environments.FromLog(X, arms, rewards, np.zeros(n), 3)


@pytest.mark.parametrize("name", environments.protocols())
def test_published_protocols_can_be_raced(name):
    world = environments.published(name)
    block = next(world.blocks(50, seed=1))
    assert block.rewards.shape[1] == world.n_arms
    other = next(environments.published(name).blocks(50, seed=1))
    np.testing.assert_array_equal(block.rewards, other.rewards)


def test_mushrooms_pay_as_in_the_paper():
    world = environments.published("mushroom")
    bad = world.poisonous
    assert set(np.unique(world.rewards[bad, 1])) == {0.0, 1.0}
    assert world.rewards[bad, 1].mean() == pytest.approx(0.5, abs=0.05)
    assert (world.rewards[~bad, 1] == 1.0).all() and (world.rewards[:, 0] == 35 / 40).all()


def test_real_data_from_a_folder(tmp_path):
    pd.DataFrame({"cap": list("xyxy"), "class": list("epep")}).to_csv(tmp_path / "mushroom.csv", index=False)
    assert environments.published("mushroom", tmp_path).poisonous.tolist() == [False, True, False, True]
    with pytest.raises(ValueError, match=r"has no shuttle\.parquet"):
        environments.published("shuttle", tmp_path)
    with pytest.raises(ValueError, match="name must be one of wheel"):
        environments.published("wheels")


@pytest.mark.parametrize(
    "inside", [environments.Linear(n_arms=3, dim=4, noise=0.0), environments.Tabular(n_contexts=3, n_arms=4)]
)
def test_worlds_that_change_are_the_world_rearranged(inside):
    def stretch(world, T=60):
        return next(world.blocks(T, seed=5))

    switched = stretch(environments.Switch(inside, every=20))
    plain = stretch(environments.Switch(inside, every=1000))
    np.testing.assert_array_equal(switched.expected[:20], plain.expected[:20])
    assert not np.allclose(switched.expected[20:40], plain.expected[20:40])
    seasons = stretch(environments.Seasonal(inside, period=20, seasons=2))
    np.testing.assert_array_equal(seasons.expected[40:50], plain.expected[40:50])  # spring comes back
    assert not np.allclose(seasons.expected[50:], plain.expected[50:])
    drift = stretch(environments.Drift(inside, period=20))
    np.testing.assert_array_equal(drift.expected[0], plain.expected[0])
    if inside.native == "features":
        np.testing.assert_allclose(drift.expected[5], 0.75 * plain.expected[5] + 0.25 * (1 - plain.expected[5]))
        np.testing.assert_allclose(switched.expected[20:40], 1 - plain.expected[20:40])
    else:
        np.testing.assert_allclose(np.sort(switched.expected[20:40]), np.sort(plain.expected[20:40]))


def test_drifting_rewards_have_the_expectation_they_state():
    world = environments.Drift(environments.Linear(n_arms=3, dim=4, noise=0.05), period=2000)
    blocks = list(world.blocks(20_000, seed=2))
    gap = np.concatenate([block.rewards - block.expected for block in blocks])
    assert np.abs(gap.mean(axis=0)).max() < 0.01
    with pytest.raises(ValueError, match="does not react to the arms"):
        environments.Drift(environments.Adaptive(n_arms=3))


def test_a_folder_of_sets(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "kind": list("xyxy"), "target": [0, 1, 0, 1]})
    frame.to_parquet(tmp_path / "one.parquet")
    frame.drop(columns="kind").rename(columns={"target": "end"}).to_csv(tmp_path / "two.csv", index=False)
    (tmp_path / "README.md").write_text("sets")
    found = labelled_sets(tmp_path)
    assert list(found) == ["one", "two"]
    X, y = read_labelled(found["one"])
    assert X.shape == (4, 3) and y.tolist() == [0, 1, 0, 1]
    assert read_labelled(found["two"])[1].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: aw.environments.Rows(np.ma.masked_array(np.eye(3), np.eye(3)), np.eye(3)),
        lambda: aw.environments.Rows(np.eye(3), np.ma.masked_array(np.eye(3), np.eye(3))),
        lambda: aw.environments.Classification(np.eye(3), np.ma.masked_array([1, 2, 1], [0, 1, 0])),
    ],
)
def test_masked_data_are_refused(make):
    with pytest.raises(ValueError, match="is a masked array, whose mask would be ignored"):
        make()


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_label_is_not_a_class(gap):
    with pytest.raises(ValueError, match=r"y must have a label in every row, got none in row 1 \(and 1 more\)"):
        aw.environments.Classification(np.eye(5), pd.Series(["a", gap, "b", gap, "a"], dtype=object))
    assert aw.environments.Classification(np.eye(3), ["a", "NaT", "<NA>"]).n_arms == 3  # texts are texts


def test_durations_are_days_and_complex_numbers_are_refused():
    frame = pd.DataFrame({"since": pd.to_timedelta([0, 12, 36], unit="h")})
    np.testing.assert_allclose(columns("X", frame)[:, 0], [0.0, 0.5, 1.5])
    for bad in (pd.DataFrame({"z": [1j, 2j, 3j]}), np.ones((3, 1)) * 1j):
        with pytest.raises(ValueError, match=r"^X.* numbers"):
            aw.environments.Rows(bad, np.eye(3))
