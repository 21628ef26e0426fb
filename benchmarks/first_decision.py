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

import numpy as np

import armwise as aw
from armwise.theory.algorithm_table import agents
from benchmarks.serve_load import cpu, start

LIMIT = 0.15
SIZES = {"T": 1000, "K": 3, "d": 3, "N": 3, "R": 0.1, "S": 1.0, "delta": 0.05}
# The context of an agent's first decision, by what it sees.
CONTEXTS = {"nothing": "None", "features": "np.eye(3)", "shared": "np.ones(3)", "key": "'morning'",
            "advice": "np.full((3, 3), 1 / 3)"}  # fmt: skip
OWN_CONTEXTS = {"CGPUCB": "np.column_stack([np.ones(3), np.eye(3)])"}  # the context's column, then the arms' own
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
    for name, cls in agents().items():
        agent = cls.theory.call.format(**SIZES)
        context = OWN_CONTEXTS.get(name) or CONTEXTS[eval(agent, {"aw": aw, "np": np}).sees]
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
