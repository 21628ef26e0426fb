"""Mushroom, 2,000 contexts: LinThompson beside the published run of LinFullPost (total reward 4,140).

    python -m benchmarks.mushroom --data FOLDER      # FOLDER holds mushroom.parquet

The protocol of Riquelme et al. 2018: contexts and the luck of poisonous mushrooms drawn with NumPy's seed 42; passing
brings 0, an edible mushroom 5, a poisonous one 5 or -35 by the toss of a coin. The published run has lambda = 0.25.
The best policy brings 5,320 and the uniform one -4,300: printed first, to show that these are the same 2,000 rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import noregret as nr

PUBLISHED = 4140


def rounds(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (2000, 118) and rewards (2000, 2): arm 0 passes, arm 1 eats."""
    import pandas as pd

    frame = pd.read_parquet(folder / "mushroom.parquet")
    edible = (frame["class"] == "e").to_numpy()
    features = pd.get_dummies(frame.drop(columns="class")).to_numpy(np.float64)
    rng = np.random.RandomState(42)
    rows = rng.choice(len(frame), 2000, replace=True)
    luck = rng.choice([-35.0, 5.0], p=[0.5, 0.5], size=2000)
    eaten = np.where(edible[rows], 5.0, luck)
    print(f"best policy {5 * edible[rows].sum()}, uniform {eaten.sum() / 2:.0f}")
    return np.column_stack([features[rows], np.ones(2000)]), np.column_stack([np.zeros(2000), eaten])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with mushroom.parquet")
    parser.add_argument("--peers-python", help=argparse.SUPPRESS)
    contexts, rewards = rounds(parser.parse_args().data)
    for lam, v in ((0.25, 1.0), (3.0, 1.5)):
        totals = []
        for seed in (42, *range(20)):
            agent = nr.LinThompson(dim=contexts.shape[1], n_arms=2, v=v, lam=lam, seed=seed)
            totals.append(agent.play(contexts, rewards).rewards.sum())
        print(
            f"LinThompson lam={lam}, v={v}: seed 42 {totals[0]:.0f} (published {PUBLISHED}, ratio "
            f"{totals[0] / PUBLISHED:.3f}); seeds 0 to 19: mean {np.mean(totals[1:]):.0f}, "
            f"standard error {np.std(totals[1:], ddof=1) / 20**0.5:.0f}"
        )


if __name__ == "__main__":
    main()
