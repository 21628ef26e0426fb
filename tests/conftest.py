"""Tests import their helpers (checks, cases) by name, from wherever pytest is started."""

import gc
import linecache
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "tools")]

collect_ignore = ["typing"]  # code for type checkers to read: make check does


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is collected stays to the end: looking through it again and again finds nothing.

    Nor do sources that were read for it change: before every doctest a debugger would ask the disk about each of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        linecache.clearcache()
        gc.freeze()
        gc.set_threshold(20_000, 20, 100)  # tests make much that lives until they end
        gc.enable()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """`armwise serve` in a test's own process sends the logs to a standard error that ends with the test."""
    names = ("armwise", "uvicorn", "py.warnings")
    before = {name: vars(logging.getLogger(name)).copy() for name in names}
    yield
    for name, was in before.items():
        vars(logging.getLogger(name)).update(was)
