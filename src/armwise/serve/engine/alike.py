"""Makes the applications of one database what another's are: of one that is added, or that missed a change."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from armwise import persist
from armwise.serve.errors import Damaged
from armwise.serve.journal.events import Change, Creation
from armwise.serve.model.model import Model

if TYPE_CHECKING:
    from armwise.serve.engine.engine import Engine

_MADE = "SELECT max(seq) FROM events WHERE app = ? AND kind = 'create' AND kind IN ('create', 'configure')"


def make_alike(engine: Engine, pattern: Engine) -> None:
    """Journal in ``engine`` what its applications lack to be made and set as they are in ``pattern``.

    ValueError names an application that cannot be made so: its model was imported, or promoted from a version.
    """
    if engine is pattern:
        return
    for app in pattern.learner.served:
        make_one_alike(engine, pattern, app)


def make_one_alike(engine: Engine, pattern: Engine, app: str, anew: bool = False) -> None:
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
    if (change := _difference(engine.learner.models[app], there)) is not None:
        engine.journal_change(app, change)
    mine = engine.learner.models[app]
    if type(mine.agent) is not type(there.agent) or persist.differences(mine.agent.params(), there.agent.params()):
        raise ValueError(
            f"the model of {app} in {pattern.store} is not made as it was created (it was imported, or promoted): "
            f"make it so in the configuration, which trains it, before a database is added; it is {there.agent}"
        )


def last_made(engine: Engine, app: str) -> Creation | None:
    """What an application was last made of, by whomever."""
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
