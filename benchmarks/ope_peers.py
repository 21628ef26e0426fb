"""Doubly robust evaluation of a log in memory, beside contextualbandits, with the truth.

    python -m benchmarks.ope_peers [--rows 100000] [--turns 3] [--peers-python PYTHON]

Each side as its documentation has it: contextualbandits fits a logistic regression for each arm on the rows it then
evaluates; armwise a ridge for each arm, cross-fitted in three folds, and gives an interval as well. The log is drawn
from a softmax policy over 10 arms and 20 features with logistic rewards, so that the value of the target is known.
"""

from __future__ import annotations

import argparse

import numpy as np

import armwise as aw
from benchmarks import common, peers

ARMS, FEATURES = 10, 20


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__, peers=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
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
