"""Do mypy and pyright see what they should in typed user code? (``make check`` runs this; exit code 1 if not.)

Both run strictly over ``user_code.py``. Each line marked ``# wrong`` must be refused, and no other line may be.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

USER_CODE = Path(__file__).with_name("user_code.py")
ROOT = Path(__file__).parents[2]


def marked(lines: list[str]) -> set[int]:
    """The lines that a checker must refuse, counted from 1."""
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def refused_by_mypy() -> set[int]:
    done = _run("mypy", "--strict", "--no-error-summary")
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy failed:\n{done.stdout}{done.stderr}")
    return {int(number) for number in re.findall(rf"{USER_CODE.name}:(\d+): error", done.stdout)}


def refused_by_pyright() -> set[int]:
    done = _run("pyright", "--outputjson", "--pythonpath", sys.executable)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"pyright failed:\n{done.stdout}{done.stderr}") from None
    return {d["range"]["start"]["line"] + 1 for d in report["generalDiagnostics"] if d["severity"] == "error"}


def _run(checker: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", checker, *options, str(USER_CODE)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def main() -> int:
    lines = USER_CODE.read_text().splitlines()
    wrong = marked(lines)
    complaints = []
    for checker, refused in {"mypy": refused_by_mypy(), "pyright": refused_by_pyright()}.items():
        complaints += [f"{checker} accepts a wrong line: {n}: {lines[n - 1]}" for n in sorted(wrong - refused)]
        complaints += [f"{checker} refuses a right line: {n}: {lines[n - 1]}" for n in sorted(refused - wrong)]
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(f"typed user code: {len(wrong)} wrong lines, {len(complaints)} complaints (mypy and pyright)")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
