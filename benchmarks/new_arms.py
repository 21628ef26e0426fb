"""What a new arm costs a Decider, and how soon a good one is found: four banners, and a fifth that comes later.

    python -m benchmarks.new_arms --seeds 6 --rates 0.01 0.09 --shares 1 0.2 0.1

Clicks at 2, 3, 4 and 6 % for everybody, ``--before`` decisions with a device of three values, then ``--after`` with
the fifth. Printed: its probability in its first decision, its share of the first 500 (and of the worst seed), and of
each 1,000 decisions.
"""

from __future__ import annotations

import argparse

import numpy as np

import armwise as aw

RATES = {"two": 0.02, "three": 0.03, "four": 0.04, "six": 0.06}


def played(seed: int, rate: float, share: float, before: int, after: int) -> tuple[float, np.ndarray]:
    """The new arm's first probability, and whether it was drawn in each decision since it came."""
    rng = np.random.default_rng([seed, 1])
    shop, rates = aw.Decider(seed=seed, new_arms=share), dict(RATES)
    first, drawn = 0.0, np.zeros(after, bool)
    for t in range(before + after):
        if t == before:
            rates["new"] = rate
        decided = shop.decide({"device": f"d{rng.integers(3)}"}, list(rates))
        if rng.random() < rates[decided.arm]:
            shop.reward(decided, 1.0)
        if t == before:
            first = decided.probabilities["new"]
        if t >= before:
            drawn[t - before] = decided.arm == "new"
    return first, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--before", type=int, default=10_000)
    parser.add_argument("--after", type=int, default=6_000)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.09])
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.2, 0.1])
    args = parser.parse_args()
    for rate in args.rates:
        for share in args.shares:
            runs = [played(seed, rate, share, args.before, args.after) for seed in range(args.seeds)]
            drawn = np.array([each for _, each in runs])
            start = drawn[:, :500].mean(axis=1)
            thousands = drawn[:, : args.after // 1000 * 1000].reshape(len(runs), -1, 1000).mean(axis=(0, 2))
            print(
                f"rate {rate:.3f}, new_arms {share:.2f}: first {np.mean([p for p, _ in runs]):.2f}, "
                f"first 500 {start.mean():.3f} (worst {start.max():.3f}), per 1,000 {thousands.round(2).tolist()}",
                flush=True,
            )


if __name__ == "__main__":
    main()
