"""LinUCB's speed: one decision at a time beside the peers and plain NumPy; whole files beside VW's driver.

    python -m benchmarks.linucb [--data FOLDER] [--only decisions bulk] [--peers-python PYTHON]

Runs in the peers' environment (made on demand). The two sides take turns in short stretches; the ratio is that of
the medians, and the ratio of the fastest stretches stands beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from benchmarks import common, peers

STRETCH = 50  # decisions before the other side has its turn
Step = Callable[[int], None]


def data(K: int, d: int, n: int = 2000) -> tuple[list[np.ndarray], list[list[float]]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, K, d)) / np.sqrt(d)
    return list(X), (X @ rng.normal(size=d)).tolist()


def stretch(turn: int, n: int) -> range:
    start = max(turn, 0) * STRETCH % n
    return range(start, start + STRETCH)


def looped(agent: aw.Agent, X: Any, R: Any) -> Step:
    """Choose and learn, one decision after the other."""

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            choice = agent.choose(X[i])
            agent.learn(X[i], choice, R[i][choice.arm])

    return step


def decisions() -> None:
    """A shared parameter, features of each arm; then one parameter an arm."""
    K, d = 10, 20
    X, R = data(K, d)
    for peer, step, turns in (("PyMAB LinUCB", pymab(K, d, X, R), 40), ("VW SquareCB, text", vw_text(K, X, R), 10)):
        sides = common.in_turns(looped(aw.LinUCB(d, 1.0, 1.0, seed=1), X, R), step, turns)
        common.compare(f"choose + learn, features of {K} arms, d={d}", peer, sides, STRETCH)
    for K, d in [(10, 20), (20, 50), (50, 50), (100, 100)]:
        X, R = data(K, d, 500)
        sides = common.in_turns(looped(aw.LinUCB(d, 1.0, 1.0, seed=1), X, R), numpy_linucb(d, X, R), 40)
        common.compare(f"choose + learn, features of {K} arms, d={d}", "NumPy, by hand", sides, STRETCH)
    K, d = 10, 20
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(2000, d)) / np.sqrt(d)
    R = (shared @ rng.normal(size=(d, K))).tolist()
    for peer, make in (("MABWiser", mabwiser), ("contextualbandits", contextualbandits), ("river", river)):
        agent = aw.LinUCB(d, 1.0, 1.0, n_arms=K, seed=1)
        sides = common.in_turns(looped(agent, shared, R), make(K, shared, R), 8)
        common.compare(f"choose + learn, a model for each of {K} arms, d={d}", f"{peer} LinUCB", sides, STRETCH)


def pymab(K: int, d: int, X: list[np.ndarray], R: list[list[float]]) -> Step:
    from pymab.policies.contextual_bandits import LinUCBPolicy

    policy, rng = LinUCBPolicy(n_arms=K, n_features=d), np.random.default_rng(1)

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            arm = policy.select_action(rng=rng, context=X[i])
            policy.update(action=arm, reward=R[i][arm], context=X[i])

    return step


def vw_text(K: int, X: list[np.ndarray], R: list[list[float]]) -> Step:
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


def numpy_linucb(d: int, X: list[np.ndarray], R: list[list[float]]) -> Step:
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


def mabwiser(K: int, X: np.ndarray, R: list[list[float]]) -> Step:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(list(range(K)), LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0), seed=1)
    mab.fit([0], [R[0][0]], X[:1])

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            arm = mab.predict(X[i : i + 1])
            mab.partial_fit([arm], [R[i][arm]], X[i : i + 1])

    return step


def contextualbandits(K: int, X: np.ndarray, R: list[list[float]]) -> Step:
    from contextualbandits.online import LinUCB

    agent = LinUCB(nchoices=K, alpha=1.0, lambda_=1.0, fit_intercept=False, random_state=1, njobs=1)
    agent.partial_fit(X[:1], np.array([0]), np.array([R[0][0]]))

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            arm = int(agent.predict(X[i : i + 1])[0])
            agent.partial_fit(X[i : i + 1], np.array([arm]), np.array([R[i][arm]]))

    return step


def river(K: int, X: np.ndarray, R: list[list[float]]) -> Step:
    from river import bandit

    agent, arms = bandit.LinUCBDisjoint(alpha=1.0, seed=1), list(range(K))
    contexts = [dict(enumerate(x)) for x in X.tolist()]

    def step(turn: int) -> None:
        for i in stretch(turn, len(X)):
            arm = agent.pull(arms, context=contexts[i])
            agent.update(arm, contexts[i], R[i][arm])

    return step


def bulk(folder: Path | None) -> None:
    """Disjoint LinUCB over a data set beside VW's native driver on the same shuffle."""
    import vowpalwabbit
    from sklearn.datasets import load_digits

    sets = {"digits": load_digits(return_X_y=True)}
    if folder is not None:
        sets |= {name: common.labelled(common.find(folder, f"{name}.parquet")) for name in ("optdigits", "letter")}
    # alpha and lam: the best of a grid of 20 on these same rows, as VW's error is the best of its own grid.
    settings = {"digits": (0.1, 0.3), "optdigits": (0.1, 0.3), "letter": (0.3, 0.1)}
    best_of_vw = {"optdigits": 0.133, "letter": 0.659}  # known of VW 9.11.9, costs -1/0; not measured by this run
    for name, (X, y) in sets.items():
        X, y, R = common.as_rounds(X, y, seed=0)
        alpha, lam = settings[name]
        errors = []
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "data.vw"
            path.write_text("\n".join(common.vw_lines(X, y)) + "\n")

            def ours(
                turn: int, X: np.ndarray = X, R: np.ndarray = R, alpha: float = alpha, lam: float = lam,
                errors: list[float] = errors,
            ) -> None:  # fmt: skip
                played = aw.LinUCB(X.shape[1], alpha, lam, n_arms=R.shape[1], seed=1).play(X, R)
                errors.append(1.0 - float(played.rewards.mean()))

            def theirs(turn: int, path: Path = path, K: int = R.shape[1]) -> None:
                # The whole file is read while the workspace is made.
                vowpalwabbit.Workspace(f"--cbify {K} --cb_explore_adf --epsilon 0 --quiet -d {path}").finish()

            sides = common.in_turns(ours, theirs, 5)
        what = f"{name}: {len(y):,} rounds, {R.shape[1]} arms, d={X.shape[1]}, per decision"
        note = f"our progressive error {errors[-1]:.4f} (alpha={alpha}, lam={lam})"
        if name in best_of_vw:
            note += f", best known of VW {best_of_vw[name]}: {errors[-1] / best_of_vw[name] - 1:+.0%}"
        common.compare(what, "VW greedy, native driver", sides, len(y), note)


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, data="letter.parquet and optdigits.parquet", peers=True)
    parser.add_argument("--only", nargs="+", choices=["decisions", "bulk"], default=["decisions", "bulk"])
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not options.here:
        more = ["--data", str(options.data.resolve())] if options.data else []
        words = ["--here", "--only", *options.only, *more]
        print(peers.run("benchmarks.linucb", *words, python=options.peers_python), end="")
        return
    if "decisions" in options.only:
        decisions()
    if "bulk" in options.only:
        bulk(options.data)


if __name__ == "__main__":
    main()
