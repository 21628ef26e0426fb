"""The first ``choose`` + ``learn`` of every public agent in a fresh process: processor seconds beyond the imports.

    python -m benchmarks.first_decision [--repeat N]

Each agent has a process of its own, N times, and the least is printed: beyond ``import numpy``, or, where the agent's
first decision imports SciPy, beyond ``import numpy, scipy.linalg``. Nothing is compiled or cached anywhere. The last
line is ``armwise serve``, from its start to its first answer.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import urllib.request

from benchmarks.serve_load import cpu, start

LIMIT = 0.15
ARMS, FEATURES, SHARED = "np.eye(3)", "(dim=3, seed=1)", "(dim=3, n_arms=3, seed=1)"
POLICIES = "[aw.Constant(0), aw.Constant(1), aw.Constant(2)]"
# The agent's constructor and its context, by name.
CALLS = {
    "Exp3": ("aw.Exp3(3, seed=1)", "None"),
    "UCB1": ("aw.UCB1(3, seed=1)", "None"),
    "BetaThompson": ("aw.BetaThompson(3, seed=1)", "None"),
    "EpsilonGreedy": ("aw.EpsilonGreedy(3, seed=1)", "None"),
    "PerContext": ("aw.PerContext(aw.UCB1(3), seed=1)", "'morning'"),
    "PolicyArms": (f"aw.PolicyArms(aw.UCB1(3, seed=1), {POLICIES}, 3, seed=1)", "np.ones(3)"),
    "Doubling": ("aw.Doubling('Exp3.theoretical', {'n_arms': 3}, seed=1)", "None"),
    "Explore": ("aw.Explore(aw.LinUCB(3, seed=1), 0.1, seed=1)", ARMS),
    "LinUCB": ("aw.LinUCB" + FEATURES, ARMS),
    "SupLinUCB": ("aw.SupLinUCB(3, 1000, seed=1)", ARMS),
    "LinREL": ("aw.LinREL(3, 1000, seed=1)", ARMS),
    "SupLinREL": ("aw.SupLinREL(3, 1000, seed=1)", ARMS),
    "CoFineUCB": ("aw.CoFineUCB(3, np.eye(3)[:, :2], seed=1)", ARMS),
    "HybridLinUCB": ("aw.HybridLinUCB(3, 3, 1, seed=1)", ARMS),
    "Mapped": ("aw.Mapped(aw.LinUCB(25), aw.features.Join([aw.features.Fourier(24)]).fit(np.eye(3)), seed=1)", ARMS),
    "LinThompson": ("aw.LinThompson" + FEATURES, ARMS),
    "LogisticThompson": ("aw.LogisticThompson(3, seed=1)", ARMS),
    "SpectralUCB": ("aw.SpectralUCB(np.diag([1.0, 2, 1]) - np.eye(3, k=1) - np.eye(3, k=-1), 100, seed=1)", "None"),
    "GPUCB": ("aw.GPUCB(aw.kernels.RBF(1.0), seed=1)", ARMS),
    "CGPUCB": (
        "aw.CGPUCB(aw.kernels.RBF(1.0), aw.kernels.Linear(), 1, seed=1)",
        "np.column_stack([np.ones(3), np.eye(3)])",
    ),
    "KernelUCB": ("aw.KernelUCB(aw.kernels.RBF(1.0), seed=1)", ARMS),
    "SupKernelUCB": ("aw.SupKernelUCB(aw.kernels.RBF(1.0), 1000, seed=1)", ARMS),
    "EpochGreedy": (f"aw.EpochGreedy(aw.FinitePolicies({POLICIES}, 3), 3, seed=1)", "np.ones(3)"),
    "PolicyElimination": (f"aw.PolicyElimination({POLICIES}, 3, np.ones((4, 3)), seed=1)", "np.ones(3)"),
    "RandomizedUCB": (f"aw.RandomizedUCB({POLICIES}, 3, seed=1)", "np.ones(3)"),
    "ILoveToConBandits": (f"aw.ILoveToConBandits(aw.FinitePolicies({POLICIES}, 3), 3, seed=1)", "np.ones(3)"),
    "OnlineCover": ("aw.OnlineCover(aw.LinearOracle(3, 3), 3, seed=1)", "np.ones(3)"),
    "SquareCB": ("aw.SquareCB" + SHARED, "np.ones(3)"),
    "RegCB": ("aw.RegCB" + SHARED, "np.ones(3)"),
    "Exp4": ("aw.Exp4(2, 3, seed=1)", "np.full((2, 3), 1 / 3)"),
    "Exp4P": ("aw.Exp4P(2, 3, 1000, seed=1)", "np.full((2, 3), 1 / 3)"),
    "VE": ("aw.VE(aw.policies.Stumps(3), 3, 1000, seed=1)", "np.ones(3)"),
    "Auto": ("aw.Auto(dim=3, seed=1)", ARMS),
    "FastCB": ("aw.FastCB" + SHARED, "np.ones(3)"),
    "D3RB": ("aw.D3RB([aw.UCB1(3), aw.Exp3(3)], seed=1)", "None"),
    "ED2RB": ("aw.ED2RB([aw.UCB1(3), aw.Exp3(3)], seed=1)", "None"),
    "Corral": ("aw.Corral([aw.UCB1(3), aw.Exp3(3)], 1000, seed=1)", "None"),
    "HardStop": ("aw.HardStop(aw.LinUCB(3, seed=1), 100.0, 1.0, 0, seed=1)", ARMS),
    "Pacing": ("aw.Pacing(aw.LinUCB(3, seed=1), 0.5, 0, seed=1)", ARMS),
    "LinCBwK": ("aw.LinCBwK(3, 1000, 100.0, seed=1)", ARMS),
    "LagrangeCB": ("aw.LagrangeCB(aw.SquareCB(3, seed=1), 1000, 100.0, seed=1)", ARMS),
    "Conservative": ("aw.Conservative(aw.UCB1(3, seed=1), 1, 0.5, seed=1)", "None"),
    "Advised": (f"aw.Advised(aw.Exp4(3, 3, seed=1), {POLICIES}, seed=1)", "np.ones(3)"),
}
CODE = """
import json, sys, time
start = time.process_time()
import numpy as np
after_numpy = time.process_time()
if {scipy}:
    import scipy.linalg
begun = time.process_time()
import armwise as aw
agent, context = {agent}, {context}
agent.learn(context, agent.choose(context), 1.0, *([0.5] if agent.n_costs else []))
print(json.dumps([after_numpy - start, begun - start, time.process_time() - begun, "scipy" in sys.modules]))
"""


def measure(agent: str, context: str, repeat: int, scipy: bool = False) -> tuple[float, float, bool]:
    """Seconds of the imports, seconds beyond them, whether SciPy was imported: the least of ``repeat`` processes."""
    code = CODE.format(agent=agent, context=context, scipy=scipy)
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", code])) for _ in range(repeat)]
    return min(run[1] for run in runs), min(run[2] for run in runs), runs[0][3]


def served() -> float:
    """Processor seconds of ``armwise serve`` from its start until it has answered one request for a decision."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arms = [{"id": str(i), "features": {"price": float(i)}} for i in range(10)]
    with tempfile.TemporaryDirectory() as folder:
        process = start("serve", port, folder)
        try:
            body, kind = json.dumps({"arms": arms}).encode(), {"Content-Type": "application/json"}
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/v1/decisions", body, kind)
            urllib.request.urlopen(asked, timeout=20).read()
            return cpu(process.pid)
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    print("| agent | imports before | s | first decision beyond, s |\n|---|---|---|---|")
    slow = []
    for name, (agent, context) in CALLS.items():
        imports, beyond, scipy = measure(agent, context, repeat)
        if scipy:
            imports, beyond, _ = measure(agent, context, repeat, scipy=True)
        print(f"| {name} | numpy{', scipy.linalg' if scipy else ''} | {imports:.2f} | {beyond:.3f} |", flush=True)
        if beyond > LIMIT:
            slow.append(name)
    print(f"\nBeyond {LIMIT} s: {', '.join(slow) or 'none'}.")
    print(f"armwise serve, first decision: {min(served() for _ in range(repeat)):.2f} s of processor time")


if __name__ == "__main__":
    main()
