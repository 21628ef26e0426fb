"""A log of a million rows in one pass, and in eight parts that are merged: how far apart, and how long.

python -m benchmarks.merged_log [rows] [parts]
"""

from __future__ import annotations

import sys
import time

import numpy as np

import armwise as aw

K, D = 10, 20


def main(rows: int = 1_000_000, parts: int = 8) -> None:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=D) / np.sqrt(D)
    contexts = rng.normal(size=(rows, D))
    arms = rng.integers(0, K, rows)
    rewards = np.clip(0.5 + 0.2 * contexts @ theta * (arms + 1) / K + rng.normal(0, 0.1, rows), 0.0, 1.0)
    choices = aw.Choices(arms, np.full(rows, 1 / K))
    probe = rng.normal(size=D)
    print(f"{rows:,} rows, {K} arms, {D} shared features, {parts} parts; processor time of one process")
    for make in (
        lambda: aw.LinUCB(n_arms=K, lam=1.0),
        lambda: aw.LinUCB(n_arms=K),
        lambda: aw.LinThompson(n_arms=K, lam=1.0),
        lambda: aw.SquareCB(n_arms=K),
    ):
        whole = make()
        began = time.process_time()
        whole.learn_many(contexts, choices, rewards)
        one_pass = time.process_time() - began
        pieces = []
        for now in np.array_split(np.arange(rows), parts):
            part, cut = make(), slice(now[0], now[-1] + 1)
            part.learn_many(contexts[cut], choices[cut], rewards[cut])
            pieces.append(part)
        began = time.process_time()
        merged = pieces[0]
        for part in pieces[1:]:
            merged.merge(part)
        joining = time.process_time() - began
        off = [
            float(np.max(np.abs(a - b) / np.abs(b)))
            for a, b in zip(merged.estimate(probe), whole.estimate(probe))
            if a is not None and b is not None
        ]
        print(
            f"  {whole!r:.60}: means {off[0]:.1e}, widths {off[1]:.1e} apart (relative); one pass "
            f"{1e6 * one_pass / rows:.2f} us per row, merging {1e3 * joining:.1f} ms"
        )
    looped, n = aw.LinUCB(n_arms=K, lam=1.0), min(rows, 50_000)
    began = time.process_time()
    for t in range(n):
        looped.learn(contexts[t], choices[t], float(rewards[t]))
    print(f"  learn, one by one: {1e6 * (time.process_time() - began) / n:.2f} us per row")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
