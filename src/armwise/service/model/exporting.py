"""The policy of an application, as it is now."""

from __future__ import annotations

from armwise.core.exporting import CannotExport, Policy, describe
from armwise.export.hashed import hashed_encoder
from armwise.service.model.model import Model


def exported(model: Model, application: str) -> Policy:
    """The policy of a model; ``CannotExport`` where a share of the decisions belongs to other versions.

    >>> from armwise.service.journal.events import Creation
    >>> from armwise.service.model.build import build_model
    >>> exported(build_model(Creation()), "shop").document["application"]
    'shop'
    """
    shared = [name for name, version in model.versions.items() if version.share > 0.0]
    if shared:
        raise CannotExport(
            f"{application} decides by a mixture: the versions {shared} have a share of the decisions; "
            "set their share to 0, promote one, or remove them first"
        )
    frozen = model.agent.freeze()
    sees = "nothing" if frozen.rule["kind"] == "fixed" else model.agent.sees
    arms = model.arms or None
    if arms is None and sees != "features":
        arms = [str(a) for a in range(model.agent.n_arms or 0)]
    encoder = None if sees == "nothing" else hashed_encoder(model.encoder, model.scaler)
    return describe(
        frozen, agent=repr(model.agent), sees=sees, encoder=encoder, arms=arms,
        application=application, version=model.name, position=model.version, lessons=model.lessons,
    )  # fmt: skip
