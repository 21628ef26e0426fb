"""Settings of every test: the garbage collector, and logging as it was."""

import gc
import linecache
import logging
from collections.abc import Iterator

import pytest

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
