"""The writer: group commit of what was submitted meanwhile; answers follow once it is durable."""

from __future__ import annotations

import bisect
import contextlib
import logging
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from armwise.service.engine.commit_counts import BUCKETS
from armwise.service.journal.errors import Unavailable
from armwise.service.journal.journal import Journal
from armwise.service.journal.system import SYSTEM, System
from armwise.service.journal.writes import Appended, Write, joins

log = logging.getLogger("armwise.service")

Done = Callable[[Appended], None]
Via = Callable[[Callable[[], None]], object]  # runs a function elsewhere, such as ``loop.call_soon_threadsafe``
MAX_GROUPS = 512  # groups in one commit
MAX_COMMIT_SECONDS = 5.0  # seconds that a commit may take before waiting requests are refused
BUSY = 0.25  # seconds after a commit in which others are expected
PROVED = 3.0  # seconds for which a write says that there can be another

_Submitted = tuple[Sequence[Write], Done, Via | None]


def waited(submit: Callable[[Sequence[Write], Done], None], group: Sequence[Write], system: System = SYSTEM) -> Any:
    """Submit a group and wait for its results."""
    ready, result = system.event(), []

    def done(outcome: Appended) -> None:
        result.append(outcome)
        ready.set()

    submit(group, done)
    ready.wait()
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


class Writer:
    """A thread that appends to the journal in batches; ``idle`` is called about every ``pause`` seconds in it.

    ``idle`` answers True if there is more to do, which is then done after whatever was submitted meanwhile. After a
    failure a write of no meaning is tried at every pause, so that it is ``healthy`` again without a client's help.
    While the database does not answer for ``stall`` seconds, whoever waits is refused, and so is whoever comes.
    """

    def __init__(
        self,
        journal: Callable[[], Journal],
        now: Callable[[], int],
        idle: Callable[[Journal], object] | None = None,
        pause: float = 0.2,
        backlog: int = 20_000,
        stall: float = MAX_COMMIT_SECONDS,
        system: System = SYSTEM,
    ) -> None:
        self._make, self._now, self._idle, self.system = journal, now, idle, system
        self._pause, self._backlog, self._stall = pause, backlog, stall
        self._busy_since = 0.0  # when the work in hand was begun; 0: none is
        self._in_hand: list[_Submitted] = []  # what the commit under way will answer
        self._answering = system.lock()
        self._queue = system.queue()
        self._next: list[Any] = []  # what was taken from the queue and is to be done first
        self._thread: Thread | None = None
        self._open = False
        self.healthy = True
        self._proved = 0.0  # when the journal was last written
        self.doubted = False  # whether somebody asked after so long that only a write can tell
        self.commits = 0
        self.commit_seconds = 0.0
        self.commit_times = [0] * (len(BUCKETS) + 1)  # how many took at most so long, and longer

    def start(self) -> None:
        """Open the journal and start; raise here if it cannot be opened."""
        journal = self._make()
        self._open = True
        self._thread = self.system.start(self._run, "armwise-writer", journal)
        self.system.start(self._watch, "armwise-deadlines")

    @property
    def depth(self) -> int:
        """The number of groups of writes and tasks that wait."""
        return self._queue.qsize()

    @property
    def moving(self) -> bool:
        """Whether the database answers: the present commit is younger than the deadline."""
        since = self._busy_since
        return not since or self.system.monotonic() - since < self._stall

    @property
    def busy(self) -> bool:
        """Whether something was committed a moment ago."""
        return self.system.monotonic() - self._proved < BUSY

    def doubt(self) -> None:
        """Find out soon whether the journal can be written, where nothing has been for some seconds."""
        self.doubted = self.system.monotonic() - self._proved > PROVED

    def stop(self) -> None:
        """Commit what was submitted, then end; what comes after is refused."""
        self._open = False
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def submit(self, group: Sequence[Write], done: Done, via: Via | None = None) -> None:
        """Append a group, all or nothing; ``done`` gets what came of it once it is durable.

        ``via`` runs it elsewhere; what one commit has for the same ``via`` is one call, so one wake-up of a loop.
        """
        if not self._open:
            raise Unavailable("the service is stopping")
        if not self.moving:
            raise Unavailable(f"the database has not answered for {self._stall:g} s")
        if self._queue.qsize() > self._backlog:  # backpressure
            raise Unavailable(f"{self._backlog} requests are waiting to be written")
        self._queue.put((group, done, via))

    def work(self, task: Callable[[Journal], None]) -> None:
        """Run a task with the journal, between two commits."""
        if self._open:
            self._queue.put(task)

    def run(self, task: Callable[[Journal], None]) -> None:
        """Run a task with the journal, and wait for it."""
        ready = self.system.event()

        def and_say(journal: Journal) -> None:
            try:
                task(journal)
            finally:
                ready.set()

        self.work(and_say)
        ready.wait(30.0)

    def write(self, group: Sequence[Write]) -> Any:
        """Submit and wait."""
        return waited(self.submit, group, self.system)

    def _run(self, journal: Journal) -> None:
        running, looked = True, 0.0
        while running or self._next:
            groups: list[_Submitted] = []
            tasks: list[Callable[[Journal], None]] = []
            try:
                with self._answering:
                    first, self._next = self._next, []
                item = first[0] if first else self._queue.get(timeout=self._pause)
                while True:
                    if item is None:
                        running = False
                    elif isinstance(item, tuple):
                        groups.append(item)
                    else:
                        tasks.append(item)
                    if len(groups) >= MAX_GROUPS:
                        break
                    item = self._queue.get_nowait()
            except System.Empty:
                pass
            self._busy_since = self.system.monotonic()
            if groups:
                self._commit(journal, groups)
            for task in tasks:
                self._guarded(task, journal)
            now = self.system.monotonic()
            if running and now - looked >= self._pause:
                looked = 0.0 if self._look_after(journal) else now
            self._busy_since = 0.0
        if hasattr(journal, "connection"):
            journal.connection.close()

    def _look_after(self, journal: Journal) -> bool:
        """Do the work that is due from time to time; True if there is more of it."""
        more: list[object] = []
        if self._idle is not None:
            idle = self._idle
            self._guarded(lambda journal: more.append(idle(journal)), journal)
            if not more:
                return False
        if not self.healthy or self.doubted:
            was = self.healthy
            if self._guarded(lambda journal: journal.probe(), journal):
                self.healthy, self._proved = True, self.system.monotonic()
                if not was:
                    log.info("the journal can be written again")
            self.doubted = False
        return bool(more and more[0])

    def _commit(self, journal: Journal, groups: list[_Submitted]) -> None:
        self._in_hand = groups
        started = self.system.monotonic()
        try:
            outcomes: Sequence[Appended] = journal.append([group for group, _, _ in groups], self._now(), self._more)
            self.healthy, self._proved = True, self.system.monotonic()
            self.commits += 1
            took = self.system.monotonic() - started
            self.commit_seconds += took
            self.commit_times[bisect.bisect_left(BUCKETS, took)] += 1
        except Exception as error:
            # Rolled back: nobody was told anything, so nothing was promised. The reason may name hosts: the log has it,
            # with all of its frames when it begins, in a line while it lasts.
            if self.healthy:
                log.exception("commit failed")
            else:
                log.error("commit failed again: %s", error)
            self.healthy = False
            outcomes = [Unavailable("the journal cannot be written now: try again")] * len(groups)
        with self._answering:
            answered, self._in_hand = not self._in_hand, []
        if not answered:
            _deliver(groups, outcomes)

    def _more(self) -> list[Sequence[Write]]:
        """The groups that came while another process appended, and that may join the batch in hand."""
        taken: list[_Submitted] = []
        with self._answering, contextlib.suppress(System.Empty):
            while self._in_hand and not self._next and len(self._in_hand) < MAX_GROUPS:
                item = self._queue.get_nowait()
                if isinstance(item, tuple) and joins(item[0]):
                    taken.append(item)
                    self._in_hand.append(item)
                else:
                    self._next.append(item)
        return [group for group, _, _ in taken]

    def _watch(self) -> None:
        """Refuse those who have waited for longer than the deadline; the same request may come again later."""
        while self._thread is not None:
            self.system.sleep(self._stall / 10)
            if self.moving:
                continue
            with self._answering:
                late, self._in_hand = self._in_hand, []
                waiting, self._next = self._next, []
            with contextlib.suppress(System.Empty):
                while True:
                    waiting.append(self._queue.get_nowait())
            late = late + [item for item in waiting if isinstance(item, tuple)]
            for item in waiting:  # tasks, and the word to end, are still to be done
                if not isinstance(item, tuple):
                    self._queue.put(item)
            reason = Unavailable(f"the database has not answered for {self._stall:g} s")
            _deliver(late, [reason] * len(late))

    def _guarded(self, task: Callable[[Journal], object], journal: Journal) -> bool:
        try:
            task(journal)
        except Exception:
            if self.healthy:
                log.exception("a task of the writer failed")
            self.healthy = False
            return False
        return True


def _deliver(groups: list[_Submitted], outcomes: Sequence[Appended]) -> None:
    for via in {via: None for _, _, via in groups}:
        pairs = [(done, outcome) for (_, done, mine), outcome in zip(groups, outcomes) if mine == via]

        def every(pairs: list[tuple[Done, Appended]] = pairs) -> None:
            for done, outcome in pairs:
                done(outcome)

        if via is None:
            every()
        else:
            with contextlib.suppress(RuntimeError):  # its loop is closed: no request waits any more
                via(every)
