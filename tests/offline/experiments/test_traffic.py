"""Traffic: the fixed size against the textbook, the sequential one against experiments that are played."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import armwise as aw
from armwise.cli.main import main
from armwise.offline.experiments.lifts import LiftSequence


def test_the_fixed_size_is_the_textbooks() -> None:
    z = norm.ppf(0.975) + norm.ppf(0.8)
    each = z**2 * (0.1 * 0.9 + 0.12 * 0.88) / 0.02**2
    assert aw.traffic(rate=0.1, effect=0.02).fixed == pytest.approx(2 * each, rel=1e-3)
    z = norm.ppf(1 - 0.05 / 8) + norm.ppf(0.9)  # two comparisons of two goals, three arms
    assert aw.traffic(mean=10, sd=30, effect=2, arms=3, metrics=2, power=0.9).fixed == pytest.approx(
        3 * 2 * (z * 30 / 2) ** 2, rel=1e-3
    )
    unequal = aw.traffic(rate=0.1, effect=0.02, split=[0.9, 0.1]).fixed
    z = norm.ppf(0.975) + norm.ppf(0.8)
    assert unequal == pytest.approx(z**2 * (0.09 / 0.9 + 0.12 * 0.88 / 0.1) / 0.02**2, rel=1e-3)


def test_half_of_the_experiments_stop_by_the_median() -> None:
    """100 played experiments: 50 are expected to stop by then; fewer than 30 or more than 70 is once in 10,000 runs."""
    needed = aw.traffic(rate=0.2, lift=0.25, daily=100, window=2)
    assert needed.median is not None and needed.days(needed.median) == pytest.approx(needed.median / 100 + 2)
    rng = np.random.default_rng(1)
    lifts = LiftSequence(2, planned=needed.planned, shape=(100,))
    arms = rng.integers(0, 2, (100, needed.median))
    lifts.update(arms, [0.5, 0.5], rng.random(arms.shape) < np.where(arms == 1, 0.25, 0.2))
    assert 30 <= (lifts.above[1] > 0).sum() <= 70


def test_plan_prints_json_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--rate", "0.05", "--lift", "0.1", "--daily", "3000", "--json", "--plot", str(tmp_path / "p.png")]
    assert main(words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["days"]["fixed"] == pytest.approx(data["fixed"] / 3000) and (tmp_path / "p.png").stat().st_size > 5000
    assert main(["plan", "--rate", "0.05"]) == 2 and "either lift or effect" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lift": 0.1}, "either rate"),
        ({"rate": 0.05, "lift": 30}, "which must lie between"),
        ({"rate": 0.05, "lift": 0.0}, "not 0"),
        ({"mean": 3.0, "lift": 0.1}, "needs sd"),
        ({"rate": 0.05, "lift": 0.1, "daily": 0}, "daily"),
        ({"rate": 0.05, "lift": 0.1, "arms": 1}, "arms"),
        ({"rate": 0.05, "cap": 1.0, "lift": 0.1}, "those of an amount"),
        ({"rate": 0.05, "lift": "10 %"}, "lift must be a finite number, got str"),
        ({"mean": 30.0, "sd": 10.0, "cap": 20.0, "lift": 0.1}, "cap must be above the means"),
    ],
)
def test_bad_input_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aw.traffic(**arguments)
