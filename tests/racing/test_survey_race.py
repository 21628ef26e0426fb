"""The survey as a race: every row of the table runs, on a world that fits it, below its bound."""

import pytest

import armwise as aw
from armwise.racing import race_all
from armwise.racing.survey import survey_heats

TABLE = ["PerContext", "PolicyArms", "Exp4", "Exp4P", "LinUCB", "SupLinUCB", "SupLinREL", "GPUCB", "SupKernelUCB",
         "EpochGreedy", "RandomizedUCB", "ILoveToConBandits", "LinThompson"]  # fmt: skip
BEYOND = ["Exp3", "UCB1", "BetaThompson", "EpsilonGreedy", "LinREL", "CoFineUCB", "LogisticThompson", "SpectralUCB",
          "CGPUCB", "KernelUCB", "PolicyElimination", "VE", "Doubling", "Explore", "SquareCB", "RegCB",
          "OnlineCover"]  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return race_all(survey_heats(scale=0.05), seeds=1)


def test_every_agent_of_the_survey_races(results):
    entered = {type(agent).__name__ for result in results for agent in result.agents.values()}
    assert set(TABLE + BEYOND) <= entered
    assert not [line for result in results for line in result.failures]


@pytest.mark.parametrize("row", TABLE)
def test_every_row_of_the_table_has_its_bound_and_stays_below_it(results, row):
    shown = []
    for result in results:
        for name, agent in result.agents.items():
            curve, _ = result.bound(name)
            if type(agent).__name__ == row and curve is not None:
                shown.append(name)
                assert result.regret(name)[:, -1].max() <= curve(result.horizon)
    assert shown, f"{row} is drawn without a bound"


def test_bounds_only_where_they_hold():
    from armwise.racing.theory import bound

    linear, tabular = aw.environments.Linear(n_arms=4, dim=5), aw.environments.Tabular(n_contexts=3, n_arms=4)
    assert bound(aw.LinUCB(dim=5, alpha=0.3), linear, 100)[0] is None  # alpha is not the theorem's
    assert bound(aw.LinUCB(dim=5, alpha=aw.Ellipsoid(0.1, 1.0, 0.05)), linear, 100)[0] is not None
    assert bound(aw.LinUCB(dim=12, alpha=aw.Ellipsoid(0.1, 1.0, 0.05)), tabular, 100)[0] is None
    assert "Exp3 inside" in bound(aw.PerContext(aw.UCB1(n_arms=4)), tabular, 100)[1]
    curve, _ = bound(aw.PerContext(aw.Exp3(n_arms=4)), tabular, 100)
    assert curve(100) == aw.bounds.per_context(T=100, C=3, K=4)
    flat, _ = bound(aw.Exp3.tuned(4, 100), aw.environments.Switching(n_arms=4), 100)
    assert flat(10) == flat(100) == aw.bounds.exp3(T=100, K=4)
    doubled, _ = bound(aw.Doubling("Exp3.tuned", {"n_arms": 4}), aw.environments.Switching(n_arms=4), 100)
    assert doubled(100) == aw.bounds.doubling(T=100, bound=aw.bounds.exp3, K=4)
