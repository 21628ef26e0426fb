"""Doubly robust evaluation of a log in memory, beside contextualbandits, with the truth; every estimator beside obp.

    python -m benchmarks.ope_peers [--rows 100000] [--turns 3] [--peers-python PYTHON]
    python -m benchmarks.ope_peers --obp PYTHON

``--obp`` names an interpreter that has obp 0.5.7 (Python 3.8 to 3.10; torch, which these estimators do not use, may be
missing): its numbers for one log must be armwise's to 1e-12.

Each side as its documentation has it: contextualbandits fits a logistic regression for each arm on the rows it then
evaluates; armwise a ridge for each arm, cross-fitted in three folds, and gives an interval as well. The log is drawn
from a softmax policy over 10 arms and 20 features with logistic rewards, so that the value of the target is known.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from benchmarks import common, peers

ARMS, FEATURES = 10, 20
_OBP = """
import json, sys, types
class Missing(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})
try:
    import torch
except ImportError:
    for name in ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data"):
        sys.modules[name] = Missing(name)
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], sys.modules[name])
import numpy as np
from obp import ope
d = np.load(sys.argv[1])
rows = dict(reward=d["reward"], action=d["action"], action_dist=d["target"][:, :, None], pscore=d["pscore"],
            position=np.zeros(len(d["action"]), int))
model = dict(estimated_rewards_by_reg_model=d["q"][:, :, None])
found = {
    "ips": ope.InverseProbabilityWeighting().estimate_policy_value(**rows),
    "ips, capped": ope.InverseProbabilityWeighting(lambda_=2.0).estimate_policy_value(**rows),
    "snips": ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**rows),
    "dm": ope.DirectMethod().estimate_policy_value(**rows, **model),
    "dr": ope.DoublyRobust().estimate_policy_value(**rows, **model),
    "sndr": ope.SelfNormalizedDoublyRobust().estimate_policy_value(**rows, **model),
    "switch-dr": ope.SwitchDoublyRobust(lambda_=3.0).estimate_policy_value(**rows, **model),
    "dros": ope.DoublyRobustWithShrinkage(lambda_=10.0).estimate_policy_value(**rows, **model),
}
print(json.dumps({name: float(value) for name, value in found.items()}))
"""


def beside_obp(python: str) -> None:
    """Every estimator on one synthetic log with a softmax logger, a softmax target and a bad reward model."""
    rng, n, K = np.random.default_rng(15), 5000, 4
    x = rng.normal(size=(n, 3))
    p, target = (np.exp(scale * x @ rng.normal(size=(3, K))) for scale in (0.8, 1.0))
    p, target = p / p.sum(axis=1, keepdims=True), target / target.sum(axis=1, keepdims=True)
    action = np.minimum((p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), K - 1)
    reward, q = (rng.random(n) < 0.2 + 0.15 * action).astype(float), 0.2 + 0.6 * rng.random((n, K))
    pscore = p[np.arange(n), action]
    log = aw.offline.Log(arms=action, rewards=reward, probabilities=pscore, n_arms=K)
    estimators: list[Any] = [
        "ips",
        "snips",
        "dm",
        "dr",
        "sndr",
        aw.offline.SwitchDR(tau=3.0),
        aw.offline.DRos(lam=10.0),
    ]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", aw.offline.WeakLogWarning)
        found: Any = aw.offline.evaluate(log, target, estimators, q)
        ours = {name: e.value for name, e in found.items()}
        ours["ips, capped"] = aw.offline.evaluate(log, target, "ips", cap=2.0)["ips"].value
        path = Path(folder) / "log.npz"
        np.savez(path, reward=reward, action=action, pscore=pscore, target=target, q=q)
        words = [python, "-W", "ignore", "-c", _OBP, str(path)]
        theirs = json.loads(subprocess.run(words, text=True, stdout=subprocess.PIPE, check=True).stdout)
    print(f"{'estimator':14s}{'armwise':>20s}{'obp':>20s}{'difference':>12s}")
    for name, value in theirs.items():
        print(f"{name:14s}{ours[name]:20.16f}{value:20.16f}{abs(ours[name] - value):12.1e}")
    if max(abs(ours[name] - value) for name, value in theirs.items()) > 1e-12:
        raise SystemExit("the estimators differ")


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, peers=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--obp", metavar="PYTHON", help="an interpreter with obp: compare every estimator with it")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.obp:
        beside_obp(options.obp)
        return
    if not options.here:
        words = ["--here", "--rows", str(options.rows), "--turns", str(options.turns)]
        print(peers.run("benchmarks.ope_peers", *words, python=options.peers_python), end="")
        return
    from contextualbandits.evaluation import evaluateDoublyRobust
    from sklearn.linear_model import LogisticRegression

    rng, n = np.random.default_rng(0), options.rows
    X = rng.normal(size=(n, FEATURES))
    worth = 1.0 / (1.0 + np.exp(-X @ rng.normal(size=(FEATURES, ARMS)) / 4))
    p = np.exp(X @ rng.normal(size=(FEATURES, ARMS)) / 8)
    p /= p.sum(axis=1, keepdims=True)
    every = np.arange(n)
    arms = np.minimum((p.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1), ARMS - 1)
    rewards = (rng.random(n) < worth[every, arms]).astype(float)
    target = np.argmax(X @ rng.normal(size=(FEATURES, ARMS)), axis=1)
    truth, logged = worth[every, target].mean(), p[every, arms]
    values: dict[str, float] = {}

    def ours(turn: int) -> None:
        log = aw.offline.Log(contexts=X, arms=arms, rewards=rewards, probabilities=logged, n_arms=ARMS)
        values["ours"] = aw.offline.evaluate(log, target, "dr")["dr"].value

    def theirs(turn: int) -> None:
        model = LogisticRegression()
        values["theirs"] = float(evaluateDoublyRobust(target, X, arms, rewards, logged, model, nchoices=ARMS))

    sides = common.in_turns(ours, theirs, options.turns)
    off = {side: abs(value - truth) for side, value in values.items()}
    note = f"off the truth {truth:.4f} by {off['ours']:.4f} and {off['theirs']:.4f}; only armwise has an interval"
    common.compare(f"DR of {n:,} rows in memory, {ARMS} arms, {FEATURES} features", "contextualbandits", sides, 1, note)


if __name__ == "__main__":
    main()
