"""Progressive error of the regression agents on multiclass sets turned into bandits, beside Vowpal Wabbit's best.

    python -m benchmarks.regression_bench --data FOLDER [--peers-python PYTHON]

FOLDER holds optdigits.parquet and letter.parquet (features, then a label). Each row is one round: the agent names a
class and learns only whether it was right. Features are scaled to [0, 1], a constant is added, one shuffle. With
``--peers-python`` (an interpreter that has vowpalwabbit) VW runs on the same shuffle, with a few settings each, and
the ratio is to the better of that and the best known from earlier, larger searches. Ratios above 1 are ours.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import armwise as aw
from benchmarks import common

SETS = ("optdigits", "letter")
KNOWN = {("SquareCB", "optdigits"): 0.185, ("SquareCB", "letter"): 0.660,
         ("RegCB", "optdigits"): 0.158, ("RegCB", "letter"): 0.674}  # VW 9.11.9, best of its settings  # fmt: skip

VW = """
import itertools, json, sys
import numpy as np
from vowpalwabbit import Workspace
file = np.load(sys.argv[1])
X, y, K = file["X"], file["y"], int(file["y"].max()) + 1
lines = [f"{label + 1} | " + " ".join(f"f{j}:{v:.6g}" for j, v in enumerate(row) if v) for row, label in zip(X, y)]
costs = ("", " --loss0 -1 --loss1 0")
tried = {"SquareCB": [f"--squarecb --gamma_scale {s} -l {l}{c}"
                      for s, l, c in itertools.product((10, 100), (0.5, 5), costs)],
         "RegCB": [f"--regcbopt --mellowness {m} -l {l}{c}"
                   for m, l, c in itertools.product((0.1, 0.001), (0.5, 5), costs)]}
for name, settings in tried.items():
    errors = {}
    for setting in settings:
        vw = Workspace(f"--cbify {K} --cb_explore_adf {setting} --cb_type mtr --quiet --random_seed 1")
        for line in lines:
            vw.learn(line)
        errors[setting] = vw.get_sum_loss() / len(lines)
        vw.finish()
    best = min(errors, key=errors.get)
    print(json.dumps({"name": name, "error": errors[best], "setting": best}), flush=True)
"""


def agents(d: int, K: int, seed: int) -> dict[str, aw.Agent]:
    """The agents with their default settings."""
    return {
        "SquareCB": aw.SquareCB(d, n_arms=K, seed=seed),
        "RegCB": aw.RegCB(d, n_arms=K, seed=seed),
        "RegCB elimination": aw.RegCB(d, n_arms=K, elimination=True, seed=seed),
        "OnlineCover": aw.OnlineCover(aw.LinearOracle(d, intercept=False), K, seed=seed),
    }


def vw_best(python: str, X: np.ndarray, y: np.ndarray) -> dict[str, dict[str, Any]]:
    """VW's best error an algorithm, on the same rows in the same order."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "rows.npz"), X=X, y=y)
        command = [python, "-c", VW, str(Path(folder, "rows.npz"))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


def main() -> None:
    parser = common.parser(__doc__, data="optdigits.parquet and letter.parquet", peers=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.data is None:
        parser.error("--data is needed")
    for name in SETS:
        X, y, rewards = common.as_rounds(*common.labelled(common.find(options.data, f"{name}.parquet")), options.seed)
        peers = vw_best(options.peers_python, X, y) if options.peers_python else {}
        for kind, agent in agents(X.shape[1], rewards.shape[1], options.seed).items():
            agent.clone(seed=0).play(X[:2], rewards[:2])  # compile
            start = time.perf_counter()
            error = 1.0 - float(agent.play(X, rewards).rewards.mean())
            what = f"{name}: error of {kind}, all {len(y):,} rows"
            note = f"default settings, {time.perf_counter() - start:.2f} s"
            if (kind, name) not in KNOWN:
                common.report(what, f"{error:.4f}", "-", "-", None, note)
                continue
            known = KNOWN[kind, name]
            bar = min(peers.get(kind, {}).get("error", 1.0), known)
            here = "VW here {error:.4f} ({setting})".format(**peers[kind]) if kind in peers else "VW not run here"
            note = f"{note}; {here}, best known {known}"
            common.report(what, f"{error:.4f}", f"VW {kind}", f"{bar:.4f}", bar / error, note)


if __name__ == "__main__":
    main()
