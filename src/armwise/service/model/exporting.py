"""The policy of an application, as it is now."""

from __future__ import annotations

from armwise.core.capabilities.optimism import optimism_of
from armwise.core.policy_document import CannotExport, Policy, describe
from armwise.export.hashed_encoder import hashed_encoder
from armwise.service.model.inside import copied
from armwise.service.model.model import Model


def exported(model: Model, application: str) -> Policy:
    """The policy of a model; ``CannotExport`` where a share of the decisions belongs to other versions."""
    shared = [name for name, version in model.versions.items() if version.share > 0.0]
    if shared:
        raise CannotExport(
            f"{application} decides by a mixture: the versions {shared} have a share of the decisions; "
            "set their share to 0, promote one, or remove them first"
        )
    agent, encoder = model.agent, model.encoder
    if model.alone is not None and model.alone.decides:
        agent, encoder = copied(agent), model.alone.encoder
        optimism = optimism_of(agent)
        assert optimism is not None
        optimism.take_ridge(model.alone.ridge)
    frozen = agent.freeze()
    sees = "nothing" if frozen.rule["kind"] == "fixed" else model.agent.sees
    arms = model.arms or None
    if arms is None and sees != "features":
        arms = [str(a) for a in range(model.agent.n_arms or 0)]
    made = None if sees == "nothing" else hashed_encoder(encoder, model.scaler)
    ramp = model.counts.exported(model.settings.new_arms) if model.agent_view.any_arms else None
    return describe(
        frozen, agent=repr(model.agent), sees=sees, encoder=made, arms=arms,
        application=application, version=model.name, position=model.version, lessons=model.lessons,
        ramp=ramp,
    )  # fmt: skip
