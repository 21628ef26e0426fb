"""A nightly loop around a policy at the edge: export, decide, collect, evaluate, retrain, promote only if not worse.

    python examples/edge_loop.py

The edge is played here by the exported Python evaluator; in production it is the same file in JavaScript.
"""

from __future__ import annotations

import json
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.export import EppoColumns, Policy

ARMS = ["short", "long", "video"]
HORIZON = 600.0  # seconds within which an outcome counts


def visitor(chance: random.Random) -> dict[str, Any]:
    return {"age": round(chance.gauss(40, 12)), "device": chance.choice(["phone", "tv"])}


def clicks(chance: random.Random, context: dict[str, Any], arm: str) -> bool:
    best = "video" if context["device"] == "tv" else "short"
    return chance.random() < (0.35 if arm == best else 0.1)


def day(file_of_policy: Path, chance: random.Random, visitors: int, start: float, beacons: Path) -> None:
    """A day at the edge: each visitor gets an arm, the page reports what was shown and what came of it."""
    edge: dict[str, Any] = {}
    exec(file_of_policy.read_text(encoding="utf-8"), edge)
    with open(beacons, "a", encoding="utf-8") as file:
        for i in range(visitors):
            context, time = visitor(chance), start + 10.0 * i
            row = list(COLUMNS.rows([context])[0])
            chosen = edge["decide"](row, unit=f"{start:.0f}/{i}", u=chance.random(), id=f"{start:.0f}-{i}")
            file.write(edge["event"]({**chosen, "context": context, "time": time}))
            if clicks(chance, context, chosen["arm"]):
                came = {"kind": "outcome", "id": chosen["id"], "reward": 1.0, "time": time + 5.0}
                file.write(json.dumps(came) + "\n")


def night(policy: Policy, beacons: Path, agent: aw.SquareCB, end: float) -> tuple[Policy, str]:
    """What half of the units teach is judged by the other half; it runs tomorrow if it is not worse.

    A unit is a draw, so units are the clusters. Not worse: the interval of the difference stays above -0.02.
    """
    edge = aw.offline.EdgeLog.from_beacons(beacons, horizon=HORIZON, now=end)
    teaches = np.array([zlib.crc32(unit.encode()) % 2 == 0 for unit in edge.units])
    candidate = aw.fit_log(agent.clone(seed=2), edge.only(teaches).log(COLUMNS))
    judges = edge.only(~teaches)
    rows = COLUMNS.rows(judges.contexts)
    new, old = (np.array([each(row) for row in rows]) for each in (candidate.probabilities, evaluator(policy)))
    found = aw.offline.compare(judges.log(COLUMNS), new, old, cluster=judges.units)
    promoted = found.low > -0.02
    told = f"{len(edge)} decisions, {edge.rewards.mean():.3f} each; tomorrow's is better by {found.value:.3f}, "
    told += f"at least {found.low:.3f}: {'promoted' if promoted else 'kept'}"
    return (candidate.policy(columns=COLUMNS.names, arms=ARMS) if promoted else policy), told


def evaluator(policy: Policy) -> Callable[[Any], list[float]]:
    edge: dict[str, Any] = {}
    exec(aw.export.python(policy), edge)
    return lambda row: edge["probabilities"](row.tolist())


COLUMNS = EppoColumns(visitor(random.Random(0)) for _ in range(200))


def loop(days: int = 3, visitors: int = 1500, seed: int = 1) -> list[float]:
    """The mean reward of each day."""
    chance, folder = random.Random(seed), Path(tempfile.mkdtemp())
    agent = aw.SquareCB(len(COLUMNS.names), n_arms=len(ARMS), gamma=20.0, lam=1.0, exponent=0.0, seed=1)
    policy, earned = agent.policy(columns=COLUMNS.names, arms=ARMS), []
    for number in range(days):
        start = 86400.0 * number
        aw.export.write(policy, folder / "policy.py")
        beacons = folder / f"beacons-{number}.jsonl"
        day(folder / "policy.py", chance, visitors, start, beacons)
        earned.append(
            float(aw.offline.EdgeLog.from_beacons(beacons, horizon=HORIZON, now=start + 86400).rewards.mean())
        )
        policy, told = night(policy, beacons, agent, start + 86400.0)
        print(f"day {number + 1}: {told}")
    return earned


if __name__ == "__main__":
    print(loop())
