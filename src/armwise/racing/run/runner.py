"""Run races in parallel: in threads, in processes or on a Dask cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Agent, count
from armwise.core.tools.cluster import ENGINES, check_dask, dask_client, is_dask
from armwise.core.tools.extras import needs
from armwise.core.tools.progress import progress_bar
from armwise.environments.environment import Environment
from armwise.racing.results.result import Result
from armwise.racing.results.results import Results
from armwise.racing.run.checkpoints import Store
from armwise.racing.run.heat import Heat, Player, Run, Stretch, one_thread_each, play_seed
from armwise.racing.run.workers import side_by_side

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy.cluster import Cluster

Task = tuple[Heat, list[str], int]


class RaceWarning(UserWarning):
    """Some runs of a race failed; the message names them.

    >>> issubclass(RaceWarning, UserWarning)
    True
    """


class RaceError(RuntimeError):
    """Every run of a race failed; the message names the first, and ``results`` has all of them with their tracebacks.

    >>> issubclass(RaceError, RuntimeError)
    True
    """

    def __init__(self, message: str, results: list[Result]) -> None:
        super().__init__(message)
        self.results = results


Agents = Mapping[str, Agent] | Mapping[str, Ranker] | Sequence[Agent] | Sequence[Ranker]
Metrics = Mapping[str, Callable[[Stretch], Any]]
Keep = Literal["agents", "arms"]


@overload
def race(
    agents: Agents | Callable[[Any], Agents], world: Environment, *, horizon: int, seeds: int | Iterable[int] = 10,
    workers: int = 1, engine: str | Client | Cluster = "auto", checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None, name: str = "", command: str = "", rounds: Iterable[int] | None = None,
    metrics: Metrics | None = None, callbacks: Sequence[Callable[[Stretch], None]] = (), keep: Iterable[Keep] = (),
) -> Result: ...  # fmt: skip
@overload
def race(
    agents: Agents | Callable[[Any], Agents], world: Mapping[str, Environment] | Sequence[Environment], *, horizon: int,
    seeds: int | Iterable[int] = 10,
    workers: int = 1, engine: str | Client | Cluster = "auto", checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None, name: str = "", command: str = "", rounds: Iterable[int] | None = None,
    metrics: Metrics | None = None, callbacks: Sequence[Callable[[Stretch], None]] = (), keep: Iterable[Keep] = (),
) -> Results: ...  # fmt: skip
def race(
    agents: Agents | Callable[[Any], Agents],
    world: Environment | Mapping[str, Environment] | Sequence[Environment],
    *,
    horizon: int,
    seeds: int | Iterable[int] = 10,
    workers: int = 1,
    engine: str | Client | Cluster = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    name: str = "",
    command: str = "",
    rounds: Iterable[int] | None = None,
    metrics: Metrics | None = None,
    callbacks: Sequence[Callable[[Stretch], None]] = (),
    keep: Iterable[Keep] = (),
) -> Result | Results:
    """Race agents on a world: every agent meets the same worlds, one for each seed.

    Several worlds, in a dict or a list, give ``Results``; ``agents`` may then be a function that makes the agents for a
    world (``aw.racing.variants`` makes grids of agents or worlds). ``rounds`` chooses the rounds at which curves are
    recorded. A function in ``metrics`` gets a ``Stretch`` of played rounds and returns one number per round, which is
    accumulated like regret (``result.metric``). A function in ``callbacks`` gets the same and returns nothing. Both are
    called in the worker that runs the race. ``keep=["agents", "arms"]`` keeps the agents after the last round
    (``result.final``) and the arms of every round (``result.arms``).

    ``engine`` is ``"threads"`` (compiled blocks release the GIL), ``"processes"``, ``"dask"`` (the current client),
    ``"dask://host:port"``, a running Dask ``Client`` or cluster (it is left open), or ``"auto"``: threads if all agents
    play blocks in compiled code, else processes. ``checkpoint`` is a folder of finished runs: the same call continues
    an interrupted race, and repeats runs whose code or settings have changed. Runs that fail are reported in
    ``result.failures`` and in a ``RaceWarning``; if all fail, ``RaceError`` is raised.

    >>> import armwise as aw
    >>> world = aw.environments.Linear(n_arms=5, dim=4)
    >>> agents = {"LinUCB": aw.LinUCB(dim=4, alpha=0.3), "Exp3": aw.Exp3(n_arms=5)}
    >>> result = aw.race(agents, world, horizon=500, seeds=3)
    >>> result.table()["agent"].tolist()
    ['LinUCB', 'Exp3']
    """
    horizon, kept = count("horizon", horizon), tuple(sorted(set(keep)))
    if not set(kept) <= {"agents", "arms"}:
        raise ValueError(f'keep must hold "agents", "arms" or both, got {list(keep)}')
    recorded = None if rounds is None else tuple(sorted({count("rounds", each) for each in rounds}))
    if recorded is not None and (not recorded or recorded[-1] > horizon):
        raise ValueError(f"rounds must lie in 1, ..., horizon = {horizon}, got {recorded[-1] if recorded else 'none'}")
    worlds = {name: world} if isinstance(world, Environment) else _worlds(world)
    for each in worlds.values():
        count(f"{type(each).__name__}.n_arms", getattr(each, "n_arms", None))
    if not isinstance(metrics or {}, Mapping) or not all(map(callable, (metrics or {}).values())):
        raise ValueError(f"metrics must be a dict of name: function, got {type(metrics).__name__} {metrics!r:.80}")
    if taken := _COLUMNS & set(metrics or {}):
        raise ValueError(f"metrics must not have the names of recorded columns, got {sorted(taken)}")
    if not all(map(callable, callbacks)):
        raise ValueError(f"callbacks must be a list of functions, got {callbacks!r:.80}")
    heats = [
        Heat(each, named(agents(each) if callable(agents) else agents), horizon, label, recorded=recorded,
             metrics=dict(metrics or {}), callbacks=tuple(callbacks), keep=kept)
        for label, each in worlds.items()
    ]  # fmt: skip
    results = race_all(heats, seeds=seeds, workers=workers, engine=engine, checkpoint=checkpoint, progress=progress,
                       command=command)  # fmt: skip
    return results[0] if isinstance(world, Environment) else Results(results)


def _check_kinds(heat: Heat) -> None:
    """Rankers play worlds of lists, of as many arms and slots as they were made for; agents all others."""
    lists = heat.world.n_slots is not None
    for name, agent in heat.agents.items():
        if isinstance(agent, Ranker) != lists:
            needed = "a ranker (aw.SlotBySlot makes one of any agent)" if lists else "an agent: a round shows one arm"
            raise ValueError(f"agents[{name!r}] must be {needed} on {heat.label}, got {type(agent).__name__}")
        if not isinstance(agent, Ranker):
            continue
        if agent.sees == "nothing" and agent.n_arms != heat.world.n_arms:
            arms = f"the {heat.world.n_arms} arms of {heat.label}, got n_arms={agent.n_arms}"
            raise ValueError(f"agents[{name!r}] must rank {arms}")
        if agent.n_slots is not None and heat.world.n_slots is not None and agent.n_slots < heat.world.n_slots:
            slots = f"the {heat.world.n_slots} slots of {heat.label}, got n_slots={agent.n_slots}"
            raise ValueError(f"agents[{name!r}] must fill {slots}")


# Columns of ``Result.curves``: a metric with such a name would hide one.
_COLUMNS = {"world", "agent", "seed", "round", "regret", "reward", "seconds", "cost"}


def _worlds(worlds: Any) -> dict[str, Environment]:
    """Name the worlds; a list gets the names of the classes, numbered where a class occurs twice."""
    if not isinstance(worlds, (Mapping, Sequence)) or isinstance(worlds, str):
        raise ValueError(f"world must be an environment, or several in a dict or a list, got {worlds!r:.80}")
    found = dict(worlds) if isinstance(worlds, Mapping) else _numbered_names(worlds)
    for name, world in found.items():
        if not isinstance(world, Environment):
            raise ValueError(f"world[{name!r}] must be an environment, got {type(world).__name__} {world!r:.80}")
    if not found:
        raise ValueError("world must be an environment, or at least one in a dict or a list")
    return found


def _numbered_names(things: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for thing in things:
        base = type(thing).__name__
        same = sum(1 for name in found if name == base or name.startswith(f"{base} "))
        found[f"{base} {same + 1}" if same else base] = thing
    return found


def race_all(
    heats: Sequence[Heat],
    *,
    seeds: int | Iterable[int] = 10,
    workers: int = 1,
    engine: str | Client | Cluster = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    command: str = "",
) -> list[Result]:
    """Race several heats together, so that no worker idles until the last run of a heat.

    >>> import armwise as aw
    >>> heat = Heat(aw.environments.Switching(n_arms=3), {"Exp3": aw.Exp3(n_arms=3)}, horizon=100)
    >>> [len(result.runs) for result in race_all([heat, heat], seeds=2)]
    [2, 2]
    """
    for heat in heats:
        _check_kinds(heat)
    if isinstance(seeds, Iterable) and not isinstance(seeds, str):
        numbers = [count("a seed", seed, least=0) for seed in seeds]
    else:
        numbers = list(range(count("seeds", seeds)))
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"seeds must be a number, or different whole numbers, got {numbers}")
    workers, work = count("workers", workers), _engine(engine, heats)
    store = None if checkpoint is None else Store(checkpoint)
    done, tasks = _plan(heats, numbers, workers, store)
    left = sum(len(names) for _, names, _ in tasks)
    bar = progress_bar(left + sum(map(len, done)), "run", show=progress, initial=sum(map(len, done)))
    with one_thread_each():
        for index, runs in work([(heats[i], names, seed) for i, names, seed in tasks], workers):
            i = tasks[index][0]
            for run in runs:
                if store is not None:
                    store.save(heats[i], run)
                done[i].append(run)
            bar.update(len(runs))
    bar.close()
    results = []
    for heat, runs in zip(heats, done, strict=True):
        order = {name: n for n, name in enumerate(heat.agents)}
        runs.sort(key=lambda run: (order[run.agent], run.seed))
        for run in runs:
            run.arms = run.arms if run.seed == numbers[0] or "arms" in heat.keep else None
        results.append(Result(heat, numbers, runs, command=command))
    _complain(results)
    return results


def _plan(
    heats: Sequence[Heat], seeds: list[int], workers: int, store: Store | None
) -> tuple[list[list[Run]], list[tuple[int, list[str], int]]]:
    """Split the work into finished runs, by heat, and remaining tasks, each a heat, some agents and a seed."""
    done: list[list[Run]] = [[] for _ in heats]
    tasks: list[tuple[int, list[str], int]] = []
    for seed in seeds:
        for i, heat in enumerate(heats):
            missing = []
            for name in heat.agents:
                run = None if store is None else store.load(heat, name, seed)
                if run is None:
                    missing.append(name)
                else:
                    done[i].append(run)
            tasks += [(i, part, seed) for part in _parts(missing, len(heats) * len(seeds), workers)]
    return done, tasks


def named(agents: Agents) -> dict[str, Player]:
    """Name the agents; a list gets the names of the classes, numbered where a class occurs twice."""
    if isinstance(agents, (Agent, Ranker, str)) or not isinstance(agents, (Mapping, Iterable)):
        raise ValueError(f"agents must be a dict of name: agent, or a list of agents, got {agents!r:.80}")
    found: dict[str, Any] = dict(agents) if isinstance(agents, Mapping) else _numbered_names(agents)
    if not found:
        raise ValueError("agents must not be empty: give a dict of name: agent, or a list of agents")
    for name, agent in found.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"agents must have names, got {name!r} for {agent!r:.80}")
        if not isinstance(agent, (Agent, Ranker)):
            raise ValueError(f"agents[{name!r}] must be an agent, got {type(agent).__name__} {agent!r:.80}")
    return found


def _parts(names: list[str], n_worlds: int, workers: int) -> list[list[str]]:
    """Keep the agents of one world and seed in one task, so that the world is made once, unless workers would idle."""
    if not names:
        return []
    pieces = min(len(names), max(1, -(-2 * workers // n_worlds) if workers > 1 else 1))
    return [names[i::pieces] for i in range(pieces)]


_ENGINES = f'"auto", "threads", "processes", {ENGINES}'
Dispatch = Callable[[list[Task], int], Iterator[tuple[int, list[Run]]]]


def _engine(engine: str | Client | Cluster, heats: Sequence[Heat]) -> Dispatch:
    if is_dask(engine):
        check_dask(engine, _ENGINES)
        return lambda tasks, workers: _dask(tasks, engine)
    assert isinstance(engine, str)
    name = engine
    if name == "auto":
        compiled = all(agent.compiled for heat in heats for agent in heat.agents.values())
        name = "threads" if compiled and not any(heat.world.adaptive for heat in heats) else "processes"
    backends: dict[str, Literal["threading", "loky"]] = {"threads": "threading", "processes": "loky"}
    if name not in backends:
        raise ValueError(f"engine must be {_ENGINES}, got {name!r}")
    return lambda tasks, workers: _local(tasks, workers, backends[name])


def _local(tasks: list[Task], workers: int, backend: Literal["threading", "loky"]) -> Iterator[tuple[int, list[Run]]]:
    if workers == 1:
        yield from ((i, play_seed(*task)) for i, task in enumerate(tasks))
        return
    yield from side_by_side(_numbered, ((i, *task) for i, task in enumerate(tasks)), workers, backend)


def _dask(tasks: list[Task], where: str | Client | Cluster) -> Iterator[tuple[int, list[Run]]]:
    with needs("dask"):
        from distributed import as_completed

    with dask_client(where) as client:
        # Scatter the world's data once per heat, not once per task.
        heats = {id(heat): heat for heat, _, _ in tasks}
        placed = dict(zip(heats, client.scatter(list(heats.values()), hash=False), strict=True))
        futures = [client.submit(_numbered, i, placed[id(heat)], names, seed, pure=False, retries=1)
                   for i, (heat, names, seed) in enumerate(tasks)]  # fmt: skip
        try:
            for _, answer in as_completed(futures, with_results=True):  # type: ignore[no-untyped-call]
                yield answer
        finally:
            client.cancel([future for future in futures if not future.done()])


def _numbered(index: int, heat: Heat, names: list[str], seed: int) -> tuple[int, list[Run]]:
    with one_thread_each():
        return index, play_seed(heat, names, seed)


def _complain(results: Sequence[Result]) -> None:
    failures = [line for result in results for line in result.failures]
    if failures:
        runs = sum(len(result.runs) for result in results)
        if len(failures) == runs:
            error = RaceError(f"all {runs} runs failed: {failures[0]}", list(results))
            error.add_note(results[0].runs[0].trace)
            raise error
        more = f" (and {len(failures) - 1} more: see result.failures)" if len(failures) > 1 else ""
        warnings.warn(f"{len(failures)} of {runs} runs failed: {failures[0]}{more}", RaceWarning, stacklevel=4)
