"""Races of rankers on worlds of lists: regret per list, clicks by slot, the picture and the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armwise as aw
from armwise.racing.run.heat import agent_seed, world_seed

WORLD = aw.environments.Lists(8, 3, attraction=[0.5, 0.4, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1])
RANKERS = {"KL": aw.CascadeKLUCB(8), "Top": aw.TopRank(8, 200), "slots": aw.SlotBySlot(aw.SquareCB(8), "cascade")}


def test_regret_is_what_a_plain_loop_measures(tmp_path: Path) -> None:
    result = aw.race(RANKERS, WORLD, horizon=200, seeds=2, keep=["arms"])
    ranker = RANKERS["KL"].clone(agent_seed(1, "KL"))
    block: Any = next(WORLD.blocks(200, world_seed(1)))
    regret, clicks = 0.0, np.zeros(3)
    for t in range(200):
        ranking = ranker.rank(None, 3)
        arms = np.array(ranking.arms)
        clicked, _ = block.click(t, arms)
        ranker.learn(None, ranking, clicked)
        regret += 1 - 0.5 * 0.6 * 0.7 - (1 - np.prod(1 - block.attraction[t, arms]))
        clicks += clicked
        assert (result.arms("KL", 1)[t] == arms).all()
    assert result.regret("KL")[1, -1] == pytest.approx(regret)
    assert result.clicks("KL")[1] == pytest.approx(clicks / 200)
    assert result.best_clicks() == pytest.approx(np.array([[0.5, 0.5 * 0.4, 0.5 * 0.6 * 0.3]] * 2))
    assert "reward per list" in str(result)
    assert result.costs == () and result.shown("KL").sum() == pytest.approx(3.0)
    result.save(tmp_path / "race.aw")
    again = aw.racing.Result.load(tmp_path / "race.aw")
    assert (again.clicks("KL") == result.clicks("KL")).all()
    result.plot(tmp_path / "clicks.png", kind="clicks")
    page = result.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Clicks per list on each slot" in page and "arms shown most" in page


def test_bounds_are_those_of_rankings() -> None:
    result = aw.race({"U": aw.CascadeUCB1(8), "Top": aw.TopRank(8, 50)}, WORLD, horizon=50, seeds=1)
    curve, _ = result.bound("U")
    assert curve is not None and curve(50) == pytest.approx(5 * 12 / 0.2 * np.log(50) + np.pi**2 / 3 * 8)
    linear = aw.environments.Lists(8, 3, dim=4)
    proved = aw.CascadeLinUCB(4, aw.Ellipsoid(0.5, 0.5, 0.05), 3.0)
    result = aw.race({"proved": proved, "U": aw.CascadeUCB1(8)}, linear, horizon=50, seeds=1)
    assert result.bound("proved")[0] is not None
    assert "measures against the best list of each round" in result.bound("U")[1]


def test_who_plays_what_is_checked_before_the_race() -> None:
    with pytest.raises(ValueError, match="must be a ranker"):
        aw.race([aw.UCB1(8)], WORLD, horizon=10)
    few = WORLD.n_arms - 1
    for ranker, said in (
        (aw.CascadeUCB1(few), f"must rank the 8 arms of Lists, got n_arms={few}"),
        (aw.SlotBySlot(aw.UCB1(few)), f"got n_arms={few}"),
        (aw.PositionUCB(8, 1), "must fill the 3 slots of Lists, got n_slots=1"),
    ):
        with pytest.raises(ValueError, match=said):
            aw.race([ranker], WORLD, horizon=10)
    with pytest.raises(ValueError, match="must be an agent"):
        aw.race([aw.CascadeUCB1(3)], aw.environments.Switching(3), horizon=10)
    single = aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=10, seeds=1)
    for asked in (lambda: single.clicks("UCB1"), single.best_clicks):
        with pytest.raises(ValueError, match="no clicks by slot"):
            asked()


def test_workers_do_not_change_a_bit() -> None:
    one, two = (aw.race(RANKERS, WORLD, horizon=60, seeds=2, workers=n) for n in (1, 2))
    assert all((one.regret(name) == two.regret(name)).all() for name in RANKERS)
