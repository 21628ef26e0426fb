"""One thread, one clock, one source of chance: everything of a simulated cluster runs as tasks of one kernel.

A task is a greenlet. It runs until it waits for something: a moment, an answer, a lock. Only then does another one run,
and which one is decided by the seed. So the threads of several processes interleave as they could on real machines, and
a schedule that was seen once is seen again.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import greenlet

from armwise.service.journal.system import System

START = 1_700_000_000.0  # what clocks show when a schedule begins
NOISE = 0.0002  # seconds that may pass before whoever is woken runs
MAX_STEPS = 400_000  # of one schedule: more is a loop without an end


class Owner:
    """What tasks belong to, and die or freeze with: a process, a database, a client."""

    def __init__(self, name: str) -> None:
        self.name, self.alive, self.frozen_until = name, True, 0.0


class Task:
    """A thread of the simulation."""

    def __init__(self, kernel: Kernel, owner: Owner, name: str, work: Callable[[], object]) -> None:
        self.kernel, self.owner, self.name = kernel, owner, name
        self.waits = 0  # how often it has waited: a timer of an earlier wait is no reason to go on
        self.waiting = self.done = False
        self.loop: asyncio.AbstractEventLoop | None = None  # the running loop of this thread
        self.waiters: list[Task] = []
        self._work = work
        self.greenlet = greenlet.greenlet(self._run, kernel.main)

    def _run(self) -> None:
        try:
            self._work()
        except greenlet.GreenletExit:
            return
        except BaseException as error:
            self.kernel.failed(error)
        finally:
            self.done = True
            for task in self.waiters:
                self.kernel.wake(task)

    # What a thread answers.
    def is_alive(self) -> bool:
        return not self.done and self.owner.alive

    def join(self, timeout: float | None = None) -> None:
        self.kernel.wait_until(self.waiters, lambda: self.done, timeout)


class Kernel:
    """The scheduler."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1.0
        self.steps = 0
        self.failures: list[tuple[Task, BaseException]] = []
        self.trace = 0  # a digest of all that was scheduled: two runs of a seed have the same
        self.current: Task | None = None
        self._tasks: list[Task] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.main = greenlet.getcurrent()
        self._closing = False

    # ------------------------------------------------------------------ tasks

    def spawn(self, owner: Owner, name: str, work: Callable[[], object], delay: float = 0.0) -> Task:
        task = Task(self, owner, name, work)
        self._tasks.append(task)
        self.after(delay + self.random.random() * NOISE, lambda: self._resume(task))
        return task

    def failed(self, error: BaseException) -> None:
        """The current task ends with an error that nobody foresaw: so does the schedule."""
        assert self.current is not None
        self.failures.append((self.current, error))

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + seconds, next(self._numbers), what))

    def run(self, until: Callable[[], bool], limit: float) -> bool:
        """Run until something holds; False if it does not within ``limit`` seconds of simulated time."""
        end = self.now + limit
        while not until():
            if self.failures:
                task, error = self.failures[0]
                raise RuntimeError(f"the thread {task.name} of {task.owner.name} ended") from error
            if not self._heap or self._heap[0][0] > end:
                self.now = end
                return until()
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise RuntimeError(f"{MAX_STEPS} steps, and no end")
            self.now, number, what = heapq.heappop(self._heap)
            self.trace = hash((self.trace, self.now, number))
            what()
        return True

    def _resume(self, task: Task) -> None:
        if task.done or not task.owner.alive:
            return
        if task.owner.frozen_until > self.now:
            self.after(task.owner.frozen_until - self.now + self.random.random() * NOISE, lambda: self._resume(task))
            return
        before, running = self.current, asyncio.events._get_running_loop()
        self.current, task.waiting = task, False
        asyncio.events._set_running_loop(task.loop)
        try:
            task.greenlet.switch()
        finally:
            self.current = before
            asyncio.events._set_running_loop(running)

    def close(self) -> None:
        """End every task that is left."""
        self._closing = True
        for task in self._tasks:
            if task.greenlet and not task.done:
                task.greenlet.throw(greenlet.GreenletExit)
        self._heap.clear()
        self._tasks.clear()  # a lock that outlives the schedule has its kernel, and must not have everything else
        self.failures.clear()
        self.current = None

    # ------------------------------------------------------------------ waiting

    def wait(self, timeout: float | None = None) -> None:
        """Let the current task wait until it is woken, or for so long."""
        if self._closing or self.current is None:
            raise greenlet.GreenletExit
        task = self.current
        task.waits += 1
        task.waiting = True
        if timeout is not None:
            mine = task.waits

            def over() -> None:
                if task.waiting and task.waits == mine:
                    self._resume(task)

            self.after(max(timeout, 0.0), over)
        self.main.switch()
        if self._closing:
            raise greenlet.GreenletExit

    def wake(self, task: Task) -> None:
        """Let a task go on soon."""
        mine = task.waits

        def go_on() -> None:
            if task.waiting and task.waits == mine:
                self._resume(task)

        if task.waiting and not self._closing:
            self.after(self.random.random() * NOISE, go_on)

    def sleep(self, seconds: float) -> None:
        self.wait(max(seconds, 1e-6))

    def wait_until(self, waiters: list[Task], holds: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something holds; whoever makes it hold wakes the ``waiters``."""
        end = None if timeout is None else self.now + timeout
        while not holds():
            left = None if end is None else end - self.now
            if left is not None and left <= 0.0:
                return False
            if self._closing or self.current is None:
                raise greenlet.GreenletExit
            waiters.append(self.current)
            task = self.current
            try:
                self.wait(left)
            finally:
                if task in waiters:
                    waiters.remove(task)
        return True

    def wake_all(self, waiters: list[Task]) -> None:
        for task in list(waiters):
            self.wake(task)


class Lock:
    """A lock that tasks wait for."""

    def __init__(self, kernel: Kernel, again: bool = False) -> None:
        self._kernel, self._again = kernel, again
        self._holder: Task | None = None
        self._depth = 0
        self._waiters: list[Task] = []

    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool:
        me = self._kernel.current
        if not (self._again and self._holder is not None and self._holder is me):
            free = self._kernel.wait_until(
                self._waiters, lambda: self._depth == 0, (None if timeout < 0.0 else timeout) if blocking else 0.0
            )
            if not free:
                return False
        self._holder, self._depth = me, self._depth + 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
            self._kernel.wake_all(self._waiters)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class Event:
    """An event that tasks wait for."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel, self._set = kernel, False
        self._waiters: list[Task] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._kernel.wake_all(self._waiters)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._kernel.wait_until(self._waiters, self.is_set, timeout)


class Condition(Lock):
    """A condition that tasks wait for."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, again=True)
        self._asleep: list[Task] = []

    def notify_all(self) -> None:
        self._kernel.wake_all(self._asleep)

    def wait_for(self, holds: Callable[[], bool], timeout: float | None = None) -> bool:
        depth, self._depth = self._depth, 0
        self._kernel.wake_all(self._waiters)
        try:
            return self._kernel.wait_until(self._asleep, holds, timeout)
        finally:
            self.acquire()
            self._depth = depth


class Queue:
    """A queue that tasks wait for."""

    def __init__(self, kernel: Kernel, empty: type[Exception]) -> None:
        self._kernel, self._empty = kernel, empty
        self._items: deque[Any] = deque()
        self._waiters: list[Task] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._kernel.wake_all(self._waiters)

    def get(self, timeout: float | None = None) -> Any:
        if not self._kernel.wait_until(self._waiters, lambda: bool(self._items), timeout):
            raise self._empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        if not self._items:
            raise self._empty
        return self._items.popleft()

    def qsize(self) -> int:
        return len(self._items)


class Simulated(System):
    """The system as one process of the simulation sees it."""

    def __init__(self, kernel: Kernel, owner: Owner) -> None:
        self._kernel, self._owner = kernel, owner
        self._worked = 0.0

    def monotonic(self) -> float:
        return self._kernel.now

    def sleep(self, seconds: float) -> None:
        self._kernel.sleep(seconds)

    def thread_time(self) -> float:
        self._worked += 0.0004  # whoever asks has worked for so long
        return self._worked

    def random_bytes(self, n: int) -> bytes:
        return self._kernel.random.randbytes(n)

    def start(self, work: Callable[..., object], name: str, *args: Any) -> Any:
        return self._kernel.spawn(self._owner, name, lambda: work(*args))

    def lock(self) -> Any:
        return Lock(self._kernel)

    def rlock(self) -> Any:
        return Lock(self._kernel, again=True)

    def event(self) -> Any:
        return Event(self._kernel)

    def condition(self) -> Any:
        return Condition(self._kernel)

    def queue(self) -> Any:
        return Queue(self._kernel, self.Empty)


class Loop(asyncio.BaseEventLoop):
    """An event loop of asyncio in a task: it waits as all others do, and its threads are tasks."""

    def __init__(self, kernel: Kernel, owner: Owner) -> None:
        super().__init__()
        self._kernel, self._owner, self._news = kernel, owner, Event(kernel)
        self._selector = self

    def time(self) -> float:
        return self._kernel.now

    def select(self, timeout: float | None) -> list[Any]:
        """What asyncio asks of a selector: wait for news."""
        if timeout is None or timeout > 0.0:
            self._news.wait(timeout)
        self._news.clear()
        return []

    def _process_events(self, events: list[Any]) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        self._news.set()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        future = self.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if not future.done():
                future.set_result(value) if error is None else future.set_exception(error)

        def work() -> None:
            try:
                value, error = func(*args), None
            except Exception as raised:
                value, error = None, raised
            self.call_soon_threadsafe(settle, value, error)

        self._kernel.spawn(self._owner, "pool", work)
        return future

    def serve(self) -> None:
        """The work of the task that runs the loop."""
        assert self._kernel.current is not None
        self._kernel.current.loop = self
        asyncio.events._set_running_loop(self)
        while True:
            self._run_once()  # type: ignore[attr-defined]

    def close(self) -> None:
        """There is nothing to close."""
