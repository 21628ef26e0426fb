"""Decider: microseconds per ``decide`` + ``reward`` in memory, decisions per second in a folder.

    python -m benchmarks.decider_bench

10 arms and 20 features, in processor time of the process (all its threads); the best of several blocks, since other
processes of a busy machine only ever add to it. A folder is measured in wall-clock time as well: it waits for the disk.
"""

from __future__ import annotations

import random
import tempfile
import time
from typing import Any

import armwise as aw

ARMS = [f"arm{i}" for i in range(10)]
BLOCK, BLOCKS = 500, 8


def contexts(n: int, kind: str, seed: int = 1) -> list[dict[str, Any]]:
    """Contexts of 20 names, no two alike: numbers, or numbers and texts by turns."""
    rng = random.Random(seed)
    texts = ("north", "east", "south", "west")
    return [
        {f"f{i}": rng.choice(texts) if kind == "mixed" and i % 2 else rng.random() for i in range(20)} for _ in range(n)
    ]


def in_memory(kind: str) -> float:
    """Microseconds per decide + reward."""
    shop, asked = aw.Decider(seed=1), contexts(BLOCK * (BLOCKS + 1), kind)
    times = []
    for block in range(BLOCKS + 1):
        started = time.process_time()
        for context in asked[block * BLOCK : (block + 1) * BLOCK]:
            d = shop.decide(context, ARMS)
            shop.reward(d.id, 1.0 if d.arm == "arm3" else 0.0)
        times.append(time.process_time() - started)
    return min(times[1:]) / BLOCK * 1e6


def in_folder(batch: int = 100, batches: int = 60) -> tuple[float, float]:
    """Decisions per second of wall-clock time and of processor time, in batches; learnt by the end."""
    asked = contexts(batch * (batches + 5), "mixed")
    requests = [{"context": context, "arms": ARMS} for context in asked]
    with tempfile.TemporaryDirectory() as folder, aw.Decider(folder, seed=1) as shop:
        for k in range(5):
            shop.decide_many(requests[k * batch : (k + 1) * batch])
        wall, used = time.perf_counter(), time.process_time()
        for k in range(5, batches + 5):
            shop.decide_many(requests[k * batch : (k + 1) * batch])
        wall, used = time.perf_counter() - wall, time.process_time() - used
    return batch * batches / wall, batch * batches / used


def main() -> None:
    for kind in ("numbers", "mixed"):
        print(f"memory, 20 {kind}, 10 arms: {in_memory(kind):.1f} us per decide + reward")
    wall, used = in_folder()
    print(f"folder, batches of 100: {wall:,.0f} decisions/s, {used:,.0f} per second of processor time")


if __name__ == "__main__":
    main()
