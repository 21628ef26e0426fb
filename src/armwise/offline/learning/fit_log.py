"""Learn from a log, in one pass or in parts on a Dask cluster that are merged."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from armwise.agents.linear.staged.staging import Staged
from armwise.core.agent import Agent, Choices
from armwise.core.capabilities.merging import Merging, can_merge, why_not_merged
from armwise.core.tools.extras import needs
from armwise.offline.evaluation.targets import views
from armwise.offline.logs.log import Log
from armwise.offline.logs.rows import LogBlock, WeakLogWarning

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.deploy.cluster import Cluster

A = TypeVar("A", bound=Agent)
_ENGINES = 'None, "dask" (the Client that is current), "dask://host:port", a Dask Client or a Dask cluster'


def fit_log(
    agent: A, log: Log | Sequence[Log], *, engine: str | Client | Cluster | None = None, part: int = 65_536
) -> A:
    """Train the agent on a log's rows, as if it had drawn each logged arm with the logged probability itself.

    ``log`` is one, or several that follow each other (a file each, say). Without an ``engine`` the rows are learnt in
    one pass. On a Dask cluster each part of ``part`` rows is learnt by a fresh agent of the same settings, the parts at
    the same time, and the agents are merged in order: equal to one pass up to rounding, for agents that ``merge``.
    Of several logs each is a part, read where it is learnt: files that the workers can see are best given so.

    A service's log is learnt by age, as it is judged; how many decisions are left out, and why, is a warning.
    The agent itself is taught, and returned; if a row is refused nothing is learnt. What was learnt before counts too.

    >>> import armwise as aw
    >>> log = Log(contexts=np.eye(2), arms=[0, 1], rewards=[1.0, 0.0], probabilities=[0.5, 0.5])
    >>> agent = fit_log(aw.LinUCB(dim=2, n_arms=2, alpha=0.0, lam=1.0), log)
    >>> agent.t, agent.estimate([1.0, 0.0])[0]
    (3, array([0.5, 0. ]))
    """
    logs = [log] if isinstance(log, Log) else list(log)
    if not all(isinstance(each, Log) for each in logs):
        raise ValueError(f"log must be a Log, or several, got {type(log).__name__} {log!r:.80}")
    if isinstance(agent, Staged):
        raise ValueError(f"{type(agent).__name__} learns only what its own choices put into a stage: no log does")
    for each in logs:
        if each.cohort is not None and each.cohort.left_out:
            warnings.warn(WeakLogWarning(f"learnt by age: {each.cohort}"), stacklevel=2)
    learner: Any = copy.deepcopy(agent)
    if engine is None:
        _learn_logs(learner, logs, part)
        if isinstance(learner, Merging):
            learner._renew()  # as merging does
    else:
        if not can_merge(agent):
            raise ValueError(f"engine is {engine!r:.60}, which needs parts that are merged: {why_not_merged(agent)}")
        with _client(engine) as client:
            for taught in _parts(client, agent, logs, part):
                learner.merge(taught)
    agent.__dict__.update(learner.__dict__)
    return agent


def _learn_logs(agent: Agent, logs: Sequence[Log], part: int) -> Agent:
    for log in logs:
        for rows in log.batches(part):
            _learn_rows(agent, rows)
    return agent


def _learn_rows(agent: Agent, rows: LogBlock) -> Agent:
    contexts: Any = None if agent.sees == "nothing" else views(agent.sees, rows)
    arms = rows.arms
    if rows.available is not None and agent.sees == "features":  # an arm is where it stands among those on offer
        contexts = [X[offered] for X, offered in zip(contexts, rows.available)]
        arms = np.array([np.count_nonzero(offered[:arm]) for offered, arm in zip(rows.available, arms)], np.int64)
    try:
        agent.learn_many(contexts, Choices(arms, rows.probabilities), rows.rewards)
    except ValueError as error:
        raise ValueError(f"log, rows from {rows.start}: {error}") from None
    return agent


# ---------------------------------------------------------------------- on a cluster


@contextlib.contextmanager
def _client(engine: Any) -> Iterator[Client]:
    with needs("dask"):
        from distributed import Client
        from distributed.deploy.cluster import Cluster

    if isinstance(engine, Client):
        yield engine
    elif engine == "dask":
        try:
            client = Client.current()  # type: ignore[no-untyped-call]
        except ValueError:
            raise ValueError(
                'engine is "dask", but there is no current Client: make one with distributed.Client(...), or name the '
                'scheduler, engine="dask://host:port"'
            ) from None
        yield client
    elif isinstance(engine, Cluster) or (isinstance(engine, str) and engine.startswith("dask://")):
        where = "tcp://" + engine.removeprefix("dask://") if isinstance(engine, str) else engine
        with Client(where) as client:  # type: ignore[no-untyped-call]
            yield client
    else:
        raise ValueError(f"engine must be {_ENGINES}, got {type(engine).__name__} {engine!r:.80}")


def _parts(client: Client, agent: A, logs: Sequence[Log], part: int) -> Iterator[A]:
    """The agents learnt from each part, in order; only some parts are sent at a time, so that memory stays flat."""
    fresh = agent.clone(seed=0)
    ahead = 2 * max(1, len(client.scheduler_info()["workers"]))
    if len(logs) > 1:
        calls: Iterator[tuple[Any, ...]] = ((_learn_logs, fresh, [log], part) for log in logs)
    else:
        calls = ((_learn_rows, fresh, rows) for log in logs for rows in log.batches(part))
    waiting: list[Future[A]] = []
    try:
        for call in calls:
            if len(waiting) == ahead:
                yield waiting.pop(0).result()
            waiting.append(client.submit(*call, pure=False))
        while waiting:
            yield waiting.pop(0).result()
    finally:
        client.cancel(waiting)  # type: ignore[no-untyped-call]
