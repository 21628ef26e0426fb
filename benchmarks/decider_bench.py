"""Decider: microseconds per ``decide`` + ``reward`` in memory, decisions per second in a folder.

    python -m benchmarks.decider_bench

10 arms and 20 features, no two contexts alike, each made shortly before it is asked about, as an application does. In
processor time of the process (all its threads): the best and the median of many short blocks, since other processes of
a busy machine only ever add to it. A folder is measured in wall-clock time as well: it waits for the disk.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import armwise as aw

ARMS = [f"arm{i}" for i in range(10)]
TEXTS = ("north", "east", "south", "west")
BLOCK, BLOCKS = 20, 300

Request = tuple[dict[str, Any], list[Any]]


def numbers(rng: random.Random) -> Request:
    """Named arms; 20 numbers in the context."""
    return {f"f{i}": rng.random() for i in range(20)}, ARMS


def mixed(rng: random.Random) -> Request:
    """Named arms; 10 numbers and 10 texts in the context."""
    return {f"f{i}": rng.choice(TEXTS) if i % 2 else rng.random() for i in range(20)}, ARMS


def described(rng: random.Random) -> Request:
    """A catalogue: each arm is a dictionary, made anew, with 20 numbers of its own; one text in the context."""
    arms = [{"id": arm, **{f"a{i}": (7 * k + i) % 10 / 10 for i in range(20)}} for k, arm in enumerate(ARMS)]
    return {"city": f"{rng.choice(TEXTS)} {rng.random()}"}, arms


def changing(rng: random.Random) -> Request:
    """As ``described``, but no arm has the same numbers twice; one of four texts in the context."""
    arms = [{"id": arm, **{f"a{i}": rng.random() for i in range(20)}} for arm in ARMS]
    return {"city": rng.choice(TEXTS)}, arms


KINDS: dict[str, Callable[[random.Random], Request]] = {
    "named arms, 20 numbers in the context": numbers,
    "named arms, 10 numbers and 10 texts in the context": mixed,
    "20 numbers per arm, one text in the context": described,
    "20 numbers per arm, new in every decision, one text in the context": changing,
}


def in_memory(kind: Callable[[random.Random], Request]) -> tuple[float, float]:
    """Microseconds per decide + reward: of the best block, and the median."""
    shop, rng, times = aw.Decider(seed=1), random.Random(1), []
    for _ in range(BLOCKS):
        asked = [kind(rng) for _ in range(BLOCK)]
        started = time.process_time()
        for context, arms in asked:
            d = shop.decide(context, arms)
            shop.reward(d.id, 1.0 if d.arm == "arm3" else 0.0)
        times.append((time.process_time() - started) / BLOCK * 1e6)
    return min(times[10:]), statistics.median(times[10:])


def in_folder(batch: int = 100, batches: int = 5, blocks: int = 20) -> dict[str, tuple[float, float]]:
    """Decisions per second in batches, of the best block and the median: until they are answered (wall-clock time), and
    per second of processor time until all of them are learnt."""
    rng, walls, used = random.Random(1), [], []
    with tempfile.TemporaryDirectory() as folder, aw.Decider(folder, seed=1) as shop:
        for _ in range(blocks + 1):
            asked = [[dict(zip(("context", "arms"), mixed(rng))) for _ in range(batch)] for _ in range(batches)]
            _ = shop.agent  # waits until all is learnt
            wall, processor = time.perf_counter(), time.process_time()
            for requests in asked:
                shop.decide_many(requests)
            walls.append(batch * batches / (time.perf_counter() - wall))
            _ = shop.agent
            used.append(batch * batches / (time.process_time() - processor))
    return {
        "of wall-clock time": (max(walls[1:]), statistics.median(walls[1:])),
        "of processor time": (max(used[1:]), statistics.median(used[1:])),
    }


def main() -> None:
    for name, kind in KINDS.items():
        best, median = in_memory(kind)
        print(f"memory, 10 arms, {name}: {best:.1f} us per decide + reward (median {median:.1f})")
    for name, (rate, median) in in_folder().items():
        print(f"folder, batches of 100: {rate:,.0f} decisions per second {name} (median {median:,.0f})")


if __name__ == "__main__":
    main()
