"""The steps of an engine between recovery and its first request."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from armwise.features.encoding.arms import check_id
from armwise.service.journal.errors import Conflict, Damaged, Unavailable
from armwise.service.journal.events import CONFIG, Creation
from armwise.service.journal.writes import Write
from armwise.service.model.build import build_model
from armwise.service.model.trial import check_creation, rehearse

if TYPE_CHECKING:
    from armwise.service.engine.engine import Engine

log = logging.getLogger("armwise.service")
_CREATED = "SELECT max(seq) FROM events WHERE app = ? AND kind = 'create' AND kind IN ('create', 'configure')"


def apply(engine: Engine, creations: dict[str, Creation]) -> int:
    """Journal what a configuration changes; InvalidInput before anything is. The last event of it, 0 if there is none.

    Any process may: whoever leads folds it in. Changed settings keep what was learnt; an application that is made of
    something else is trained on what the journal has of it before it takes over.
    """
    if engine.adopt:
        creations = {app: _adopted(engine, app) or made for app, made in creations.items()}
        engine.creations.update(creations)
    for app, creation in creations.items():
        check_id("the application's name", app)
        build_model(creation)
    for _ in range(5):
        changed = []
        for app, creation in creations.items():
            try:
                if (write := _change(engine, app, creation)) is not None:
                    changed.append(write)
            except Damaged as error:
                log.error("the configuration of %s cannot be compared with what it was: %s", app, error)
        try:
            return int(engine.writer.write(changed)[-1].row.seq) if changed else 0
        except Conflict:  # another process was quicker: look again
            continue
    raise Unavailable("other processes change the configuration at the same time: try again")


def _adopted(engine: Engine, app: str) -> Creation | None:
    with contextlib.suppress(Damaged):
        return engine.configured(app)[1]
    return None


def _change(engine: Engine, app: str, creation: Creation) -> Write | None:
    seq, before = engine.configured(app)
    event = creation if before is None else creation.since(before)
    if event is None:
        return None
    if isinstance(event, Creation):
        check_creation(event)
        if before is not None:
            log.info("the configuration of %s changed: its model is trained on the journal", app)
    return Write(app, "" if isinstance(event, Creation) else CONFIG, event, f"config {seq}")


def await_applications(engine: Engine) -> None:
    """Wait for the models that the leading process publishes; until then requests are answered with 503."""
    for _ in range(600):
        missing = [app for app in engine.creations if app not in engine.models and not _lost(engine, app)]
        if not missing:
            return
        engine.system.sleep(0.1)
    log.warning("the process that leads does not serve %s yet", ", ".join(missing))


def _lost(engine: Engine, app: str) -> bool:
    """Return whether an application was created before the events learnt here but has no model."""
    with engine.reading as journal:
        made = journal.connection.execute(_CREATED, (app,))[0][0]
    return app in engine.learner.broken or (made is not None and made <= engine.learner.position)


def rehearse_models(engine: Engine) -> None:
    """Let a copy of each model decide and learn invented requests; withhold an application whose model fails."""
    for app, model in engine.models.items():
        twin = model.copy()
        try:
            for k in range(2):
                rehearse(twin, k)
        except (ValueError, ArithmeticError) as error:  # the agent needs a context of its own kind
            log.debug("%s was not rehearsed: %s", app, error)
        except Exception as error:
            log.exception("%s cannot be served", app)
            engine.learner.withhold(app, f"it does not decide: {error}")
