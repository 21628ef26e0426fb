"""Costs go with rewards, through Decider and the journal, to agents that count them and into the log."""

# mypy: disable-error-code="attr-defined, union-attr"

import json

import pytest

import armwise as aw
from armwise.features.encoding.tokens import InvalidInput

HARD = {"class": "HardStop", "agent": {"class": "LinUCB", "n_arms": 2}, "budget": 3.0, "max_cost": 1.0, "fallback": 0}


def test_a_cost_is_kept_beside_its_reward(tmp_path):
    for path in (None, tmp_path / "journal"):
        with aw.Decider(seed=1) if path is None else aw.Decider(path, seed=1) as shop:
            made = shop.decide({"hour": 9}, arms=["a", "b"])
            shop.reward(made.id, 1.0, cost=0.25)
            assert shop.log().costs.tolist() == [0.25]
            with pytest.raises(InvalidInput, match="cost"):
                shop.reward(shop.decide({}, arms=["a", "b"]).id, 1.0, cost=float("nan"))


def test_an_agent_with_a_budget_counts_what_comes_and_never_overspends():
    shop, spent = aw.Decider(agent=HARD, seed=1), 0.0
    for _ in range(60):
        made = shop.decide({"hour": 9}, arms=["free", "paid"])
        paid = 0.6 * (made.arm == "paid")
        spent += paid
        shop.reward(made.id, 1.0 if made.arm == "paid" else 0.0, cost=paid)
    assert 1.8 <= spent <= 3.0
    assert shop.agent.spent.tolist() == pytest.approx([spent])
    with pytest.raises(InvalidInput, match="cost is missing"):
        shop.reward(shop.decide({}, arms=["free", "paid"]).id, 1.0)


def test_a_journal_gives_the_same_account_again(tmp_path):
    with aw.Decider(tmp_path / "journal", agent=HARD, seed=1) as shop:
        for _ in range(20):
            made = shop.decide({"hour": 9}, arms=["free", "paid"])
            shop.reward(made.id, 1.0, cost=0.6 * (made.arm == "paid"))
        before = shop.agent.spent.tolist()
    with aw.Decider(tmp_path / "journal", agent=HARD, seed=1) as again:
        assert again.agent.spent.tolist() == before
        assert again.agent.set_aside.tolist() == pytest.approx([0.0])


def test_a_baseline_in_the_configuration_of_an_application():
    spec = {"class": "Conservative", "agent": {"class": "LinUCB", "n_arms": 2}, "baseline": 1, "alpha": 0.1}
    shop = aw.Decider(agent=spec, seed=1, learn="arrival")
    for _ in range(10):
        made = shop.decide({"hour": 9}, arms=["new", "known"])
        assert made.arm == "known" and made.probability == 1.0
        shop.reward(made.id, 0.5)
    assert shop.agent.baseline_share == 1.0
    assert json.loads(made.context) == {"hour": 9}


def test_costs_come_back_from_every_export(tmp_path):
    """A number per decision in json, dsjson and Parquet; NaN where nobody said it, and ``tradeoff`` says how many."""
    from armwise.service.log.export_journal import as_dsjson, as_json, entries
    from armwise.service.log.parquet import row_groups

    with aw.Decider(tmp_path / "journal", seed=1) as shop:
        for t in range(6):
            made = shop.decide({"hour": t}, arms=["a", "b"])
            shop.reward(made.id, 1.0, cost=0.25 * t if t < 5 else [2.0])
        journal = shop._backend.engine.open_journal()
        found = list(entries(journal, "default"))
        journal.connection.close()
    (tmp_path / "log.json").write_bytes(b"\n".join(map(as_json, found)))
    (tmp_path / "log.dsjson").write_bytes(b"\n".join(map(as_dsjson, found)))
    (tmp_path / "log.parquet").write_bytes(b"".join(row_groups(found)))
    expected = [0.0, 0.25, 0.5, 0.75, 1.0, 2.0]
    for log in (
        aw.offline.Log.from_dsjson(tmp_path / "log.json"),
        aw.offline.Log.from_dsjson(tmp_path / "log.dsjson"),
        aw.offline.Log.from_parquet(tmp_path / "log.parquet"),
    ):
        assert log.costs.tolist() == expected
        log.to_dsjson(tmp_path / "again.dsjson")
        assert aw.offline.Log.from_dsjson(tmp_path / "again.dsjson").costs.tolist() == expected
    shop = aw.Decider(seed=1)
    for cost in (0.5, None):
        shop.reward(shop.decide({}, arms=["a", "b"]).id, 1.0, cost=cost)
    assert str(shop.log().costs.tolist()) == "[0.5, nan]"
    with pytest.raises(ValueError, match="1 of the 2 rows"):
        aw.offline.tradeoff(shop.log(), {"a": [1.0, 0.0]})
