"""Functions on several workers of this machine, quiet when they are interrupted."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from armwise.core.extras import needs

T = TypeVar("T")


def side_by_side(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    workers: int,
    backend: Literal["threading", "loky"],
) -> Iterator[T]:
    """Call ``function`` with each tuple of arguments; the answers come as they are ready, in any order.

    >>> sorted(side_by_side(pow, [(2, 3), (2, 4)], workers=2, backend="threading"))
    [8, 16]
    """
    with needs("race"):
        import joblib

    with warnings.catch_warnings():
        # loky replaces a worker that has grown by 300 MB, which compiled code and data do; no task is lost by it.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        warnings.filterwarnings("ignore", message=".*tasks .*(have been successfully executed|have been cancelled)")
        parallel = joblib.Parallel(n_jobs=workers, backend=backend, batch_size=1, pre_dispatch="2*n_jobs",
                                   return_as="generator_unordered")  # fmt: skip
        task = functools.partial(_deaf, function) if backend == "loky" else function
        with _interrupts_held() if backend == "loky" else contextlib.nullcontext():
            answers = parallel(joblib.delayed(task)(*each) for each in arguments)
        with _ended_quietly():
            yield from answers


def _deaf(function: Callable[..., Any], *arguments: Any) -> Any:
    """A task in a process of its own, which leaves Ctrl-C to the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(*arguments)


@contextlib.contextmanager
def _ended_quietly() -> Iterator[None]:
    """Workers that are ended while tasks wait leave no traceback.

    loky's manager thread, after it has killed the workers and dropped their tasks, still looks up a task that waited
    for a place in its queue and dies of a KeyError before it frees its semaphores. Few tasks in flight leave none
    waiting; should one arrive at that very moment, nothing is lost, and nobody can use the traceback.
    """
    before = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        manager = failure.thread is not None and type(failure.thread).__name__ == "_ExecutorManagerThread"
        if not (manager and failure.exc_type is KeyError):
            before(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started here never see Ctrl-C, which a terminal sends to all: this one ends them, without traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # The first worker brings this process, which lets Ctrl-C through again when it has started, for those after it too.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
