"""Call functions in several processes of this machine; an interruption prints no traceback."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from armwise.core.tools.extras import needs

T = TypeVar("T")


def side_by_side(
    function: Callable[..., T],
    arguments: Iterable[tuple[Any, ...]],
    workers: int,
    backend: Literal["threading", "loky"],
) -> Iterator[T]:
    """Call ``function`` with each tuple of arguments; yield the answers as they are ready, in any order."""
    with needs("race"):
        import joblib

    with warnings.catch_warnings():
        # loky replaces a worker whose memory has grown by 300 MB, which data may do; no task is lost.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        warnings.filterwarnings("ignore", message=".*tasks .*(have been successfully executed|have been cancelled)")
        parallel = joblib.Parallel(n_jobs=workers, backend=backend, batch_size=1, pre_dispatch="2*n_jobs",
                                   return_as="generator_unordered")  # fmt: skip
        task = functools.partial(_ignore_sigint, function) if backend == "loky" else function
        with _interrupts_held() if backend == "loky" else contextlib.nullcontext():
            answers = parallel(joblib.delayed(task)(*each) for each in arguments)
        with _ended_quietly():
            yield from answers


def _ignore_sigint(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in a worker process, which ignores SIGINT: its parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return function(*arguments)


@contextlib.contextmanager
def _ended_quietly() -> Iterator[None]:
    """Suppress the traceback of loky's manager thread when workers are terminated while tasks wait.

    After it has killed the workers and dropped their tasks, the thread still looks up a task that waited for a place in
    its queue, and a KeyError ends it before it releases its semaphores. With few tasks in flight none waits; if one
    does, nothing is lost, and the traceback helps nobody.
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
    """Let worker processes ignore SIGINT, which a terminal sends to all processes: the parent terminates them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    # Start the resource tracker first: starting it unblocks SIGINT, for the workers started after it too.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
