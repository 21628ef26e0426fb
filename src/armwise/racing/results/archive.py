"""Save, load and merge the results of races: more seeds, other agents, other machines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core import saving
from armwise.core.saving import Saved
from armwise.environments.environment import Environment
from armwise.racing.run.fingerprint import fingerprint
from armwise.racing.run.heat import Heat, Player, Run

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

_FIELDS = ("agent", "seed", "regret", "reward", "counts", "seconds", "arms", "error", "trace", "seconds_at", "metrics",
           "stopped_at", "answer")  # fmt: skip


class SavedRace(Saved):
    """The content of a result file: runs as arrays, and the world and agents where they have a file format."""

    _namespace = "racing.archive."

    def __init__(self, heats: list[dict[str, Any]]) -> None:
        self.heats = heats


def save(results: list[Result], path: str | os.PathLike[str]) -> None:
    """Write these results into one file (see ``Result.save``)."""
    saving.save(SavedRace([_packed(result) for result in results]), path)


def _packed(result: Result) -> dict[str, Any]:
    heat = result.heat
    return {
        "world": _bytes(heat.world), "world_words": repr(heat.world), "horizon": heat.horizon, "name": heat.label,
        "agents": {name: _bytes(agent) for name, agent in heat.agents.items()}, "about": heat.about,
        "rounds": result.rounds, "keep": list(heat.keep), "seeds": list(result.seeds), "command": result.command,
        "runs": [{name: getattr(run, name) for name in _FIELDS}
                 | {"final": None if run.final is None else _bytes(run.final)} for run in result.runs],
    }  # fmt: skip


def _bytes(thing: Saved) -> np.ndarray | None:
    """Serialise an object, or return None if it has no file format (if it holds a lambda, for example)."""
    try:
        return np.frombuffer(saving.dumps(thing), np.uint8)
    except (ValueError, TypeError, AttributeError):
        return None


def load(
    path: str | os.PathLike[str],
    agents: Mapping[str, Player] | None = None,
    world: Environment | Mapping[str, Environment] | None = None,
) -> list[Result]:
    """Read the results of a file (see ``Result.load``)."""
    saved = saving.load(path)
    if not isinstance(saved, SavedRace):
        raise saving.LoadError(f"{os.fspath(path)} holds a {type(saved).__name__}, not a race")
    return [_unpacked(each, dict(agents or {}), world, os.fspath(path)) for each in saved.heats]


def _unpacked(data: dict[str, Any], agents: dict[str, Player], world: Any, path: str) -> Result:
    from armwise.racing.results.result import Result

    given = world.get(data["name"]) if isinstance(world, Mapping) else world
    found = {
        name: agents.get(name) or _thing(raw, f"agents={{{name!r}: ...}}", path) for name, raw in data["agents"].items()
    }
    place = given or _thing(data["world"], f"world=... ({data['world_words']:.60})", path)
    runs = []
    for raw in data["runs"]:
        final = raw.pop("final")
        runs.append(Run(**raw, final=None if final is None else saving.loads(np.asarray(final).tobytes(), path)))
    heat = Heat(place, found, int(data["horizon"]), data["name"], about=data["about"], keep=tuple(data["keep"]),
                recorded=tuple(np.asarray(data["rounds"]).tolist()))  # fmt: skip
    return Result(heat, list(data["seeds"]), runs, command=data["command"])


def _thing(raw: Any, hint: str, path: str) -> Any:
    if raw is None:
        raise ValueError(f"{path}: an object could not be saved in it: pass it, {hint}")
    return saving.loads(np.asarray(raw).tobytes(), path)


def _same(mine: Player | Environment, theirs: Player | Environment) -> bool:
    """Return whether two agents or worlds are made with the same settings and data, whatever they have learnt."""
    if mine is theirs:
        return True
    return type(mine) is type(theirs) and fingerprint(mine.params()) == fingerprint(theirs.params())


def merge(first: Result, second: Result) -> Result:
    """Merge two results of one world (see ``Result.merge``)."""
    from armwise.racing.results.result import Result

    if not isinstance(second, Result):
        raise ValueError(f"only another Result can be merged, got {type(second).__name__} {second!r:.80}")
    for name, mine, theirs in (
        ("world", repr(first.world), repr(second.world)),
        ("horizon", first.horizon, second.horizon),
        ("recorded rounds", first.rounds.tolist(), second.rounds.tolist()),
    ):
        if mine != theirs:
            raise ValueError(f"only runs of one {name} can be merged, got {mine!s:.80} and {theirs!s:.80}")
    if not _same(first.world, second.world):  # a repr shows the shape of an array, not its values
        raise ValueError(
            f"only runs of one world can be merged: {first.world!r:.80} has different data in the two results"
        )
    for name in first.agents.keys() & second.agents.keys():
        if not _same(first.agents[name], second.agents[name]):
            raise ValueError(
                f"{name!r} is {first.agents[name]!r:.80} in one, {second.agents[name]!r:.80} in the other: rename one"
            )
    known = {(run.agent, run.seed): run for run in first.runs}
    for run in second.runs:
        other = known.get((run.agent, run.seed))
        if other is None or other.error:
            known[run.agent, run.seed] = run
        elif not run.error and not np.array_equal(run.regret, other.regret):
            raise ValueError(f"{run.agent!r} with seed {run.seed} has two different runs: one of them is stale")
    agents = {**first.agents, **second.agents}
    seeds = sorted({*first.seeds, *second.seeds})
    order = {name: n for n, name in enumerate(agents)}
    runs = sorted(known.values(), key=lambda run: (order[run.agent], run.seed))
    return Result(replace(first.heat, agents=agents), seeds, runs, command=first.command)
