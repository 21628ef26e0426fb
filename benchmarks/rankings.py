"""Rankers beside published numbers, beside other programs, and on the clock.

    python -m benchmarks.rankings kveton [--runs 20]            Kveton et al. 2015, Table 1
    python -m benchmarks.rankings positions --peer FOLDER       beside gaudel/ranking_bandits
    python -m benchmarks.rankings vw [--data FOLDER]            clicks per list beside VW's --ccb_explore_adf
    python -m benchmarks.rankings time                          a list of 10 out of 1,000 items with 20 features
    python -m benchmarks.rankings http                          the same over HTTP, beside a single decision
    python -m benchmarks.rankings exact                         IPS of a frozen ranker's log

FOLDER of ``positions`` is a clone of github.com/gaudel/ranking_bandits (MIT), whose code and parameters are read there
and not kept here; that of ``vw`` has MovieLens's ratings.parquet.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.agents.ranking.cascade import kl_index, ucb1_index
from armwise.environments import Lists, RatedLists
from armwise.racing.run.heat import world_seed
from armwise.service.server.config import Config
from benchmarks import common

TABLE = {"CascadeUCB1": {2: 1290, 4: 987, 8: 575}, "CascadeKLUCB": {2: 358, 4: 275, 8: 149}}  # as printed


def kveton(runs: int, rounds: int) -> None:
    """L = 16, attractions .2 of the best K and .05 of the others; all runs abreast, with the indices of the rankers."""
    for K in (2, 4, 8):
        for name, index in (("CascadeUCB1", ucb1_index), ("CascadeKLUCB", kl_index)):
            found = _abreast(index, np.array([0.2] * K + [0.05] * (16 - K)), K, rounds, runs, seed=K)
            printed, error = TABLE[name][K], found.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
            common.report(f"{name}, K = {K}, regret of {runs} runs", f"{found.mean():.0f} +- {error:.0f}",
                          "the paper", str(printed), printed / found.mean())  # fmt: skip


def _abreast(index: Any, attraction: np.ndarray, K: int, rounds: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run: the same rounds as a race plays, of all runs in one array."""
    rng, L = np.random.default_rng(seed), len(attraction)
    clicks, seen, regret = np.zeros((runs, L)), np.zeros((runs, L)), np.zeros(runs)
    best, row, slots = 1.0 - np.prod(1.0 - np.sort(attraction)[-K:]), np.arange(runs)[:, None], np.arange(K)
    for t in range(1, rounds + 1):
        scores = np.minimum(index(clicks, seen, t), 1e6) + 1e-12 * rng.random((runs, L))  # ties at random
        arms = np.argsort(-scores, axis=1)[:, :K]
        would = rng.random((runs, K)) < attraction[arms]
        first = np.where(would.any(axis=1), would.argmax(axis=1), K)[:, None]
        seen[row, arms] += slots <= first
        clicks[row, arms] += slots == first
        regret += best - (1.0 - (1.0 - attraction[arms]).prod(axis=1))
    return regret


class Theirs:
    """A player of ranking_bandits with our verbs."""

    def __init__(self, player: Any) -> None:
        self.player = player

    def play(self, theta: np.ndarray, kappa: np.ndarray, T: int, seed: int) -> float:
        import random

        random.seed(seed)
        np.random.seed(seed)
        regret, best = 0.0, float(np.sort(theta)[::-1][: len(kappa)] @ np.sort(kappa)[::-1])
        rng = np.random.default_rng(seed)
        for _ in range(T):
            arms = np.asarray(self.player.choose_next_arm()[0])
            clicks = (rng.random(len(kappa)) < kappa * theta[arms]).astype(int)
            self.player.update(arms, clicks)
            regret += best - float(theta[arms] @ kappa)
        return regret


QUERIES = {"KDD": 7, "Yandex": 5}  # of each file, the query whose arms differ most among its first ten


def positions(peer: Path, runs: int, rounds: int, only: str) -> None:
    """One parameter set of KDD and one of Yandex: the ten best arms, shuffled, and the five most examined slots."""
    for name, kind in (("int", int), ("float", float), ("bool", bool)):
        if name not in np.__dict__:
            setattr(np, name, kind)  # the clone is written for NumPy of 2020
    sys.path.insert(0, str(peer))
    for name, query in QUERIES.items():
        found = list(json.loads((peer / "data" / f"param_{name}.txt").read_text()).values())[query]
        theta = np.random.default_rng(1).permutation(np.sort(np.array(found["thetas"]))[::-1][:10])
        kappa = np.sort(np.array(found["kappas"]))[::-1][:5]
        L, k = len(theta), len(kappa)
        world = Lists(L, k, "position-based", attraction=theta, weights=kappa)
        for what, ours, theirs in _players(L, kappa, rounds):
            if only not in what:
                continue
            mine = None if ours is None else aw.race({"it": ours()}, world, horizon=rounds, seeds=runs).regret("it")
            mine = None if mine is None else mine[:, -1]
            try:
                other = None if theirs is None else np.array(
                    [Theirs(theirs()).play(theta, kappa, rounds, seed) for seed in range(runs)]
                )  # fmt: skip
            except Exception as error:
                print(f"{what}: the clone failed with {error!r:.200}", flush=True)
                other = None
            ratio = None if mine is None or other is None else float(other.mean() / mine.mean())
            common.report(f"{name} ({L} arms, {k} slots), {what}", _mean(mine), "ranking_bandits", _mean(other), ratio)


Pair = tuple[str, Callable[[], aw.Ranker] | None, Callable[[], Any] | None]


def _players(L: int, kappa: np.ndarray, T: int) -> list[Pair]:
    """What each is called, ours, and theirs."""
    from bandits_to_rank.opponents import grab, pb_mhb, pbm_pie, pbm_ts, pbm_ucb, top_rank  # type: ignore

    k = len(kappa)
    return [
        ("PBM-UCB, kappa known", lambda: aw.PositionUCB(L, kappa=kappa),
         lambda: pbm_ucb.PBM_UCB_semi_oracle(L, 0.0, k, kappa)),
        ("Thompson, kappa known", lambda: aw.PositionThompson(L, kappa=kappa),
         lambda: pbm_ts.PBM_TS_semi_oracle(L, k, kappa)),
        ("Thompson, kappa learnt (PB-MHB)", lambda: aw.PositionThompson(L, k),
         lambda: pb_mhb.PB_MHB(L, k, proposal_method=pb_mhb.propos_trunk_GRW(c=1000, vari_sigma=True), step=1)),
        ("PBM-UCB, kappa learnt", lambda: aw.PositionUCB(L, k), None),
        ("TopRank", lambda: aw.TopRank(L, T), lambda: top_rank.TOP_RANK(L, T, discount_factor=kappa)),
        ("GRAB", None, lambda: grab.GRAB(L, k, T, gamma=k - 1)),
        ("PBM-PIE, kappa known", None, lambda: pbm_pie.PBM_PIE_semi_oracle(L, 0.0, T, k, kappa)),
    ]  # fmt: skip


def _mean(values: Any) -> str:
    if values is None:
        return "-"
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.1f} +- {error:.1f}"


GRID = [
    f"{explore} -l {rate}"
    for explore in (
        "--epsilon 0.05",
        "--epsilon 0.01",
        *(f"--squarecb --gamma_scale {gamma}" for gamma in (100, 1000, 10000)),
    )
    for rate in (0.1, 0.5)
]


def vw_play(block: Any, setting: str, examined_only: bool) -> tuple[float, float]:
    """Clicks per list and seconds per list of VW, through its Python interface."""
    from vowpalwabbit import pyvw

    vw = pyvw.Workspace(f"--ccb_explore_adf {setting} --quiet --random_seed 1")
    clicks = seconds = 0.0
    k = len(block.weights)
    for t in range(len(block)):
        X = block.view("features")[t]
        start = time.perf_counter()
        lines = ["ccb shared |s c"]
        lines += ["ccb action |a " + " ".join(f"{i}:{x:.5g}" for i, x in enumerate(row)) for row in X.tolist()]
        answered = vw.predict([*lines, *(["ccb slot |p p" + str(slot) for slot in range(k)])])
        seconds += time.perf_counter() - start
        arms = np.array([slot[0][0] for slot in answered])
        clicked, _ = block.click(t, arms)
        clicks += clicked.sum()
        depth = int(np.flatnonzero(clicked)[0]) + 1 if examined_only and clicked.any() else k
        start = time.perf_counter()
        labels = []
        for slot in range(k):
            known = f" {arms[slot]}:{-clicked[slot]:g}:{answered[slot][0][1]:.6f}" if slot < depth else ""
            labels.append(f"ccb slot{known} |p p{slot}")
        vw.learn([*lines, *labels])
        seconds += time.perf_counter() - start
    vw.finish()
    return clicks / len(block), seconds / len(block)


def vw(data: Path | None, rounds: int, seeds: int, only: str) -> None:
    """VW's setting is the best of its grid on seeds 100 and 101 of each world; reported are seeds 0 to 9.

    Ours is the agent that docs/rankings recommends, chosen on other worlds, and the feedback that the users have.
    """
    worlds: dict[str, Any] = {
        "cascade": Lists(50, 5, dim=10),
        "several clicks": Lists(50, 5, "several clicks", dim=10),
        "position-based": Lists(50, 5, "position-based", dim=10),
    }
    if data is not None:
        [file] = list(data.rglob("ratings.parquet"))[:1]
        worlds["MovieLens small, cascade"] = RatedLists.from_file(file)
    ratios = []
    for name, world in worlds.items():
        if only not in name:
            continue
        modes = (False, True) if world.users == "cascade" else (False,)

        def theirs(seed: int, setting: str, mode: bool, world: Any = world) -> tuple[float, float]:
            return vw_play(_whole(world, rounds, seed), setting, mode)

        best = max(
            ((setting, mode) for setting in GRID for mode in modes),
            key=lambda each: float(np.mean([theirs(seed, *each)[0] for seed in (100, 101)])),
        )
        d = world.width("features")
        other, mine, slow, fast = [], [], [], []
        for seed in range(seeds):
            clicks, took = theirs(seed, *best)
            other.append(clicks)
            slow.append(took)
            block = _whole(world, rounds, seed)
            ranker = aw.SlotBySlot(aw.RegCB(d), world.users, seed=seed)
            start = time.perf_counter()
            played = block.play(ranker)
            fast.append((time.perf_counter() - start) / len(block))
            mine.append(played.clicks.sum() / len(block))
        ratios.append(np.mean(mine) / np.mean(other))
        gap = np.array(mine) - other
        t = gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
        common.report(f"{name}: clicks per list, {rounds} lists, {seeds} seeds", f"{np.mean(mine):.4f}",
                      "VW " + best[0] + (", examined slots" if best[1] else ""), f"{np.mean(other):.4f}",
                      float(ratios[-1]), f"paired t = {t:.1f}")  # fmt: skip
        common.report(f"{name}: time per list, 50 items", common.duration(float(np.median(fast))), "VW, text",
                      common.duration(float(np.median(slow))), float(np.median(slow) / np.median(fast)))  # fmt: skip
    print(f"clicks, geometric mean over the worlds: {np.exp(np.mean(np.log(ratios))):.3f}")


def _whole(world: Any, rounds: int, seed: int) -> Any:
    """All rounds of a seed as one block."""
    parts: list[Any] = list(world.blocks(rounds, world_seed(seed)))
    first = parts[0]
    views = {"features": np.concatenate([part.view("features") for part in parts])}
    columns = [np.concatenate([getattr(p, n) for p in parts]) for n in ("attraction", "attracted", "luck")]
    return aw.environments.ListBlock(views, *columns, first.users, first.weights)


def clock() -> None:
    """1,000 items with 20 features, k = 10: the median of 300 lists, after 200 were learnt."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (1000, 20)) / 4
    for name, ranker in {
        "SlotBySlot(LinUCB)": aw.SlotBySlot(aw.LinUCB(20), seed=1),
        "SlotBySlot(RegCB)": aw.SlotBySlot(aw.RegCB(20), seed=1),
        "SlotBySlot(SquareCB)": aw.SlotBySlot(aw.SquareCB(20), seed=1),
        "CascadeLinUCB": aw.CascadeLinUCB(20, seed=1),
        "C2UCB": aw.C2UCB(20, seed=1),
        "C2UCB, diverse": aw.C2UCB(20, diversity=0.1, seed=1),
    }.items():
        times = []
        for t in range(500):
            start = time.perf_counter()
            ranking = ranker.rank(X, 10)
            times.append(time.perf_counter() - start)
            if t < 200:
                ranker.learn(X, ranking, (rng.random(10) < 0.2).astype(float))
        taken = float(np.median(times[200:]))
        common.report(f"{name}: 10 of 1,000 items, 20 features", common.duration(taken), "limit", "1 ms", 1e-3 / taken)


def http(turns: int = 40) -> None:
    """POST /v1/rankings: lists of 10 of 1,000 items with 20 features, and decisions, in turns; all learn."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        words = ["-m", "armwise", "serve", "--listen", f"127.0.0.1:{port}", "--storage", folder]
        with subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                with aw.Client(f"http://127.0.0.1:{port}", retries=60) as client:
                    size = _in_turns(client, rng, turns, lambda: _processor_seconds(process.pid))
            finally:
                process.terminate()
    print(f"a body of {size / 1024:.0f} KiB; the service takes {Config().max_body / 1024:.0f} KiB")


def _processor_seconds(pid: int) -> float:
    """The processor time of all threads of a process so far (Linux)."""
    return float(sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9)


def _in_turns(client: Any, rng: np.random.Generator, turns: int, processor: Callable[[], float]) -> int:
    def items() -> list[dict[str, Any]]:
        rows = rng.uniform(0, 1, (1000, 20)).round(3).tolist()
        return [{"id": f"item {i}", "features": {f"f{j}": x for j, x in enumerate(row)}} for i, row in enumerate(rows)]

    known = items()
    stored = json.loads(client.send("POST", "/v1/catalogues", json.dumps({"arms": known}).encode()))["catalogue"]
    kinds: dict[str, Callable[[], dict[str, Any]]] = {
        "a list of new arms": lambda: {"arms": items(), "k": 10},
        "a list of arms that came before": lambda: {"arms": known, "k": 10},
        "a list of a catalogue": lambda: {"catalogue": stored, "k": 10},
        "a decision between new arms": lambda: {"arms": items()},
        "a decision of a catalogue": lambda: {"catalogue": stored},
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    size = 0
    for turn in range(turns + 5):
        for name, asked in kinds.items():
            sent = json.dumps({"context": {"hour": turn % 24}} | asked()).encode()
            path = "/v1/rankings" if "list" in name else "/v1/decisions"
            size, began, start = max(size, len(sent)), processor(), time.perf_counter()
            answer = json.loads(client.send("POST", path, sent))
            took = time.perf_counter() - start
            if turn >= 5:
                times[name].append((took, processor() - began))
            client.reward(answer["id"], {answer["slots"][turn % 10]["arm"]: 1.0} if "slots" in answer else 1.0)
            time.sleep(0.02)  # so that the lessons are learnt, which are not of the next request
    for name, found in times.items():
        wall, cpu = np.median(found, axis=0)
        common.report(f"HTTP, {name}, 1,000 items of 20 features, median of {turns}", common.duration(float(wall)),
                      "of the processor", common.duration(float(cpu)), None,
                      f"p90 {common.duration(float(np.quantile([each for each, _ in found], 0.9)))}")  # fmt: skip
    return size


def exact(logs: int = 400, rounds: int = 200) -> None:
    """A frozen SlotBySlot(SquareCB) logs; IPS of a fixed order, over many logs, beside that order's true value."""
    world = Lists(6, 2, "position-based", attraction=[0.5, 0.4, 0.3, 0.2, 0.1, 0.1], weights=[1.0, 0.5])
    X = np.eye(6)
    ranker = aw.SlotBySlot(aw.SquareCB(6, gamma=20.0), seed=1)
    block = next(world.blocks(100, seed=1))
    for t in range(100):
        ranking = ranker.rank(X, 2)
        ranker.learn(X, ranking, block.click(t, np.array(ranking.arms))[0])
    wanted, values = (2, 0), []
    truth = float(block.values(np.array([wanted]))[0])
    for log in range(logs):
        block = next(world.blocks(rounds, seed=10 + log))
        total = 0.0
        for t in range(rounds):
            ranking = ranker.rank(X, 2)
            if ranking.arms == wanted:
                assert ranking.probability is not None
                total += block.click(t, np.array(wanted))[1] / ranking.probability
        values.append(total / rounds)
    error = np.std(values, ddof=1) / np.sqrt(logs)
    z = (np.mean(values) - truth) / error
    common.report(f"IPS of a fixed order from {logs} logs", f"{np.mean(values):.4f} +- {error:.4f}", "truth",
                  f"{truth:.4f}", None, f"z = {z:.2f}")  # fmt: skip


if __name__ == "__main__":
    arguments = common.parser(__doc__, data="ratings.parquet of MovieLens")
    arguments.add_argument("part", choices=["kveton", "positions", "vw", "time", "http", "exact"])
    arguments.add_argument("--peer", type=Path, help="a clone of gaudel/ranking_bandits")
    arguments.add_argument("--runs", type=int, default=0, help="runs of each agent")
    arguments.add_argument("--rounds", type=int, default=0)
    arguments.add_argument("--only", default="", help="of positions and vw: a part of the names to run")
    given: argparse.Namespace = arguments.parse_args()
    if given.part == "kveton":
        kveton(given.runs or 20, given.rounds or 100_000)
    elif given.part == "positions":
        positions(given.peer, given.runs or 5, given.rounds or 100_000, given.only)
    elif given.part == "vw":
        vw(given.data, given.rounds or 1000, given.runs or 10, given.only)
    elif given.part == "time":
        clock()
    elif given.part == "http":
        http()
    else:
        exact()
