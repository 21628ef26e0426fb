"""Named versions of a model where decisions are spread over several databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from armwise.core import saving
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.engine.engine import Engine
from armwise.service.engine.learning.fold import fold
from armwise.service.engine.rollout import add_version, promote, remove_version, roll_back, share_version, versions
from armwise.service.journal.errors import Conflict
from armwise.service.journal.events import Creation, Decision, Version
from armwise.service.journal.journal import Journal
from armwise.service.log.verify import verify
from armwise.service.model.merged_views import merge
from armwise.service.model.model import Model
from armwise.service.server.config import open_store
from armwise.service.sharding.sharded_engine import ShardedEngine
from armwise.service.web.page.watch import Watch

ARMS = [b'"a"', b'{"id": "b", "features": {"x": 2}}', b'"c"']
SHOP = Creation(features={"dim": 16})
BOLD = Creation({"class": "LinUCB", "alpha": 2.0, "lam": 1.0}, {"dim": 16})


def live(shards: ShardedEngine, n: int, seed: int) -> list[str]:
    chance, ids = np.random.default_rng(seed), []
    for _ in range(n):
        made = shards.decide("shop", b'{"x": %.3f}' % chance.normal(), ARMS)
        shards.reward("shop", made.id, float(made.arm == "b"))
        ids.append(made.id)
    shards.wait_learnt()
    return ids


def shown(shards: ShardedEngine) -> list[tuple[str, bool, float]]:
    return [(one["name"], one["leads"], round(one["share"], 9)) for one in versions(shards, "shop")]


def replays(urls: list[str]) -> list[Model]:
    found = []
    for url in urls:
        journal, models = Journal(open_store(url).connect()), dict[str, Model]()
        assert verify(journal).problems == []
        for row in journal.events():
            fold(models, [row], journal)
        journal.connection.close()
        found.append(models["shop"])
    return found


def test_versions_are_asked_shared_promoted_and_rolled_back_in_every_database(
    urls: list[str], spread: Callable[..., ShardedEngine]
) -> None:
    """A failure would mean that databases decide by different versions, or that one knows less than all do."""
    shards = spread(urls)
    live(shards, 40, 1)
    add_version(shards, "shop", "bold", BOLD, share=0.3)
    first = shards.model("shop").name
    assert shown(shards) == [(first, True, 0.7), ("bold", False, 0.3)]
    assert shards.model("shop").versions["bold"].model.lessons == 40, "each database trained it on its own journal"
    ids = live(shards, 60, 2)
    among = [shards.find("shop", id)[1].among for id in ids]
    assert all(len(each) == 2 and "bold" in each for each in among), "every database asks both"
    watch = Watch(cast(Engine, shards), "shop")
    listed = watch.versions()[1]
    watch.close()
    assert listed["uplift"]["n"] == 60, "they are compared on the decisions of all databases together"
    assert listed["lessons"] == 100
    with pytest.raises(Conflict):
        add_version(shards, "shop", "bold", BOLD)
    with pytest.raises(InvalidInput, match="cannot be sharded"):
        add_version(shards, "shop", "fading", Creation({"class": "LinUCB", "discount": 0.9}, {"dim": 16}))
    share_version(shards, "shop", "bold", 0.0)
    promote(shards, "shop", "bold")
    assert shown(shards) == [("bold", True, 1.0), (first, False, 0.0)]
    assert {each.model("shop").name for each in shards.each} == {"bold"}
    assert shards.model("shop").agent.params()["alpha"] == 2.0
    live(shards, 30, 3)
    assert shards.model("shop").lessons == 130
    before = saving.dumps(shards.model("shop").agent)
    shards.stop()
    parts = dict(zip(urls, replays(urls)))
    ordered = [parts[urls[int(shards.label(identity)) - 1]] for identity in shards.members.newest]
    assert saving.dumps(merge(ordered)[-1].agent) == before, "it is exactly the merge of the replays"
    again = spread(urls)
    assert shown(again) == [("bold", True, 1.0), (again.model("shop").previous, False, 0.0)]
    assert roll_back(again, "shop") == again.model("shop").name == first
    remove_version(again, "shop", "bold")
    assert len(shown(again)) == 1 and not any(each.learner.served["shop"].versions for each in again.each)
    live(again, 6, 4)
    again.stop()
    replays(urls)


def test_a_change_that_stopped_midway_is_completed_when_it_is_asked_for_again_or_at_the_next_start(
    urls: list[str], spread: Callable[..., ShardedEngine]
) -> None:
    shards = spread(urls)
    live(shards, 20, 1)
    add_version(shards, "shop", "bold", BOLD)
    one = shards.each[0]
    share_version(one, "shop", "bold", 0.1)
    one.journal_change("shop", Version("bold", promote=True))  # as if the others had been lost just then
    shards.merge()
    assert "other versions" in shards.unmerged["shop"]
    live_on = shards.decide("shop", b"{}", ARMS)
    assert isinstance(shards.find("shop", live_on.id)[1], Decision), "meanwhile it decides as before"
    promote(shards, "shop", "bold")
    assert not shards.unmerged and {each.model("shop").name for each in shards.each} == {"bold"}
    roll_back(shards.each[0], "shop")
    shards.stop()
    again = spread(urls)
    assert not again.unmerged and again.model("shop").name != "bold", "the others follow the first"
    assert [len(each.learner.served["shop"].versions) for each in again.each] == [1, 1, 1]


def test_a_database_that_is_added_gets_the_versions(urls: list[str], spread: Callable[..., ShardedEngine]) -> None:
    shards = spread(urls[:2])
    live(shards, 20, 1)
    add_version(shards, "shop", "bold", BOLD, share=0.25)
    promote(shards, "shop", "bold")
    add_version(shards, "shop", "shy", SHOP, share=0.5)
    shards.add([open_store(url) for url in urls])
    shards.merge()
    assert not shards.unmerged and len(shards.each) == 3
    lead, *others = [(leads, share) for _, leads, share in shown(shards)]
    assert lead == (True, 0.5) and sorted(others) == [(False, 0.0), (False, 0.5)]
    assert {each.model("shop").name for each in shards.each} == {"bold"}
    live(shards, 30, 2)
    assert shards.model("shop").lessons == 50
