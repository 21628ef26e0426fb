"""One pass over a log for the whole and for its segments: on this machine, or in parts on the workers of a cluster."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from armwise.core.tools.cluster import check_dask, dask_client
from armwise.offline.estimators.estimators import Estimator
from armwise.offline.estimators.reward_models import Crossfit, CrossfitRidge, RewardModel, RidgeSums, fitted_model
from armwise.offline.evaluation.settings import EvaluationSettings
from armwise.offline.evaluation.sums import Sums
from armwise.offline.evaluation.tally import Tally
from armwise.offline.evaluation.targets import Target
from armwise.offline.intervals.intervals import block_size
from armwise.offline.logs.checks.balance import Balance
from armwise.offline.logs.log import Log
from armwise.offline.logs.one_thread import one_thread
from armwise.offline.logs.row_progress import bar
from armwise.offline.logs.rows import LogBlock

_SEGMENTS = 100  # maximum of distinct values of a segment column
_PART = 1 << 22  # maximum of rows per part: the work lost when a worker dies
Advance = Callable[[int], object]


@dataclass
class Found:
    """The result of a pass over some rows."""

    whole: Sums
    balance: Balance
    segments: dict[str, Sums] = field(default_factory=dict)

    def merge(self, later: Found) -> None:
        """Merge the result of the rows after these."""
        self.whole.merge(later.whole)
        self.balance.merge(later.balance)
        for label, sums in later.segments.items():
            if label in self.segments:
                self.segments[label].merge(sums)
            else:
                self.segments[label] = sums
        _check_segments(self.segments)


class Pass:
    """A pass over a log for these pairs of an estimator and a target; ``go`` leaves tallies of the whole and segments.

    ``pairs`` are those to report; ``reported`` estimators need no target of their own.
    """

    def __init__(
        self, job: EvaluationSettings, pairs: list[tuple[Estimator, Target]], reward_model: Any, folds: int, seed: int,
        by: Any = None, cluster: Any = None, reported: tuple[Estimator, ...] = (),
    ) -> None:  # fmt: skip
        self._job, self._reward_model, self._folds, self._seed = job, reward_model, folds, seed
        self._targets = list(dict.fromkeys(t for _, t in pairs))
        self._pairs = [*pairs, *((e, self._targets[0]) for e in reported)]
        self._needs_model = any(e.needs_model for e, _ in pairs)
        self._by, self._cluster = _column("by", by, job.log), _column("cluster", cluster, job.log)
        self.whole = self._tally()
        self.segments: dict[str, Tally] = {}
        self.balance = Balance(job.log.n_arms, job.log.context_names)

    def _tally(self) -> Tally:
        return Tally(self._job, self._pairs, self._needs_model)

    def go(self, progress: bool, engine: Any = None) -> None:
        """Run the pass, after the one that fits the reward model."""
        if engine is not None:
            self._check(engine)
        with bar(self._job.log, 1 + self._needs_model, progress) as advance:
            found = self._here(advance) if engine is None else self._on_cluster(engine, advance)
        for name, values in (("by", self._by), ("cluster", self._cluster)):
            _check_length(name, values, self.whole.sums.n)
        self.balance = found.balance
        for tally in (self.whole, *self.segments.values()):
            tally.finish(self.balance, self.whole)

    def _here(self, advance: Advance) -> Found:
        with one_thread(self._job.log.streamed and self._reward_model is None):
            model = None
            if self._needs_model:
                model = fitted_model(self._reward_model, self._job.log, self._folds, self._seed, advance, self._cluster)
            return self.over(model, advance)

    def over(self, model: RewardModel | None, advance: Advance) -> Found:
        """The sums of all rows of the log."""
        for rows in self._batches(model):
            answers = {target: target.answers(rows) for target in self._targets}
            q = None if model is None else model.predict(rows)
            clusters = _values("cluster", self._cluster, rows)
            self.whole.add(rows, answers, q, clusters)
            if self._by is not None:
                self._add_segments(rows, answers, q, clusters)
            self.balance.add(rows)
            advance(len(rows))
        return Found(self.whole.sums, self.balance, {label: tally.sums for label, tally in self.segments.items()})

    def _batches(self, model: RewardModel | None) -> Iterator[LogBlock]:
        extra = tuple(dict.fromkeys(name for name in (self._by, self._cluster) if isinstance(name, str)))
        needed = model is not None or any(t.needs_contexts for t in self._targets)
        yield from self._job.batches(needed, extra)

    def _add_segments(self, rows: LogBlock, answers: Any, q: Any, clusters: Any) -> None:
        labels, which = np.unique(np.asarray(_values("by", self._by, rows)).astype(str), return_inverse=True)
        for i, label in enumerate(labels.tolist()):
            if label not in self.segments:
                self.segments[label] = self._tally()
                _check_segments(self.segments)
            mine = np.flatnonzero(which == i)
            part = replace(rows.take(mine), start=rows.start)
            own = {target: answer[mine] for target, answer in answers.items()}
            self.segments[label].add(part, own, None if q is None else q[mine],
                                     None if clusters is None else clusters[mine], rows.start + mine)  # fmt: skip

    # ------------------------------------------------------------------ on a cluster

    def _check(self, engine: Any) -> None:
        check_dask(engine)
        self._job.log.part(0, 0)  # refuses a log that cannot be split
        if self._job.in_order:
            raise ValueError(
                f"interval={self._job.interval!r} takes the rows one after the other, which no cluster can: ask for "
                "'cressie-read', 'normal', 'bernstein' or 'bootstrap', or leave engine out"
            )
        if self._needs_model and self._job.log.streamed and _is_fitted_in_memory(self._reward_model):
            raise ValueError(
                f"reward_model is a {type(self._reward_model).__name__}, which is fitted in memory: on a cluster "
                "leave it out (a ridge from sums that merge), or give a model that is fitted already, without fit"
            )

    def _on_cluster(self, engine: Any, advance: Advance) -> Found:
        log = self._job.log
        with dask_client(engine) as client:
            parts = [log.part(*ends) for ends in _ends(len(log), sum(client.nthreads().values()))]
            futures = _scattered(client, parts)
            model = self._model(client, parts, futures, advance) if self._needs_model else None
            self.balance.start(
                next(iter(self._batches(model)), LogBlock(np.empty(0, np.int64), np.empty(0), log.n_arms))
            )
            [shared] = _scattered(client, [self._without_rows()])
            found = Found(self.whole.sums, copy.deepcopy(self.balance))
            for part, later in zip(parts, _answers(client, _sums_of, futures, shared, model), strict=True):
                found.merge(later)
                advance(len(part))
        self.segments = {label: self._tally() for label in found.segments}
        for label, tally in self.segments.items():
            tally.sums = found.segments[label]
        return found

    def _model(self, client: Any, parts: list[Log], futures: list[Any], advance: Advance) -> RewardModel:
        asked = self._reward_model
        if asked is not None and not isinstance(asked, CrossfitRidge):
            return fitted_model(asked, self._job.log, self._folds, self._seed, advance, self._cluster)
        ridge = asked if asked is not None else CrossfitRidge(folds=self._folds, seed=self._seed)
        log = self._job.log
        ridge.over_clusters(self._cluster if log.streamed else _whole_column(log, self._cluster))
        sums = RidgeSums()
        for part, later in zip(parts, _answers(client, _ridge_sums_of, futures, ridge), strict=True):
            sums.merge(later)
            advance(len(part))
        return ridge.solve(sums)

    def _without_rows(self) -> Pass:
        """This pass for the workers, who have parts of the log: columns of a log in memory go along as arrays."""
        other = copy.copy(self)
        other._reward_model = None
        log = self._job.log
        if not log.streamed:
            other._by, other._cluster = (_whole_column(log, values) for values in (self._by, self._cluster))
        other._job = self._job.on(log.part(0, 0))
        other.whole = other._tally()
        return other

    def on(self, part: Log) -> Pass:
        """A pass of its own over a part of the log."""
        other = copy.copy(self)
        other._job, other.balance, other.segments = self._job.on(part), copy.deepcopy(self.balance), {}
        other.whole = other._tally()
        return other


def _sums_of(part: Log, shared: Pass, model: RewardModel | None) -> Found:
    with one_thread():
        return shared.on(part).over(model, lambda rows: None)


def _ridge_sums_of(part: Log, ridge: CrossfitRidge) -> RidgeSums:
    with one_thread():
        return ridge.sums(part)


def _scattered(client: Any, values: list[Any]) -> list[Any]:
    """The values on the cluster, each sent once."""
    try:
        return list(client.scatter(values, hash=False))
    except Exception as error:  # Dask does not keep the type of an error in unpickling
        raise ValueError(
            f"the workers of the cluster cannot load the policy or the log: {error} (install the modules they need "
            "there, or define the policy in the script itself, which travels with it)"
        ) from error


def _answers(client: Any, function: Any, parts: list[Any], *shared: Any) -> Iterator[Any]:
    """Yield the function's result for each part, in order."""
    futures = [client.submit(function, part, *shared, pure=False, retries=1) for part in parts]
    try:
        for i, future in enumerate(futures):
            answer = future.result()
            futures[i] = None  # the cluster may forget it
            yield answer
    finally:
        client.cancel([future for future in futures if future is not None])


def _ends(n: int, threads: int) -> list[tuple[int, int]]:
    """Return the bounds of parts: several per thread, each whole blocks of a bootstrap."""
    some, block = max(2 * threads, -(-n // _PART)), block_size(n)
    size = max(block, -(-n // (some * block)) * block)
    return [(first, min(first + size, n)) for first in range(0, n, size)] or [(0, 0)]


def _is_fitted_in_memory(model: Any) -> bool:
    return isinstance(model, Crossfit) or (
        not isinstance(model, CrossfitRidge) and hasattr(model, "fit") and hasattr(model, "predict")
    )


def _check_segments(segments: dict[str, Any]) -> None:
    if len(segments) > _SEGMENTS:
        raise ValueError(f"by has more than {_SEGMENTS} different values: group them into fewer first")


def _column(name: str, source: Any, log: Log) -> Any:
    """A column's name as it is; an array checked: how many rows a file has may only be known when they were read."""
    if source is None or isinstance(source, str):
        return source
    values = np.asarray(source)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}, expected one value per row, or the name of a column")
    if log.counted:
        _check_length(name, values, len(log))
    return values


def _check_length(name: str, values: Any, n: int) -> None:
    if isinstance(values, np.ndarray) and len(values) != n:
        raise ValueError(f"{name} has {len(values):,} values, but the log has {n:,} rows: expected one per row")


def _whole_column(log: Log, source: Any) -> Any:
    if not isinstance(source, str):
        return source
    return log.column(source)


def _values(name: str, source: Any, rows: LogBlock) -> Any:
    """The values of a column, or of an (n,) array, in these rows."""
    if source is None:
        return None
    if isinstance(source, str):
        assert rows.extra is not None
        return rows.extra[source]
    last = rows.start + len(rows)
    if last > len(source):
        raise ValueError(
            f"{name} has {len(source):,} values, but the log has {last:,} rows or more: expected one per row"
        )
    return source[rows.start : last]
