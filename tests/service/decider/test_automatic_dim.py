"""How many positions there are is nobody's business: enough for what the decisions tell apart, and replayed alike."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import armwise as aw
from armwise.core import saving
from armwise.service.journal.databases.sqlite import SQLite
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify

ARMS = [f"arm{k}" for k in range(10)]


def inside(shop: aw.Decider) -> Any:
    agent: Any = shop.agent
    return agent.agent


@pytest.mark.parametrize(("names", "dim"), [(5, 128), (20, 128), (30, 256), (50, 512), (500, 512)])
def test_the_first_decision_says_how_many(names: int, dim: int) -> None:
    shop = aw.Decider()
    shop.decide({f"f{i}": float(i) for i in range(names)}, ARMS)
    assert inside(shop).dim == dim
    fixed = aw.Decider(dim=64)
    fixed.decide({f"f{i}": float(i) for i in range(names)}, ARMS)
    assert inside(fixed).dim == 64


def use(shop: aw.Decider, n: int, names: int) -> None:
    rng = random.Random(2)
    for i in range(n):
        context = {f"x{k}": rng.random() for k in range(names)} | {"city": f"c{rng.randrange(300)}"}
        made = shop.decide(context, ["a", "b", "c"])
        if i % 3:
            shop.reward(made, float(made.arm == "b"))
        if i == 8:
            row = {"context": {"city": "c1"}, "arms": ["a", "b"], "arm": "b", "probability": 0.5, "reward": 1.0}
            shop.warm_start([row] * 5)


def test_names_that_come_later_make_it_grow_and_nothing_learnt_is_lost(tmp_path: Path) -> None:
    # A failure of the last lines means that what grew was begun anew instead of being trained, or that a replay of the
    # journal comes to another model.
    with aw.Decider(tmp_path / "d") as disk:
        for shop in (aw.Decider(seed=1), disk):
            use(shop, 100, names=3)
            assert inside(shop).dim == 128
            use(shop, 20, names=80)
            assert inside(shop).dim == 256
            assert inside(shop).t > 70
            assert shop.decide({"city": "c1"}, ["a", "b", "c"]).probabilities["b"] > 0.9
            assert (
                60 <= len(shop.log().rewards) <= 121
            )  # the older half, and those that are as old as the youngest of it
        before = saving.dumps(disk.agent)
    report = verify(Journal(SQLite(tmp_path / "d" / "journal.db").connect()))
    assert (report.problems, report.snapshots > 0) == ([], True)
    with aw.Decider(tmp_path / "d") as again:
        assert saving.dumps(again.agent) == before
    with aw.Decider(tmp_path / "d", dim=64) as fixed:  # said by somebody, and it stays
        assert inside(fixed).dim == 64
    with aw.Decider(tmp_path / "d") as fixed:
        use(fixed, 20, names=80)
        assert inside(fixed).dim == 64


def test_a_decision_from_before_it_grew_is_rewarded_after(tmp_path: Path) -> None:
    for shop in (aw.Decider(seed=1), aw.Decider(tmp_path / "d", seed=1)):
        first = shop.decide({"n": 1.0}, ["a", "b"])
        for i in range(30):
            shop.decide({f"x{k}": float(i + k) for k in range(60)}, ARMS)
        assert inside(shop).dim == 512
        before = inside(shop).t
        assert before == 32  # the default reward of each, until it is corrected
        assert [shop.reward(first, 1.0).status, shop.reward(first, 1.0).status] == ["taken", "repeated"]
        assert inside(shop).t == before
        shop.close()
