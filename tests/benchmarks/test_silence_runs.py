"""Small versions of ``benchmarks.silence``: clicks are reported, their lack is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.silence import HOUR, Folder, Shop, share


@pytest.mark.parametrize("name", ["default", "Auto", "LinUCB"])
def test_agents_prefer_the_better_arm_though_nobody_reports_silence(name: str) -> None:
    """6 % against 2 %, ten seeds. Learnt as they came, clicks gave the better arm .16 to .33 in each (Auto); one slow
    run of 4,000 decisions is chance, a mean below .85 is an agent that learns clicks and not their lack."""
    shares = [share(name, seed, n=4000) for seed in range(10)]
    assert sum(shares) / 10 > 0.85 and sorted(shares)[1] > 0.8, shares


def test_judges_cover_what_is_true_within_the_first_hours() -> None:
    """Of 25 shops at 1 h and 6 h at most 5 may lie outside of an interval of 95 %; a judge that takes clicked
    decisions is outside in all."""
    outside: dict[str, int] = {}
    for seed in range(25):
        shop = Shop(seed)
        for moment in (HOUR, 6 * HOUR):
            shop.trade(moment, every=60.0)
            for judge, held, _ in shop.judged():
                outside[judge] = outside.get(judge, 0) + (not held)
    assert len(outside) == 4 and max(outside.values()) <= 5, outside


def test_everything_that_a_user_looks_at_answers_within_the_first_hour(tmp_path: Path) -> None:
    """One shop, so no claim about coverage: an interval of 95 % may miss, and two that do are a wrong number."""
    shop = Folder(4, tmp_path)
    shop.trade(HOUR, every=30.0)
    found = {judge: (held, width) for judge, held, width in shop.judged()}
    shop.decider.close()
    assert list(found) == ["page", "metrics", "versions", "log() + evaluate", "export + evaluate"]
    assert sum(not held for held, _ in found.values()) < 2, found
    assert found["page"][1] < 0.5 and found["export + evaluate"][1] < 0.8, found
