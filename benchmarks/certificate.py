"""Certified regret on the default race's worlds: how often it is above the truth, and how far below the worst case.

    python -m benchmarks.certificate --runs 200

For each world and agent: the share of runs in which the certificate (delta = 0.05) is above the measured regret, the
mean of both, the largest certificate as a share of T, and the worst-case bound of the theorem's own setting, where
there is one, over the mean certificate.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import armwise as aw
from armwise.core.agent import Agent
from armwise.environments.environment import Environment
from armwise.models.ridge import Ridge
from armwise.racing.report.survey_race import survey_heats
from armwise.racing.results.matching_bound import bound
from armwise.theory.certificate import Rounds, certificate
from armwise.theory.certificate.played_rounds import RoundsBlock

WORLDS = {
    "Linear rewards": "linear",
    "One model for each arm": "disjoint",
    "Clicks": "logistic",
    "A Gaussian process": "process",
    "A function of bounded norm": "bounded norm",
}
DELTA = 0.05


def agents(world: Environment, dim: int, T: int) -> dict[str, Agent]:
    """The four agents as users make them: one model for each arm where the context is shared."""
    K = None if world.native == "features" else world.n_arms
    ridge = Ridge(dim) if K is None else Ridge(dim, n_models=K)
    return {
        "LinUCB": aw.LinUCB(dim, n_arms=K),
        "LinThompson": aw.LinThompson(dim, n_arms=K),
        "SquareCB": aw.SquareCB(dim, n_arms=K),
        "EpsilonGreedy": aw.EpsilonGreedy(model=ridge, epsilon=0.1),
    }


def theorem(name: str, world: Environment, dim: int, T: int) -> float | None:
    """The worst-case bound of this agent in its theorem's setting on this world, if it has one."""
    known, K = world.constants(), None if world.native == "features" else world.n_arms
    makers: dict[str, Any] = {
        "LinUCB": lambda: aw.LinUCB.theoretical(
            dim, noise=known["R"], norm=known["S"], length=known["L"], delta=DELTA, n_arms=K
        ),
        "LinThompson": lambda: aw.LinThompson.theoretical(dim, noise=known["R"], delta=DELTA, n_arms=K),
        "SquareCB": lambda: aw.SquareCB.theoretical(dim, world.n_arms, T, delta=DELTA),
    }
    if "linear" not in known or name not in makers:
        return None
    found = bound(makers[name](), world, T)
    return None if isinstance(found, str) else found.curve(T)


def one(world: Environment, agent: Agent, T: int, seed: int) -> tuple[float, float]:
    """Measured and certified regret of one run."""
    assumed = world.reward_class()
    assert assumed is not None
    view = assumed.pop("view")
    blocks, regret = [], 0.0
    for block in world.blocks(T, seed):
        shown = block.rewards
        if world.span > 1.0 and np.isfinite(agent.reward_range[1]):  # an agent for [0, 1] is shown rewards there
            shown = np.clip((shown + 1.0) / 2.0, 0.0, 1.0)
        played = agent.play(block.view(agent.sees), shown)
        at = np.arange(len(block)), played.arms
        regret += float((block.expected.max(axis=1) - block.expected[at]).sum())
        blocks.append(RoundsBlock(block.view(view), played.arms, block.rewards[at]))
    rounds = Rounds(lambda: iter(blocks), T, world.n_arms)
    return regret, certificate(rounds, delta=DELTA, test=False, **assumed).regret


def measure(runs: int, scale: float = 1.0) -> list[dict[str, Any]]:
    """One row for each world and agent."""
    rows = []
    for heat in survey_heats(scale):
        if heat.label not in WORLDS:
            continue
        world, T = heat.world, heat.horizon
        dim = world.width("features" if world.native == "features" else "shared")
        for name, agent in agents(world, dim, T).items():
            before = time.process_time()
            pairs = np.array([one(world, agent.clone(seed=seed), T, seed) for seed in range(runs)])
            worst = theorem(name, world, dim, T)
            rows.append(
                {
                    "world": WORLDS[heat.label],
                    "agent": name,
                    "T": T,
                    "above": float((pairs[:, 1] >= pairs[:, 0]).mean()),
                    "regret": float(pairs[:, 0].mean()),
                    "certificate": float(pairs[:, 1].mean()),
                    "largest / T": float(pairs[:, 1].max()) / T,
                    "worst case": worst,
                    "worst / certificate": None if worst is None else worst / float(pairs[:, 1].mean()),
                    "seconds per run": (time.process_time() - before) / runs,
                }
            )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--scale", type=float, default=1.0, help="of the horizons")
    args = parser.parse_args()
    rows = measure(args.runs, args.scale)
    print(" | ".join(rows[0]))
    for row in rows:
        print(" | ".join("-" if v is None else f"{v:,.3g}" if isinstance(v, float) else str(v) for v in row.values()))


if __name__ == "__main__":
    main()
