"""Races: paired worlds, honest regret, the same numbers on every engine, failures that lose nothing."""

# mypy: disable-error-code="operator, union-attr"

import numpy as np
import pytest

import armwise as aw
from armwise.racing import Heat, RaceError, RaceWarning, race_all
from armwise.racing.run.heat import agent_seed, grid, play_seed, world_seed

LINEAR = aw.environments.Linear(n_arms=4, dim=3)


def agents():
    return {"LinUCB": aw.LinUCB(dim=3, alpha=0.3), "Exp3": aw.Exp3(n_arms=4), "UCB1": aw.UCB1(n_arms=4)}


class First(aw.UCB1):
    """Always the first arm: what it gets depends on the world alone."""

    batches = None  # type: ignore[assignment]  # UCB1's kernel does not know of these scores

    def _scores(self, context):
        return np.array([1.0, 0.0, 0.0, 0.0])


class Fragile(aw.UCB1):
    """Fails in its third block of rounds, and only with an odd seed."""

    def play(self, contexts, rewards, costs=None):
        if self.t > 8000 and self.seed.entropy % 2:
            raise RuntimeError("out of luck")
        return super().play(contexts, rewards, costs)


def test_regret_is_what_a_plain_loop_measures():
    """Round by round, regret added up by hand: a failure means that the race measures something else."""
    result = aw.race(agents(), LINEAR, horizon=300, seeds=[5])
    blocks = list(LINEAR.blocks(300, world_seed(5)))
    X = np.concatenate([block.view("features") for block in blocks])
    rewards, expected = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("rewards", "expected"))
    for name, agent in agents().items():
        agent = agent.clone(seed=agent_seed(5, name))
        regret, reward, curve, arms = 0.0, 0.0, [], []
        for t in range(300):
            context = X[t] if agent.sees == "features" else None
            choice = agent.choose(context)
            agent.learn(context, choice, rewards[t, choice.arm])
            regret += expected[t].max() - expected[t, choice.arm]
            reward += rewards[t, choice.arm]
            curve.append(regret)
            arms.append(choice.arm)
        np.testing.assert_allclose(result.regret(name)[0], np.array(curve)[grid(300) - 1], rtol=0, atol=1e-9)
        assert result.reward(name)[0, -1] == pytest.approx(reward)
        counts = result.runs_of(name)[0].counts.sum(axis=0)
        np.testing.assert_array_equal(counts, np.bincount(arms, minlength=4))


def test_regret_against_the_best_in_hindsight_follows_the_leader():
    """The comparator at round t is the arm that was best up to t, not the best at the end."""
    world = aw.environments.Switching(n_arms=3, phases=4)
    result = aw.race([aw.UCB1(n_arms=3)], world, horizon=200, seeds=1)
    rewards = next(world.blocks(200, world_seed(0))).rewards
    best = np.cumsum(rewards, axis=0).max(axis=1)[grid(200) - 1]
    np.testing.assert_allclose(result.regret("UCB1")[0] + result.reward("UCB1")[0], best)


def test_every_agent_meets_the_same_worlds():
    result = aw.race({"a": First(n_arms=4), "b": First(n_arms=4)}, LINEAR, horizon=500, seeds=3)
    np.testing.assert_array_equal(result.reward("a"), result.reward("b"))
    assert len({float(r) for r in result.regret("a")[:, -1]}) == 3  # but each seed is another world


def test_one_agent_more_changes_nothing():
    few = aw.race({"Exp3": agents()["Exp3"]}, LINEAR, horizon=200, seeds=2)
    many = aw.race(agents(), LINEAR, horizon=200, seeds=2)
    np.testing.assert_array_equal(few.regret("Exp3"), many.regret("Exp3"))


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_workers_do_not_change_a_bit(engine):
    world = aw.environments.Linear(n_arms=10, dim=20)
    entries = {"LinUCB": aw.LinUCB(dim=20, alpha=0.3), "Exp3": aw.Exp3(n_arms=10)}
    one = aw.race(entries, world, horizon=3000, seeds=3)
    two = aw.race(entries, world, horizon=3000, seeds=3, workers=2, engine=engine)
    for a, b in zip(one.runs, two.runs, strict=True):
        assert (a.agent, a.seed) == (b.agent, b.seed)
        np.testing.assert_array_equal(a.regret, b.regret)
        np.testing.assert_array_equal(a.reward, b.reward)
        np.testing.assert_array_equal(a.counts, b.counts)


def test_adaptive_world_answers_each_agent_by_itself():
    world = aw.environments.Adaptive(n_arms=3)
    together = aw.race({"Exp3": aw.Exp3(n_arms=3), "UCB1": aw.UCB1(n_arms=3)}, world, horizon=150, seeds=2)
    alone = aw.race({"UCB1": aw.UCB1(n_arms=3)}, world, horizon=150, seeds=2)
    np.testing.assert_array_equal(together.regret("UCB1"), alone.regret("UCB1"))
    assert together.runs[0].counts.sum() == 150


def test_a_failure_names_agent_world_and_seed_and_loses_nothing_else():
    world = aw.environments.Switching(n_arms=3)
    entries = {"UCB1": aw.UCB1(n_arms=3), "Fragile": Fragile(n_arms=3)}
    with pytest.warns(RaceWarning, match=r"2 of 8 runs failed: Fragile on Switching\(n_arms=3.* with seed 1: Runtime"):
        result = aw.race(entries, world, horizon=20_000, seeds=4)
    assert [run.seed for run in result.runs_of("Fragile")] == [0, 2]
    assert len(result.runs_of("UCB1")) == 4
    assert len(result.failures) == 2
    assert "out of luck" in result.failures[0]
    assert "out of luck" in next(run.trace for run in result.runs if run.error)
    table = result.table().set_index("agent")
    assert table.loc["Fragile", "failed"] == 2


def test_an_agent_that_does_not_fit_the_world_is_a_failure_with_a_reason():
    entries = {"right": aw.LinUCB(dim=3), "wrong": aw.LinUCB(dim=7)}
    with pytest.warns(RaceWarning, match=r"wrong on Linear.*must have shape \(K, 7\)"):
        result = aw.race(entries, LINEAR, horizon=50, seeds=1)
    assert result.finishers == ["right"]
    with pytest.raises(RaceError, match=r"all 1 runs failed: wrong on Linear.*must have shape \(K, 7\)") as failed:
        aw.race({"wrong": aw.LinUCB(dim=7)}, LINEAR, horizon=50, seeds=1)
    nothing = failed.value.results[0]
    assert nothing.table().loc[0, "failed"] == 1
    with pytest.raises(ValueError, match="nothing to draw"):
        nothing.plot()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number >= 1"),
        ({"seeds": 0}, "seeds must be"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"seeds": [-1]}, "seed must be"),
        ({"workers": 0}, "workers must be"),
        ({"engine": "cluster"}, "engine must be"),
        ({"agents": {}}, "agents must not be empty"),
        ({"agents": {"a": "LinUCB"}}, r"agents\['a'\] must be an agent, got str"),
    ],
)
def test_bad_arguments_are_named(change, message):
    given = {"agents": agents(), "horizon": 10, "seeds": 1} | change
    with pytest.raises(ValueError, match=message):
        aw.race(given.pop("agents"), LINEAR, **given)


def test_table_and_files(tmp_path):
    import pandas as pd

    result = aw.race(agents(), LINEAR, horizon=400, seeds=5)
    table = result.table().set_index("agent")
    final = result.regret("UCB1")[:, -1]
    assert table.index[0] == "LinUCB"
    assert table.loc["UCB1", "regret"] == pytest.approx(final.mean())
    assert table.loc["UCB1", "std_error"] == pytest.approx(final.std(ddof=1) / np.sqrt(5))
    assert table.loc["UCB1", "regret_median"] == pytest.approx(np.median(final))
    assert (table["us_per_decision"] > 0).all()
    result.to_parquet(tmp_path / "r.parquet")
    result.to_csv(tmp_path / "r.csv")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "r.parquet"), pd.read_csv(tmp_path / "r.csv"))
    assert len(result.curves()) == 15 * len(result.rounds)
    assert result.arm_share("UCB1").sum(axis=1) == pytest.approx(1.0)


def test_several_heats_at_once_are_the_heats_one_by_one():
    heats = [Heat(LINEAR, agents(), 100), Heat(aw.environments.Tabular(), {"UCB1": aw.UCB1(n_arms=5)}, 200, "ten")]
    together = race_all(heats, seeds=2, workers=2)
    assert [r.label for r in together] == ["Linear", "ten"]
    alone = play_seed(heats[1], ["UCB1"], 1)[0]
    np.testing.assert_array_equal(together[1].regret("UCB1")[1], alone.regret)
