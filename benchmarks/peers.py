"""The peers' own virtual environment, made on demand, with armwise installed beside them.

Both sides of a comparison run in this one interpreter, in turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / "benchmarks" / ".peers"
PACKAGES = (
    "vowpalwabbit==9.11.9",
    "pymab==2.0.1",
    "mabwiser==2.7.4",
    "coba==8.1.0",
    "river==0.26.1",
    "contextualbandits==0.3.30",
    "bayesianbandits==1.5.0",
)


def interpreter(given: str | None = None) -> str:
    """The Python of the peers' environment: the one given, or our own, created when first needed."""
    if given:
        return given
    python = HOME / "bin" / "python"
    stamp = HOME / ".installed"
    wanted = "\n".join(PACKAGES)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the peers' environment in {HOME.relative_to(ROOT)} (once) ...", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{ROOT}[race,sklearn]"], check=True)
        if not subprocess.run([*pip, *PACKAGES]).returncode:
            stamp.write_text(wanted)
        else:  # one that cannot be built here must not keep the others out; the next run tries again
            for package in PACKAGES:
                subprocess.run([*pip, package])
    return str(python)


def installed(python: str, packages: dict[str, str]) -> list[str]:
    """The peers whose package that interpreter has, of their names and packages; the others are said to be missing."""
    look = "import importlib.util, sys; print(*(p for p in sys.argv[1:] if importlib.util.find_spec(p)))"
    done = subprocess.run([python, "-c", look, *packages.values()], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    for name, package in packages.items():
        if package not in found:
            print(f"not installed, and not raced: {name} (in {python})", file=sys.stderr, flush=True)
    return [name for name, package in packages.items() if package in found]


def run(module: str, *arguments: str, python: str | None = None) -> str:
    """Run ``python -m module`` among the peers, with this checkout's sources, one thread of BLAS; its output."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [interpreter(python), "-W", "ignore", "-m", module, *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
    )
    if done.returncode:
        raise SystemExit(f"{module} failed with exit code {done.returncode}")
    return done.stdout
