"""What columns that say nothing cost a Decider's default, and what columns that matter bring it: four banners.

    python -m benchmarks.useless_columns [--seeds 6] [--first 0] [--rounds 20000] [--without] [--worlds NAME ...]

Clicks at 2, 3, 4 and 6 %, the same for everybody or in another order in each segment, city or device. Printed: what a
decision earns over all rounds, and from 10,000 on, with its standard error over seeds. ``--without`` leaves the
interactions of context and arms in charge, whatever is known of them.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import armwise as aw
from armwise.service.model import arms_alone

RATES, BANNERS, LATE = (0.02, 0.03, 0.04, 0.06), ["one", "two", "three", "four"], 10_000
ALL = ("device", "segment", "age", "city")
# name: the columns of the context, and the one with which the banners change places
WORLDS: dict[str, tuple[tuple[str, ...], str]] = {
    "none": ((), ""),
    "device, segment": (("device", "segment"), ""),
    "age": (("age",), ""),
    "city": (("city",), ""),
    "all four": (ALL, ""),
    "device, which matters": (("device",), "device"),
    "city, which matters": (("city",), "city"),
    "device, segment, which matters": (("device", "segment"), "segment"),
    "all four, segment matters": (ALL, "segment"),
}


def earned(columns: tuple[str, ...], useful: str, rounds: int, seed: int) -> np.ndarray:
    """The rate of the banner that was drawn, in each round."""
    rng, clicks = np.random.default_rng([seed, 3]), np.random.default_rng([seed, 4])
    shop, found, orders = aw.Decider(seed=seed), np.zeros(rounds), dict[Any, np.ndarray]()
    for t in range(rounds):
        everything = {
            "device": ["phone", "desktop", "tablet"][rng.integers(3)],
            "segment": f"s{rng.integers(5)}",
            "age": float(rng.normal(40.0, 15.0)),
            "city": f"city{rng.integers(50)}",
        }
        order = everything[useful] if useful else ""
        if order not in orders:
            orders[order] = rng.permutation(RATES)
        decided = shop.decide({name: everything[name] for name in columns}, BANNERS)
        found[t] = orders[order][BANNERS.index(decided.arm)]
        shop.reward(decided, float(clicks.random() < found[t]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="NAME")
    parser.add_argument("--without", action="store_true", help="interactions stay in charge")
    args = parser.parse_args()
    if args.without:
        arms_alone.MIN_INFORMATION = float("inf")
    for name in args.worlds:
        runs = np.array([earned(*WORLDS[name], args.rounds, s) for s in range(args.first, args.first + args.seeds)])
        late = runs[:, LATE:].mean(axis=1)
        error = late.std(ddof=1) / np.sqrt(len(late))
        print(f"{name:32s} {runs.mean():.4f}, from {LATE:,} on {late.mean():.4f} +- {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
