"""The noisy bake-off: agents as they come where outcomes are clicks, amounts and revenue, beside the same on labels.

    python -m benchmarks.noisy_bakeoff --data FOLDER [--agents NAME ...] [--sets NAME ...] [--runs 30] [--rounds 20000]
                                       [--results FILE] [--output FILE] [--peers]

Sets with labels (at most 12 classes, 120 columns, their first 3,000 rows) are played for min(6,000, 2 n) rounds, with
rewards drawn as clicks: .9 for the right arm and .1 for the others, .6 and .4, .10 and .02; and as labels, 1 and 0.
The loss is the share of rounds in which another arm than the label's was played, over that of the best constant arm.
Where ``vw_clicks.json`` lies beside the sets it has Vowpal Wabbit's losses on the same draws, at five settings each;
the reference is the best of the five on each set. Auto is given the raw columns, the others those of
``benchmarks.defaults``, with a constant.

The worlds are those of ``benchmarks.noise_worlds`` that were kept for reports, beside textbook Thompson sampling with
the true noise (the geometric mean of regret over textbook's), and two of this file: a new arm at .6 after 10,000 rounds
of .5 and .55 (the share of runs in which it has most of the last tenth of 5,000 more), and rates of .3, .5 and .4 that
turn to .3, .5 and .7 in the middle (the best arm's share of the last fifth). Finished parts are kept in ``--results``.
``--peers`` (or ``--peers-python``) adds MABWiser, contextualbandits and bayesianbandits with their defaults, on the
draws of .9/.1 and .6/.4 of the sets of at most ``--peers-rows`` rows, beside Auto and LinUCB on the same; what takes
longer than ``--peers-seconds`` on one set has no loss. Writes benchmarks/NOISY.md: one table.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from armwise.core.capabilities.per_arm import has_arms
from benchmarks import bakeoff, bakeoff_page, bakeoff_peers, common, defaults, noise_worlds, peers

HERE = Path(__file__).parent
PAIRS = ((1.0, 0.0), (0.9, 0.1), (0.6, 0.4), (0.1, 0.02))
PEERS_PAIRS = PAIRS[1:3]
MAX_ROWS, MAX_ARMS, MAX_COLUMNS, MAX_ROUNDS = 3000, 12, 120, 6000
KINDS = {
    "K arms": ("clicks", "amounts"),
    "categories": ("3 devices",),
    "linear, logistic": ("linear", "logistic"),
    "revenue": ("revenue",),
}
Make = Callable[[int, int, int], aw.Agent]
AGENTS: dict[str, Make] = {
    "Auto": lambda d, K, seed: aw.Auto(d, K, seed=seed),
    "Auto, drift": lambda d, K, seed: aw.Auto(d, K, drift=True, seed=seed),
    "LinUCB": lambda d, K, seed: aw.LinUCB(d, n_arms=K, seed=seed),
    "LinUCB, discount .99": lambda d, K, seed: aw.LinUCB(d, n_arms=K, discount=0.99, seed=seed),
    "LinThompson": lambda d, K, seed: aw.LinThompson(d, n_arms=K, seed=seed),
    "RegCB": lambda d, K, seed: aw.RegCB(d, n_arms=K, seed=seed),
    "SquareCB": lambda d, K, seed: aw.SquareCB(d, n_arms=K, seed=seed),
    "RandUCB": lambda d, K, seed: aw.RandUCB(d, n_arms=K, seed=seed),
}


def clicks(path: Path, hi: float, lo: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The raw columns, the encoded ones, the label's arm and the rewards of every round; None for a set too large."""
    X, y = bakeoff.read(path)
    X, y = X[:MAX_ROWS], np.unique(y[:MAX_ROWS], return_inverse=True)[1]
    n, K = len(y), int(y.max()) + 1
    if K > MAX_ARMS or X.shape[1] > MAX_COLUMNS:
        return None
    rows = np.arange(min(MAX_ROUNDS, 2 * n)) % n
    rng = np.random.default_rng([n, int(hi * 100)])
    rewards = rng.random((len(rows), K)) < np.where(y[rows][:, None] == np.arange(K), hi, lo)
    return X[rows], defaults.encoded(X)[rows], y[rows], rewards.astype(float)


def loss_on_clicks(path: Path, name: str, hi: float, lo: float) -> dict[str, Any] | None:
    """An agent's share of wrong arms on a set, that of the best constant arm, and the rounds."""
    drawn = clicks(path, hi, lo)
    if drawn is None:
        return None
    raw, encoded, labels, rewards = drawn
    contexts = raw if name.startswith("Auto") else encoded
    arms = AGENTS[name](contexts.shape[1], rewards.shape[1], 1).play(contexts, rewards).arms
    constant = 1.0 - float(np.bincount(labels).max()) / len(labels)
    return {"loss": float((arms != labels).mean()), "constant": constant, "n": len(labels)}


def loss_of_peer(path: Path, name: str, hi: float, lo: float, python: str, seconds: float) -> dict[str, Any] | None:
    """As ``loss_on_clicks`` of a peer, which sees the encoded columns; None where it does not finish."""
    drawn = clicks(path, hi, lo)
    if drawn is None:
        return None
    _, encoded, labels, rewards = drawn
    found = bakeoff.ask_peer({"X": encoded, "y": labels, "R": rewards}, name, 1, python, seconds)
    constant = 1.0 - float(np.bincount(labels).max()) / len(labels)
    return {"loss": found["loss"], "constant": constant, "n": len(labels)} if "loss" in found else None


def new_arm(name: str, seed: int) -> float | None:
    """Whether an arm that comes after 10,000 rounds is found; None where no arm can come."""
    rng, agent = np.random.default_rng([seed, 4]), AGENTS[name](1, 2, seed)
    if not has_arms(agent):
        return None
    agent.play(np.ones((10_000, 1)), (rng.random((10_000, 2)) < [0.5, 0.55]).astype(float))
    agent.add_arm()
    arms = agent.play(np.ones((5_000, 1)), (rng.random((5_000, 3)) < [0.5, 0.55, 0.6]).astype(float)).arms
    return float((arms[-500:] == 2).mean() > 0.5)


def drift(name: str, seed: int) -> float:
    """The share of the best arm in the last fifth of a world that changed in the middle."""
    rates = np.repeat([[0.3, 0.5, 0.4], [0.3, 0.5, 0.7]], 5_000, axis=0)
    rewards = (np.random.default_rng([seed, 5]).random(rates.shape) < rates).astype(float)
    return float((AGENTS[name](1, 3, seed).play(np.ones((10_000, 1)), rewards).arms[-2_000:] == 2).mean())


class Known:
    """Finished parts, in a file of JSON lines if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.parts = path, dict[str, Any]()
        if path is not None and path.exists():
            self.parts = {row["part"]: row["result"] for row in map(json.loads, path.read_text().splitlines())}

    def get(self, part: str, work: Callable[[], Any]) -> Any:
        if part not in self.parts:
            self.parts[part] = work()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps({"part": part, "result": self.parts[part]}) + "\n")
        return self.parts[part]


def _mean(ratios: list[float]) -> str:
    return f"{math.exp(float(np.mean(np.log(ratios)))):.2f}" if ratios else ""


Loss = Callable[[str, Path, float, float], dict[str, Any] | None]


def on_sets(loss: Loss, sets: dict[str, Path], vw: dict[str, Any]) -> Iterator[str]:
    """An agent's cells of the sets: beside the best constant arm, and beside VW's best of five where it is known."""
    for hi, lo in PAIRS:
        rows = {one: loss(one, path, hi, lo) for one, path in sets.items()}
        yield _mean([bakeoff_page.ratio(r["loss"], r["constant"], r["n"]) for r in rows.values() if r])
        if not any(f"{hi}/{lo}" in each for each in vw.values()):
            continue
        both = [(row, vw[one][f"{hi}/{lo}"]["best"]) for one, row in rows.items() if one in vw and row]
        verdicts = [bakeoff_page.verdict(row["loss"], best, row["n"]) for row, best in both]
        mean = _mean([bakeoff_page.ratio(row["loss"], best, row["n"]) for row, best in both])
        yield f"{mean} ({verdicts.count(1)} W, {verdicts.count(-1)} L of {len(both)})" if both else ""


def beside_peers(
    sets: dict[str, Path], names: list[str], vw: dict[str, Any], known: Known, python: str, seconds: float
) -> Iterator[list[str]]:
    """The lines of the peers, and of Auto and LinUCB on the same sets."""

    def loss(name: str, one: str, path: Path, hi: float, lo: float) -> dict[str, Any] | None:
        if (hi, lo) not in PEERS_PAIRS:
            return None
        ours = partial(loss_on_clicks, path, name, hi, lo)
        theirs = partial(loss_of_peer, path, name, hi, lo, python, seconds)
        found: dict[str, Any] | None = known.get(f"{name} {one} {hi}/{lo}", ours if name in AGENTS else theirs)
        return found

    for name in ("Auto", "LinUCB", *names):
        yield [f"{name}, {len(sets)} small sets", *on_sets(partial(loss, name), sets, vw)]


def on_worlds(name: str, runs: int, rounds: int, known: Known) -> Iterator[str]:
    """An agent's cells of the worlds: geometric means of regret over textbook's, the largest share of stuck runs."""
    seeds, stuck = range(9000, 9000 + runs), 0.0

    def summary(world: noise_worlds.World, title: str, who: str) -> Any:
        textbook = who == noise_worlds.TEXTBOOK
        make = noise_worlds.AGENTS[who] if textbook else (lambda w, seed: AGENTS[who](w.d, w.K, seed))

        def work() -> Any:
            return noise_worlds.summary([noise_worlds.run(world, make, rounds, s, textbook) for s in seeds])

        return known.get(f"{who} {title} {runs} {rounds}", work)

    for begins in KINDS.values():
        ratios = []
        for title, world in noise_worlds.WORLDS.items():
            if not world.chosen and title.startswith(begins):
                regret, share, _ = summary(world, title, name)
                base, base_share, _ = summary(world, title, noise_worlds.TEXTBOOK)
                ratios.append(regret / base)
                stuck = max(stuck, share - base_share)
        yield _mean(ratios)
    yield f"{stuck:.2f}"
    found = [known.get(f"{name} new arm {seed}", partial(new_arm, name, seed)) for seed in range(runs)]
    yield "" if found[0] is None else f"{np.mean(found):.2f}"
    yield f"{np.mean([known.get(f'{name} drift {s}', partial(drift, name, s)) for s in range(runs)]):.2f}"


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, data="Parquet sets and vw_clicks.json", peers=True)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS), metavar="NAME")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--results", type=Path, help="a file of results (JSON lines), read first and added to")
    parser.add_argument("--output", type=Path, default=HERE / "NOISY.md", metavar="FILE")
    parser.add_argument(
        "--peers", action="store_true", help="MABWiser, contextualbandits and bayesianbandits too, on small sets"
    )
    parser.add_argument("--peers-rows", type=int, default=500, metavar="N")
    parser.add_argument("--peers-seconds", type=float, default=60.0, metavar="S")
    options = parser.parse_args(arguments)
    if options.data is None:
        parser.error("--data is needed")
    file, known = options.data / "vw_clicks.json", Known(options.results)
    vw = json.loads(file.read_text()) if file.exists() else {}
    try:
        sets = bakeoff.readable(options.data, options.sets)
    except ValueError as error:
        parser.error(f"--data: {error}")
    head = ["agent"]
    for hi, lo in PAIRS:
        head.append("labels / constant" if lo == 0.0 else f"{hi:g}/{lo:g} / constant")
        head += [f"{hi:g}/{lo:g} / VW best of 5"] * any(f"{hi}/{lo}" in each for each in vw.values())
    head += [*(f"{kind} / textbook" for kind in KINDS), "stuck beyond textbook", "new arm found", "drift: best arm"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]

    def add(cells: list[str]) -> None:
        lines.append("| " + " | ".join([*cells, *[""] * (len(head) - len(cells))]) + " |")
        print(lines[-1], flush=True)

    def loss(name: str, one: str, path: Path, hi: float, lo: float) -> dict[str, Any] | None:
        found: dict[str, Any] | None = known.get(f"{name} {one} {hi}/{lo}", partial(loss_on_clicks, path, name, hi, lo))
        return found

    for name in options.agents:
        worlds = on_worlds(name, options.runs, options.rounds, known)
        add([name, *on_sets(partial(loss, name), sets, vw), *worlds])
    missing = ""
    if options.peers or options.peers_python:
        small = {one: path for one, path in sets.items() if len(bakeoff.read(path)[1]) <= options.peers_rows}
        python = peers.interpreter(options.peers_python)
        here = peers.installed(python, bakeoff_peers.PACKAGES)
        missing = "".join(f" {name} was not installed here." for name in bakeoff_peers.PACKAGES if name not in here)
        for cells in beside_peers(small, bakeoff_peers.of(here), vw, known, python, options.peers_seconds):
            if any(cells[1:]):
                add(cells)
            else:
                print(f"{cells[0]}: no loss on any set", file=sys.stderr)
    about = (
        f"{len(sets)} sets were offered, one run each; worlds: {options.runs} runs of {options.rounds:,} rounds. "
        "Ratios are geometric means; below 1 is better than the reference. W and L as in the bake-off. Small sets have "
        f"at most {options.peers_rows} rows; a peer that is not done after {options.peers_seconds:g} s on one has no "
        f"loss there, and one that has none at all no line.{missing}"
    )
    written = "Written by `make bakeoff DATA=FOLDER`: who is good on labels and on noise."
    page = ["# The noisy bake-off", "", written, "",
            *lines, "", about, "", f"armwise {aw.__version__}, {common.machine()}.", ""]  # fmt: skip
    options.output.write_text("\n".join(page))


if __name__ == "__main__":
    main()
