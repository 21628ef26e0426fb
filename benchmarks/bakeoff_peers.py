"""One peer on one set of the bake-off, in the peers' interpreter: prints {"loss": ..., "us": ...}.

    python benchmarks/bakeoff_peers.py FILE.npz NAME SEED      # X: the columns, scaled; y: labels; R: rewards, drawn

Without R a reward is whether the label was named; the loss counts labels either way. Each with its own defaults, asked
for one arm and taught one reward at a time. MABWiser must be fitted once before it can predict, and so begins with one
reward of a random arm; contextualbandits is taught by ``partial_fit``; bayesianbandits has the regressor of its
introduction, a normal one of unknown noise for each arm.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

PACKAGES = {"MABWiser": "mabwiser", "contextualbandits": "contextualbandits", "bayesianbandits": "bayesianbandits"}
NAMES = (
    *("MABWiser LinUCB", "MABWiser LinTS", "contextualbandits LinUCB", "contextualbandits LinTS"),
    *("bayesianbandits UpperConfidenceBound", "bayesianbandits ThompsonSampling"),
)


def of(packages: list[str]) -> list[str]:
    """Those of ``NAMES`` that belong to these packages."""
    return [name for name in NAMES if name.split()[0] in packages]


def mabwiser(name: str, seed: int, X: Any, y: Any, R: Any) -> int:
    from mabwiser.mab import MAB, LearningPolicy

    policy = LearningPolicy.LinUCB() if name == "LinUCB" else LearningPolicy.LinTS()
    K = R.shape[1]
    agent = MAB(arms=list(range(K)), learning_policy=policy, seed=seed)
    arm, right = int(np.random.default_rng(seed).integers(K)), 0
    for t, (x, label) in enumerate(zip(X, y)):
        if t:
            arm = agent.predict(x[None])
        right += int(arm == label)
        (agent.partial_fit if t else agent.fit)([arm], [int(R[t, arm])], contexts=x[None])
    return right


def contextualbandits(name: str, seed: int, X: Any, y: Any, R: Any) -> int:
    from contextualbandits import online

    agent = getattr(online, name)(nchoices=R.shape[1], random_state=seed)
    right = 0
    for t, (x, label) in enumerate(zip(X, y)):
        arm = int(np.ravel(agent.predict(x[None]))[0])
        right += int(arm == label)
        agent.partial_fit(x[None], np.array([arm]), R[t, [arm]])
    return right


def bayesianbandits(name: str, seed: int, X: Any, y: Any, R: Any) -> int:
    import bayesianbandits as peer

    arms = [peer.Arm(a, learner=peer.NormalInverseGammaRegressor()) for a in range(R.shape[1])]
    agent = peer.ContextualAgent(arms, getattr(peer, name)(), random_seed=seed)
    right = 0
    for t, (x, label) in enumerate(zip(X, y)):
        (arm,) = agent.pull(x[None])
        right += int(arm == label)
        agent.update(x[None], R[t, [arm]])
    return right


def main() -> None:
    path, peer, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays["y"]
        R = arrays["R"] if "R" in arrays else np.eye(int(y.max()) + 1)[y]
    package, _, name = peer.partition(" ")
    start = time.process_time()
    play = {"MABWiser": mabwiser, "contextualbandits": contextualbandits, "bayesianbandits": bayesianbandits}[package]
    right = play(name, seed, X, y, R)
    print(json.dumps({"loss": 1.0 - right / len(y), "us": (time.process_time() - start) / len(y) * 1e6}))


if __name__ == "__main__":
    main()
