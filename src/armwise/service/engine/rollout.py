"""The named versions of an application's model: make one, give it a share of the decisions, promote, roll back, remove.

Each is one event in the journal (of every database); whoever folds it has the same versions. Two changes at the same
time are a Conflict, for the event that a change was made after is part of its idempotency key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from armwise.core.capabilities.revising import can_revise
from armwise.features.encoding.arms import check_id
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.errors import Conflict, Unknown
from armwise.service.journal.events import Creation, Version
from armwise.service.journal.writes import Write
from armwise.service.model.build import build_model
from armwise.service.model.merged_views import check_merges
from armwise.service.model.trial import check_creation
from armwise.service.model.versions import MAX_VERSIONS, by_role, role

if TYPE_CHECKING:
    from armwise.service.engine.interface import ServedEngine
    from armwise.service.model.model import Model


def versions(engine: ServedEngine, app: str) -> list[dict[str, Any]]:
    """All versions, the leading one first."""
    leader = engine.model(app)
    rest = 1.0 - sum(one.share for one in leader.versions.values())
    found: list[dict[str, Any]] = [_shown(leader) | {"leads": True, "share": rest}]
    for one in leader.versions.values():
        shown = {"leads": False, "share": one.share}
        found.append(_shown(one.model) | shown | ({"broken": one.broken} if one.broken else {}))
    return found


def _shown(model: Any) -> dict[str, Any]:
    return {"name": model.name, "agent": repr(model.agent), "since": model.since, "lessons": model.lessons,
            "refused": model.refused, "learns": model.learns}  # fmt: skip


def add_version(engine: ServedEngine, app: str, name: str, creation: Creation, share: float = 0.0) -> None:
    """Add a version beside the leading one, trained on the application's journal."""
    leader = engine.model(app)
    check_id("the version's name", name)
    if not role(name):
        raise InvalidInput(f"name must not be v and a number, which are those of unnamed versions, got {name!r}")
    if name in leader.versions:
        raise Conflict(f"{app} has a version {name} already: remove it first, or take another name")
    if len(leader.versions) >= MAX_VERSIONS:
        raise Conflict(f"{app} has {MAX_VERSIONS} versions beside the one that leads, which is the most: remove one")
    if creation.rewards != leader.rewards or (leader.arms and creation.arms != leader.arms):
        raise InvalidInput("a version must have the arms and rewards of the application")
    _check_share(leader, name, share)
    made = msgspec.structs.replace(creation, settings=_neutral(creation, leader))
    check_creation(made)
    if len(engine.each) > 1:
        check_merges(app, made)
    _change(engine, app, Version(name, made=made, share=share))


def _neutral(creation: Creation, leader: Any) -> Any:
    """The application's settings that a version's agent can have."""
    able = can_revise(build_model(msgspec.structs.replace(creation, settings=type(leader.settings)())).agent)
    return leader.settings if able else msgspec.structs.replace(leader.settings, learn="")


def share_version(engine: ServedEngine, app: str, name: str, share: float) -> None:
    """Let a version make a share of the decisions from now on; with 0 it is only asked (shadow mode)."""
    leader = engine.model(app)
    _found(engine, app, name)
    _check_share(leader, name, share)
    _change(engine, app, Version(name, share=share))


def promote(engine: ServedEngine, app: str, name: str) -> None:
    """Let a version lead from now on; the one that led stays beside it, learns on, and can be promoted again."""
    challenger = _found(engine, app, name)
    if challenger.broken:
        raise Conflict(f"version {name} could not take in event {challenger.broken}: see the log")
    _change(engine, app, Version(name, promote=True))


def roll_back(engine: ServedEngine, app: str) -> str:
    """Undo the last promotion; return the name of the version that leads again."""
    leader = engine.model(app)
    previous = leader.previous
    if not previous or previous not in leader.versions:
        raise Conflict(f"{app} has no version that led before {leader.name}")
    promote(engine, app, previous)
    return str(previous)


def remove_version(engine: ServedEngine, app: str, name: str) -> None:
    """Remove a version that does not lead; the journal can train it again."""
    _found(engine, app, name)
    _change(engine, app, Version(name, remove=True))


def _found(engine: ServedEngine, app: str, name: str) -> Any:
    leader = engine.model(app)
    if name == leader.name:
        raise Conflict(f"version {name} leads: promote another first")
    if name not in leader.versions:
        raise Unknown(f"{app} has no version called {name}; there are {', '.join([leader.name, *leader.versions])}")
    return leader.versions[name]


def _check_share(leader: Any, name: str, share: float) -> None:
    others = sum(one.share for each, one in leader.versions.items() if each != name)
    if not 0.0 <= share <= 1.0 - others + 1e-12:  # False for NaN
        raise InvalidInput(f"share must lie in [0, {1.0 - others:g}], what other versions leave, got {share}")


def _change(engine: ServedEngine, app: str, event: Version) -> None:
    """Journal it in every database, after what it was asked for; one that was reached before has it done already."""
    roles = {name: key for key, name in by_role(engine.model(app), also_leader=True).items()}
    with engine.merging:  # a change that has not reached all of them is not merged
        for each in engine.each:
            known = each.model(app)
            name = by_role(known, also_leader=True).get(roles.get(event.name, ""), event.name)
            change = msgspec.structs.replace(event, name=name)
            write = Write(app, "", change, f"version {max(known.since, known.versions_changed_at)}")
            try:
                each.wait_learnt(each.writer.write([write])[0].row.seq)
            except Conflict:
                if len(engine.each) == 1 or not _done(each.learner.served[app], change):
                    raise
        engine.merge()


def _done(leader: Model, event: Version) -> bool:
    """Return whether a change is already in force."""
    there = leader.versions.get(event.name)
    if event.promote:
        return leader.name == event.name
    if event.remove:
        return there is None
    return there is not None and (event.share is msgspec.UNSET or there.share == event.share)
