"""The races behind the pictures: each agent on a small world that fits it, run when the site is built."""

from __future__ import annotations

import html
import os
from functools import cache

import numpy as np

import armwise as aw
from armwise.core.capabilities.stopping import Stopping
from armwise.models.ridge import Ridge
from armwise.racing import Heat, Result, race_all
from armwise.racing.report.pictures import Kind
from armwise.racing.report.report import svg
from armwise.racing.report.survey_race import survey_heats
from armwise.theory.algorithm_table import agents

# Rounds, as a share of the default race's: enough to see each agent's shape, little enough to wait for.
SCALE = float(os.environ.get("ARMWISE_DOCS_SCALE", "0.5"))
SEEDS = 4
CAPTIONS: dict[Kind, str] = {
    "regret": "Cumulative regret: mean over {seeds} seeds, band from the 5 % to the 95 % quantile.",
    "bounds": "The same on logarithmic axes beside the bounds (dotted, open markers); dashes are the worst seed.",
}


@cache
def results() -> tuple[Result, ...]:
    """Every heat, raced once per build."""
    heats = [*survey_heats(SCALE), _regression(), _learners(), _budgets()]
    workers = os.cpu_count() or 1 if SCALE > 0.05 else 1  # to start one costs more than a short race
    return tuple(race_all(heats, seeds=SEEDS, workers=workers, progress=False))


def _regression() -> Heat:
    world, T = aw.environments.Linear(n_arms=5, dim=5, noise=0.1), max(50, round(4_000 * SCALE))
    seen = next(world.blocks(horizon=200, seed=0)).view("features")
    features = aw.features.Join([aw.features.Columns(), aw.features.Fourier(32)]).fit(seen.reshape(-1, 5))
    agents = {
        "Mapped LinUCB": aw.Mapped(aw.LinUCB(features.size), features),
        "SquareCB": aw.SquareCB(5, gamma=100.0),
        "RegCB": aw.RegCB(5),
        "FastCB": aw.FastCB(5),
        "Auto": aw.Auto(5),
        "D3RB": aw.D3RB([aw.LinUCB(5), aw.SquareCB(5)]),
        "ED2RB": aw.ED2RB([aw.LinUCB(5), aw.SquareCB(5)]),
        "Corral": aw.Corral([aw.LinUCB(5), aw.SquareCB(5)], T),
        "LinUCB": aw.LinUCB(5, alpha=0.3),
        "HybridLinUCB": aw.HybridLinUCB(5, 5, shared=4),
        "EpsilonGreedy, ridge": aw.EpsilonGreedy(model=Ridge(5), epsilon=0.1),
    }
    return Heat(world, agents, T, "Regression under exploration")


def _learners() -> Heat:
    world = aw.environments.Planted(n_policies=20, n_arms=3, dim=4)
    policies, K, T = world.policies, world.n_arms, max(50, round(4_000 * SCALE))
    agents = {
        "OnlineCover": aw.OnlineCover(aw.LinearOracle(4, K), K),
        "Advised Exp4": aw.Advised(aw.Exp4.theoretical(len(policies) + 1, K, T), policies, uniform=True),
        "SquareCB, disjoint": aw.SquareCB(4, n_arms=K),
        "PolicyArms Exp3": aw.PolicyArms(aw.Exp3.theoretical(len(policies), T), policies, K),
    }
    return Heat(world, agents, T, "A planted policy, learnt")


def _budgets() -> Heat:
    world, T = aw.environments.Budgeted(n_arms=5, dim=4, rate=0.2), max(50, round(4_000 * SCALE))
    B = world.rate * T
    agents = {
        "LagrangeCB": aw.LagrangeCB(aw.SquareCB(4), T, B),
        "LinCBwK": aw.LinCBwK(4, T, B),
        "HardStop LagrangeCB": aw.HardStop(aw.LagrangeCB(aw.SquareCB(4), T, B), B, 1.0, 0),
        "Pacing LinUCB": aw.Pacing(aw.LinUCB(4), world.rate, 0),
        "Conservative LinUCB": aw.Conservative(aw.LinUCB(4), 1, 0.2),
    }
    return Heat(world, agents, T, "A spend rate of 0.2")


def result_of(agent: str) -> Result:
    """The heat that shows an agent: the first with its bound beside it, else the first it runs in."""
    runs_in = [r for r in results() if any(type(each).__name__ == agent for each in r.agents.values())]
    if not runs_in:
        return _alone(agent)
    bounded = [r for r in runs_in for name, each in r.agents.items()
               if type(each).__name__ == agent and r.bound(name)[0] is not None]  # fmt: skip
    return (bounded or runs_in)[0]


@cache
def _alone(agent: str) -> Result:
    """A heat for an agent that is in no other: the call of its theory, beside UCB1 or LinUCB."""
    cls, T = agents()[agent], max(50, round(4_000 * SCALE))
    sizes = {"T": T, "K": 5, "d": 5, "N": 5, "R": 0.1, "S": 1.0, "delta": 0.05}
    made = eval(cls.theory.call.format(**sizes), {"aw": aw, "np": np})
    if isinstance(made, Stopping):
        clicks = aw.environments.KArmed([0.3, 0.4, 0.5, 0.6, 0.8])
        heat = Heat(clicks, {agent: made, "BetaThompson": aw.BetaThompson(5)}, T, "Clicks of five arms")
    elif made.sees == "nothing":
        heat = Heat(aw.environments.Switching(n_arms=5), {agent: made, "UCB1": aw.UCB1(5)}, T, "Arms without contexts")
    elif made.n_costs:
        heat = Heat(aw.environments.Budgeted(n_arms=5, dim=5), {agent: made}, T, "A spend rate")
    else:
        world = aw.environments.Linear(n_arms=5, dim=5, noise=0.1)
        heat = Heat(world, {agent: made, "LinUCB": aw.LinUCB(5)}, T, "Linear rewards")
    return race_all([heat], seeds=SEEDS, workers=1, progress=False)[0]


def pictures(agent: str) -> str:
    """What was measured, as HTML: two pictures and a line on the world."""
    result = result_of(agent)
    if result.failures:
        raise RuntimeError(f"a race of the documentation failed: {result.failures[0]}")
    figures = "".join(_figure(result, kind) for kind in CAPTIONS)
    about = (type(result.world).__doc__ or "").strip().splitlines()[0]
    return (
        f'World: `{type(result.world).__name__}`, "{result.label}". {about} T = {result.horizon:,}; regret is against '
        f'{result.world.comparator}.\n\n<div class="pictures">{figures}</div>\n'
    )


@cache
def _figure(result: Result, kind: Kind) -> str:
    caption = CAPTIONS[kind].format(seeds=len(result.seeds))
    drawn = svg(result, kind, html.escape(f"{result.label}: {caption}")).replace("\n", " ")
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"
