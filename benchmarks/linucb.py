"""LinUCB's speed: one decision at a time against PyMAB, Vowpal Wabbit and NumPy; whole files against VW's driver.

    python -m benchmarks.linucb --data FOLDER      # FOLDER holds letter.parquet and optdigits.parquet

Runs in the peers' environment (made on demand). The two sides take turns in short stretches; the ratio is that of
the medians, and the ratio of the fastest stretches stands beside it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import noregret as nr

STRETCH = 50  # decisions before the other side has its turn


def compare(name: str, ours: Callable[[int], None], theirs: Callable[[int], None], turns: int = 40) -> None:
    """Print microseconds a decision of both sides, and their ratio."""
    ours(0), theirs(0)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns):
        for side, step in zip(times, (ours, theirs), strict=True):
            start = time.perf_counter()
            step(turn)
            side.append((time.perf_counter() - start) / STRETCH * 1e6)
    mine, other = (statistics.median(side) for side in times)
    fastest = min(times[1]) / min(times[0])
    print(
        f"{name:48s} noregret {mine:8.2f} us   peer {other:8.2f} us   "
        f"ratio {other / mine:6.1f} (fastest stretches {fastest:.1f})",
        flush=True,
    )


def data(K: int, d: int, n: int = 2000) -> tuple[list[np.ndarray], list[list[float]]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, K, d)) / np.sqrt(d)
    return list(X), (X @ rng.normal(size=d)).tolist()


def stretch(turn: int, n: int) -> range:
    start = turn * STRETCH % n
    return range(start, start + STRETCH)


def single_decisions() -> None:
    from pymab.policies.contextual_bandits import LinUCBPolicy

    K, d = 10, 20
    X, R = data(K, d)

    def make_ours(K: int, d: int, X: list[np.ndarray], R: list[list[float]]) -> Callable[[int], None]:
        agent = nr.LinUCB(d, 1.0, 1.0, seed=1)

        def ours(turn: int) -> None:
            for i in stretch(turn, len(X)):
                choice = agent.choose(X[i])
                agent.learn(X[i], choice, R[i][choice.arm])

        return ours

    policy, rng = LinUCBPolicy(n_arms=K, n_features=d), np.random.default_rng(1)

    def pymab(turn: int) -> None:
        for i in stretch(turn, len(X)):
            arm = policy.select_action(rng=rng, context=X[i])
            policy.update(action=arm, reward=R[i][arm], context=X[i])

    compare(f"choose + learn, K={K}, d={d}, PyMAB 2 LinUCB", make_ours(K, d, X, R), pymab)
    compare(f"choose + learn, K={K}, d={d}, VW SquareCB (text)", make_ours(K, d, X, R), vw_text(K, X, R), turns=10)
    for K, d in [(10, 20), (20, 50), (50, 50), (100, 100)]:
        X, R = data(K, d, 500)
        compare(f"choose + learn, K={K}, d={d}, plain NumPy", make_ours(K, d, X, R), numpy_linucb(d, X, R))


def vw_text(K: int, X: list[np.ndarray], R: list[list[float]]) -> Callable[[int], None]:
    import vowpalwabbit

    workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")

    def lines(features: np.ndarray, label: tuple[int, float, float] | None = None) -> list[str]:
        text = ["shared | c"]
        for arm, row in enumerate(features):
            head = f"0:{label[1]}:{label[2]} " if label and label[0] == arm else ""
            text.append(head + "|a " + " ".join(f"{i}:{x:.6g}" for i, x in enumerate(row)))
        return text

    rng = np.random.default_rng(2)

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            p = np.array(workspace.predict(lines(X[i])))
            arm = int(rng.choice(K, p=p / p.sum()))
            workspace.learn(lines(X[i], (arm, -R[i][arm], p[arm])))

    return step


def numpy_linucb(d: int, X: list[np.ndarray], R: list[list[float]]) -> Callable[[int], None]:
    """The same step in plain NumPy, with a Sherman-Morrison inverse: what a careful user would write."""
    inverse, b = np.eye(d), np.zeros(d)

    def step(turn: int) -> None:
        nonlocal inverse, b
        for i in stretch(turn, len(X)):
            features = X[i]
            scores = features @ (inverse @ b) + np.sqrt(((features @ inverse) * features).sum(axis=1))
            arm = int(np.argmax(scores))
            x = features[arm]
            v = inverse @ x
            inverse -= np.outer(v, v) / (1.0 + x @ v)
            b += R[i][arm] * x

    return step


def whole_files(folder: Path) -> None:
    """Disjoint LinUCB over a data set against VW's native driver on the same shuffle."""
    import pandas as pd
    import vowpalwabbit

    best_of_vw = {"optdigits": 0.133, "letter": 0.659}  # over exploration and learning rates, costs -1/0
    # Each side at its best over a small grid: ours over alpha in 0.05..0.3, lam in 0.1..3.
    for name, K, alpha, lam in (("optdigits", 10, 0.1, 0.3), ("letter", 26, 0.3, 0.1)):
        frame = pd.read_parquet(folder / f"{name}.parquet")
        y = pd.factorize(frame["label"], sort=True)[0]
        X = frame.drop(columns="label").to_numpy(float)
        X = X / np.abs(X).max(axis=0).clip(1e-12)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = np.ascontiguousarray(np.c_[X[order], np.ones(len(y))]), y[order]
        R = (np.arange(K) == y[:, None]).astype(float)
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "data.vw"
            with path.open("w") as file:
                for x, label in zip(X, y, strict=True):
                    file.write(f"{label + 1} | " + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(x[:-1]) if v) + "\n")
            ours, theirs, error = [], [], 1.0
            for repeat in range(6):
                agent = nr.LinUCB(X.shape[1], alpha, lam, n_arms=K, seed=1)
                start = time.perf_counter()
                played = agent.play(X, R)
                ours.append((time.perf_counter() - start) / len(y) * 1e6)
                error = 1.0 - float(played.rewards.mean())
                start = time.perf_counter()
                options = f"--cbify {K} --cb_explore_adf --epsilon 0 --quiet -d {path}"
                vowpalwabbit.Workspace(options).finish()  # reads the whole file while it is made
                theirs.append((time.perf_counter() - start) / len(y) * 1e6)
                if repeat == 0:
                    ours.clear(), theirs.clear()  # the first run compiles, and warms the file cache
        mine, other = statistics.median(ours), statistics.median(theirs)
        print(
            f"{name + ', disjoint LinUCB, play':48s} noregret {mine:8.2f} us   VW   {other:8.2f} us   "
            f"ratio {other / mine:6.1f} (fastest {min(theirs) / min(ours):.1f});  progressive error {error:.4f}, "
            f"VW's best {best_of_vw[name]}: {error / best_of_vw[name] - 1:+.0%}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with letter.parquet and optdigits.parquet")
    parser.add_argument("--peers-python", help="an interpreter that has the peers; default: make one")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not options.here:
        from benchmarks import peers

        more = ["--data", str(options.data.resolve())] if options.data else []
        print(peers.run("benchmarks.linucb", "--here", *more, python=options.peers_python), end="")
        return
    single_decisions()
    if options.data:
        whole_files(options.data)


if __name__ == "__main__":
    main(sys.argv[1:])
