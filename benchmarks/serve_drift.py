"""What the service's default earns after tastes change, and what watching for it costs where nothing does.

    python -m benchmarks.serve_drift --seeds 20

Ten arms, five kinds of people, rewards 0 or 1: each kind has one arm that pays 0.55, the others 0.02 to 0.25. After
half of the decisions every kind has another best arm. Means per 500 decisions, with the standard error over the seeds;
alarms and false alarms are counted.
"""

from __future__ import annotations

import argparse
import json

import msgspec
import numpy as np

from armwise.features.encoding.arms import read_arms
from armwise.service.journal.events import Creation, Decision, Reward, Row, Settings
from armwise.service.model.build import build_model
from armwise.service.model.model import DecisionOutcome, DrawRequest

ARMS = read_arms([json.dumps(f"a{k}").encode() for k in range(10)])
FADING = {"class": "Explore", "epsilon": 0.1, "agent": {"class": "LinUCB", "alpha": 0.5, "lam": 1.0, "discount": 0.995}}
WAYS = {
    "default": Creation(),
    "drift = off": Creation(settings=Settings(drift="off")),
    "discount = 0.995": Creation(agent=FADING, settings=Settings(drift="off")),
}


def earned(creation: Creation, seed: int, n: int, change: bool) -> tuple[np.ndarray, int, int]:
    """The expected reward of each of ``n`` decisions, and the alarms before and after the middle."""
    rng = np.random.default_rng(seed)
    model = build_model(creation)
    pays = rng.uniform(0.02, 0.25, (5, 10))
    pays[range(5), rng.permutation(10)[:5]] = 0.55
    later = np.roll(pays, 5, axis=1) if change else pays
    found, alarms = [], [0, 0]
    for t, (who, u, luck) in enumerate(rng.random((n, 3)).tolist()):
        now = later if t >= n // 2 else pays
        person = int(5 * who)
        context = b'{"person": "p%d", "hour": %d}' % (person, int(997 * who) % 24)
        [it] = model.decide([DrawRequest(context, ARMS, u)])
        asked = Decision(
            msgspec.Raw(context), list(ARMS.raws), it.p.tolist(), it.arm, 0, 1, 0.0, learn=model.learns,
            scaling=it.seen.scaling.journal,
        )  # fmt: skip
        before = len(model.drift.alarms)
        model.register_decisions([Row(t + 1, t, "shop", "decision", "", b"", asked, seen=it.seen)])
        outcome = Reward(0.0, t + 1, lesson=float(luck < now[person, it.arm]))
        model.apply_outcomes([DecisionOutcome(outcome, asked, it.seen)])
        model.version = t + 1
        alarms[t >= n // 2] += len(model.drift.alarms) - before
        found.append(now[person, it.arm])
    return np.array(found), alarms[0], alarms[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--decisions", type=int, default=3000)
    args = parser.parse_args()
    for change in (True, False):
        print("tastes change after half of the decisions" if change else "nothing changes")
        for name, creation in WAYS.items():
            runs = [earned(creation, seed, args.decisions, change) for seed in range(args.seeds)]
            blocks = np.array([run[0] for run in runs]).reshape(args.seeds, -1, 500).mean(axis=2)
            errors = blocks.std(axis=0, ddof=1) / np.sqrt(args.seeds)
            shown = "  ".join(f"{m:.3f}±{e:.3f}" for m, e in zip(blocks.mean(axis=0), errors))
            print(f"  {name:18} {shown}   alarms {sum(r[1] for r in runs)} before, {sum(r[2] for r in runs)} after")


if __name__ == "__main__":
    main()
