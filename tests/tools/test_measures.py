"""The scripts that measure the source tree find what was planted in a small one, and trace the package as it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = "".join(f"    x = x * {n} + {n}\n" for n in range(7))
FILES = {
    "pyproject.toml": '[[tool.importlinter.contracts]]\ncontainers = ["armwise"]\nlayers = ["agents", "core"]\n',
    "src/armwise/__init__.pyi": "from armwise.worlds import Linear as Linear\n",
    "src/armwise/core/agent.py": (
        "class Agent:\n    sees = 1\n    def choose(self): ...\n    def _draw(self): ...\n    def _learn(self): ...\n"
        f"def f(x):\n{BLOCK}"
    ),
    "src/armwise/agents/agent.py": (
        f'"""A docstring.\n\nof three lines"""\nclass Tally: ...  # a comment\ndef g(x):\n{BLOCK}\n'
        'import_module("armwise.core")\nimport_module(f"armwise.{x}")\nimport_module("numpy")\n'
    ),
    "src/armwise/worlds.py": (
        'class Linear:\n    """>>> Linear()"""\n    def _of(self): ">>> 1"\nclass Tally:\n    def f(self): ">>> 1"\n'
    ),
    "src/armwise/kernels.py": "class Linear: ...\n",
    "docs/page.md": "FastCB and FastCBs\n",
    "tests/test_it.py": "FastCBs\n",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("tree")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    asked = [sys.executable, str(ROOT / "tools" / "measure-house"), str(root)]
    return subprocess.run(asked, text=True, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    "line",
    [
        "| folders of src, files in all | 3, 4 |",
        "| layers | 2 |",
        "| class names that repeat | 1: Tally |",  # both of Linear are public
        "| file names that repeat | 1: agent |",
        "| own modules imported by string | 2: armwise.agents.agent:14, armwise.agents.agent:15 |",
        "| doctests on internals | 2 |",
        "- doctest: armwise.worlds:Linear._of",
        "- doctest: armwise.worlds:Tally.f",
        "| Agent: public methods, private methods, attributes | 1, 2, 1 |",
        "| files that mention FastCB | 1: docs 1 |",
        "| repeated blocks of 6 lines or more | 1, 7 lines |",
        "| lines of code: agents | 12 |",
        "- 7 lines: armwise.agents.agent:6 and armwise.core.agent:7",
    ],
)
def test_what_was_planted_is_found(table: str, line: str) -> None:
    assert line in table.splitlines()


def test_the_package_keeps_to_the_rules_of_its_tree() -> None:
    """Doctests are for the public API alone; a folder has at most 14 files, and no name repeats."""
    asked = [sys.executable, str(ROOT / "tools" / "measure-house")]
    lines = subprocess.run(asked, text=True, capture_output=True, check=True).stdout.splitlines()
    assert "| doctests on internals | 0 |" in lines, [line for line in lines if line.startswith("- doctest")]
    for rule in ("folders of more than 14 files", "class names that repeat", "file names that repeat"):
        assert f"| {rule} | 0: none |" in lines
    assert "| layers | 9 |" in lines


def test_a_walk_counts_files_functions_and_changes_of_file() -> None:
    """One decision in memory is a few functions of the package; none, or thousands, would mean a broken trace."""
    asked = [sys.executable, str(ROOT / "tools" / "trace-walks"), "memory"]
    done = subprocess.run(asked, text=True, capture_output=True, check=True, env=os.environ)
    cells = [line.split("|")[2:5] for line in done.stdout.splitlines()[2:]]
    assert len(cells) == 2
    for files, functions, changes in ([int(cell) for cell in row] for row in cells):
        assert 1 <= files <= functions < 100 and files <= changes < 100
