"""Copy the configuration of applications to a database that was added or missed a change."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from armwise.core import saving
from armwise.service.journal.errors import Damaged
from armwise.service.journal.events import Change, Creation, Version
from armwise.service.model.model import Model
from armwise.service.model.versions import by_role, role

if TYPE_CHECKING:
    from armwise.service.engine.engine import Engine

_VERSIONS = "SELECT seq FROM events WHERE app = ? AND kind = 'version' ORDER BY seq DESC"
_MADE = "SELECT max(seq) FROM events WHERE app = ? AND kind = 'create' AND kind IN ('create', 'configure')"


def copy_configuration(engine: Engine, pattern: Engine) -> None:
    """Journal in ``engine`` what its applications lack to be made and set as they are in ``pattern``.

    ValueError names an application that cannot be made so: its model was imported, or promoted from a version.
    """
    if engine is pattern:
        return
    for app in pattern.learner.served:
        copy_application(engine, pattern, app)


def copy_application(engine: Engine, pattern: Engine, app: str, anew: bool = False) -> None:
    """The same of one application; ``anew``: its model in ``engine`` has learnt nothing then."""
    there, made = pattern.learner.served[app], last_made(pattern, app)
    if made is None:
        return
    made = msgspec.structs.replace(made, settings=_settings(there))
    if app not in engine.learner.models:
        engine.apply({app: made}, only=False)
    own = last_made(engine, app)
    if anew or own is None or _parts(own) != _parts(made):
        engine.journal_change(app, msgspec.structs.replace(made, train=False), id="reset")
    _make_versions_alike(engine, pattern, app)
    if (change := _difference(engine.learner.models[app], there)) is not None:
        engine.journal_change(app, change)
    mine = engine.learner.models[app]
    if type(mine.agent) is not type(there.agent) or saving.differences(mine.agent.params(), there.agent.params()):
        raise ValueError(
            f"the model of {app} in {pattern.store} is not made as it was created (it was imported, or promoted): "
            f"make it so in the configuration, which trains it, before a database is added; it is {there.agent}"
        )


def _make_versions_alike(engine: Engine, pattern: Engine, app: str) -> None:
    there = pattern.learner.served[app]
    wanted = by_role(there, also_leader=True)

    def mine() -> Model:
        return engine.learner.models[app]

    def change(name: str, **what: Any) -> None:
        engine.journal_change(app, Version(name, **what))

    for name in filter(role, wanted.values()):
        if name not in (mine().name, *mine().versions) and (made := _version_made(pattern, app, name)) is not None:
            change(name, made=made, share=0.0)
    own = by_role(mine(), also_leader=True)
    lead = next(key for key, name in wanted.items() if name == there.name)
    if own.get(lead, mine().name) != mine().name:
        change(own[lead], promote=True)
    for key, name in own.items():
        if key not in wanted and name in mine().versions:
            change(name, remove=True)
    for key, name in by_role(mine()).items():
        other = there.versions.get(wanted.get(key, ""))
        if other is not None and not other.broken and mine().versions[name].share != other.share:
            change(name, share=other.share)
    if (role(mine().name), set(by_role(mine()))) != (role(there.name), set(by_role(there))):
        raise ValueError(
            f"{app} has versions in {pattern.store} that cannot be made elsewhere: {', '.join(there.versions)}; drop "
            "them, then add databases"
        )


def _version_made(engine: Engine, app: str, name: str) -> Creation | None:
    """The event that made a version, if the journal still has it."""
    with engine.reading as journal:
        seqs = journal.connection.execute(
            "SELECT seq FROM events WHERE app = ? AND kind = 'version' ORDER BY seq", (app,)
        )
        for (seq,) in reversed(seqs):
            with contextlib.suppress(Damaged):
                event = journal.row(seq).event
                if isinstance(event, Version) and event.name == name and event.made is not None:
                    return event.made
    return None


def last_made(engine: Engine, app: str) -> Creation | None:
    """The description that an application last had, by configuration or request."""
    with engine.reading as journal, contextlib.suppress(Damaged):
        seq = journal.connection.execute(_MADE, (app,))[0][0]
        event = journal.row(seq).event if seq is not None else None
        return event if isinstance(event, Creation) else None
    return None


def _settings(model: Model) -> msgspec.Struct:
    return msgspec.structs.replace(model.settings, forgotten=0)  # events are counted otherwise elsewhere


def _parts(made: Creation) -> Creation:
    return msgspec.structs.replace(made, settings=Creation().settings, train=True)


def _difference(mine: Model, there: Model) -> Change | None:
    old, new = mine.settings, there.settings
    names = [n for n in new.__struct_fields__ if n != "forgotten" and getattr(new, n) != getattr(old, n)]
    change = Change(**{name: getattr(new, name) for name in names})
    epsilon = getattr(there.agent, "epsilon", None)
    if isinstance(epsilon, float) and epsilon != getattr(mine.agent, "epsilon", None):
        change.epsilon = epsilon
    return change if change != Change() else None
