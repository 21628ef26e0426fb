"""A race of LinUCB, LinThompson and Exp3 (T = 10,000, K = 10, d = 20, 20 seeds) beside the same simulation in coba.

    python -m benchmarks.race_bench [--peers-python PYTHON] [--peer-seeds N]

coba runs LinUCB and LinTS on the worlds of our race, drawn beforehand (its time excludes making them, ours does not);
it has no Exp3, so ours does more. With fewer peer seeds than 20 its time is scaled up. Processor seconds stand beside
the wall clock: they are what to believe on a busy machine. Then the same race with two workers beside one, in turns
with plain arithmetic on two threads, which shows what two workers could gain at most on this machine at this moment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from typing import Any

import armwise as aw
from benchmarks import common, peers

T, K, D, SEEDS = 10_000, 10, 20, 20


def race(seeds: int, workers: int = 1) -> tuple[float, float, Any]:
    """Seconds that the race takes, by the wall clock and of the processor, and its result."""
    world = aw.environments.Linear(n_arms=K, dim=D, noise=0.1)
    agents = {
        "LinUCB": aw.LinUCB(dim=D, alpha=1.0),
        "LinThompson": aw.LinThompson(dim=D, v=1.0),
        "Exp3": aw.Exp3.theoretical(K, T),
    }
    start, processor = time.perf_counter(), time.process_time()
    result = aw.race(agents, world, horizon=T, seeds=seeds, workers=workers, progress=False)
    return time.perf_counter() - start, time.process_time() - processor, result


def arithmetic(n: int) -> bytes:
    """Work that releases the interpreter lock."""
    return hashlib.pbkdf2_hmac("sha256", b"armwise", b"benchmark", n)


def ceiling() -> float:
    """How much faster eight pieces of arithmetic are on two threads than on one: the most that workers can gain."""
    from concurrent.futures import ThreadPoolExecutor

    seconds = []
    for workers in (1, 2):
        with ThreadPoolExecutor(workers) as pool:
            start = time.perf_counter()
            list(pool.map(arithmetic, [500_000] * 8))
            seconds.append(time.perf_counter() - start)
    return seconds[0] / seconds[1]


def coba(seeds: int) -> dict[str, float]:
    """Seconds of a coba experiment on the same worlds, and LinUCB's average reward there."""
    import coba as cb

    from armwise.racing.run.heat import world_seed

    environments = []
    for seed in range(seeds):
        blocks = list(aw.environments.Linear(n_arms=K, dim=D, noise=0.1).blocks(T, world_seed(seed)))
        actions = [[tuple(row) for row in X] for block in blocks for X in block.view("features").tolist()]
        rewards = [dict(zip(a, r)) for a, r in zip(actions, (row for b in blocks for row in b.rewards.tolist()))]
        environments.append(
            cb.Environments.from_lambda(
                T,
                lambda i: None,
                lambda i, context, actions=actions: actions[i],
                lambda i, context, action, rewards=rewards: rewards[i][action],
            )
        )
    learners = [cb.LinUCBLearner(alpha=1.0, features=["a"]), cb.LinTSLearner(v=1.0, features=["a"])]
    start, processor = time.perf_counter(), time.process_time()
    result = cb.Experiment(sum(environments[1:], environments[0]), learners).run(quiet=True)
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    frame = result.interactions.to_pandas()
    return {"seconds": seconds, "processor": processor, "reward": float(frame[frame.learner_id == 0].reward.mean())}


def main() -> None:
    parser = common.parser(__doc__, peers=True)
    parser.add_argument("--peer-seeds", type=int, default=2)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=5, help="of two workers beside one")
    args = parser.parse_args()
    if args.peer:
        print(json.dumps(coba(args.peer_seeds)))
        return
    race(1), race(1, workers=2), arithmetic(1)  # compiled, loaded
    seconds, processor, result = race(SEEDS)
    answer = json.loads(peers.run("benchmarks.race_bench", "--peer", "--peer-seeds", str(args.peer_seeds),
                                  python=args.peers_python).splitlines()[-1])  # fmt: skip
    theirs = answer["seconds"] * SEEDS / args.peer_seeds
    theirs_processor = answer["processor"] * SEEDS / args.peer_seeds
    ours = result.reward("LinUCB")[: args.peer_seeds, -1].mean() / T
    what = f"LinUCB and LinThompson, {SEEDS} seeds of {T:,} rounds"
    note = (f"armwise: and Exp3, the worlds included; coba: {args.peer_seeds} seeds, scaled up; processor seconds "
            f"{processor:.2f} and {theirs_processor:.0f}; LinUCB's average reward {ours:.4f} and "
            f"{answer['reward']:.4f}")  # fmt: skip
    common.report(what, common.duration(seconds), "coba", common.duration(theirs), theirs / seconds, note)
    ratios, most = [], []
    for _ in range(args.turns):
        most.append(ceiling())
        one, two = race(SEEDS)[0], race(SEEDS, workers=2)[0]
        ratios.append(one / two)
        print(f"one worker {one:.2f} s, two workers {two:.2f} s, ratio {one / two:.2f}; arithmetic {most[-1]:.2f}")
    note = f"plain arithmetic on two threads gains {statistics.median(most):.2f} here and now"
    common.report("the same race, two workers", common.duration(two), "itself, one worker", common.duration(one),
                  statistics.median(ratios), note)  # fmt: skip


if __name__ == "__main__":
    main()
