"""What an engine does between recovering from its journal and its first request."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import msgspec

from armwise.features.arms import check_id
from armwise.serve.journal.append import Write
from armwise.serve.model.build import build_model
from armwise.serve.model.trial import rehearse, tried

if TYPE_CHECKING:
    from armwise.serve.engine.engine import Engine

log = logging.getLogger("armwise.serve")
_CREATED = "SELECT max(seq) FROM events WHERE app = ? AND kind = 'create'"


def create(engine: Engine) -> None:
    """Journal the applications that are new, or configured otherwise than before; InvalidInput before anything is."""
    for app, creation in engine.creations.items():
        check_id("the application's name", app)
        build_model(creation)
    changed = []
    for app, creation in engine.creations.items():
        body = msgspec.json.encode(creation)
        made = engine._reader.created(app)
        if made == body:
            continue
        tried(creation)
        if made is not None:
            log.warning("the configuration of %s changed: its model begins anew", app)
        changed.append(Write(app, "", creation))
    if changed:
        engine.writer.write(changed)
    engine.learner.catch_up()


def await_applications(engine: Engine) -> None:
    """A process that does not lead has its models from the one that does."""
    for _ in range(600):
        missing = [app for app in engine.creations if app not in engine.models and not _lost(engine, app)]
        if not missing:
            return
        time.sleep(0.1)
    raise RuntimeError(f"the process that leads does not serve {missing[0]!r}")


def _lost(engine: Engine, app: str) -> bool:
    """Whether an application was created before what is learnt here, and yet has no model."""
    made = engine._reader.connection.execute(_CREATED, (app,))[0][0]
    return app in engine.learner.broken or (made is not None and made <= engine.learner.position)


def warm(engine: Engine) -> None:
    """Compile what decisions and lessons need before the first ones come; an application that breaks is withheld."""
    for app, model in engine.models.items():
        twin = model.copy()
        try:
            for k in range(2):
                rehearse(twin, k)
        except (ValueError, ArithmeticError) as error:  # wishes of its own for the context: compiled when first asked
            log.debug("not warmed: %s", error)
        except Exception as error:
            log.exception("%s cannot be served", app)
            engine.learner.withhold(app, f"it does not decide: {error}")
