"""Tests import their helpers (checks, cases) by name, from wherever pytest is started."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "tools")]

collect_ignore = ["typing"]  # code for type checkers to read: make check does
