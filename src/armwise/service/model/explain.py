"""Explain a decision: the agent's estimate of each arm, and what each feature adds to it."""

from __future__ import annotations

from typing import Any

import msgspec

from armwise.core.agent import Floats
from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.service.model.model import DrawRequest, Model

Table = dict[str, dict[str, float]]


def explain(model: Model, context: bytes, arms: ArmColumns) -> tuple[Table, Table]:
    """Each arm's estimate, width and probability, and what each feature of the context and of the arm adds.

    What a name adds is the estimate with it minus the estimate without it. An agent that estimates nothing has only
    probabilities, and a name then adds to the probability.
    """
    chances = _chances(model, context, arms)
    means: Floats | None
    try:
        means, widths = model.estimate(context, arms)
    except ValueError:
        means = widths = None
    shown: Table = {}
    for i, name in enumerate(arms.ids):
        shown[name] = {} if means is None else {"estimate": float(means[i])}
        if widths is not None:
            shown[name]["width"] = float(widths[i])
        shown[name]["probability"] = float(chances[i])
    base = chances if means is None else means

    def without(context: bytes, arms: ArmColumns) -> Any:
        return _chances(model, context, arms) if means is None else model.estimate(context, arms)[0]

    names = _object(context)
    adds: Table = {name: {} for name in arms.ids}
    for key in names:
        rest = without(_except(names, key), arms)
        for i, name in enumerate(arms.ids):
            adds[name][key] = float(base[i] - rest[i])
    sent = [bytes(raw) for raw in arms.raws]
    for i, (name, text) in enumerate(zip(arms.ids, sent)):
        arm = msgspec.json.decode(text)
        features = _object(msgspec.json.encode(arm["features"])) if isinstance(arm, dict) and "features" in arm else {}
        for key in features:
            fewer = b'{"id":%s,"features":%s}' % (msgspec.json.encode(name), _except(features, key))
            rest = without(context, read_arms([*sent[:i], fewer, *sent[i + 1 :]]))
            adds[name][f"{name}.{key}"] = float(base[i] - rest[i])
    return shown, adds


def _chances(model: Model, context: bytes, arms: ArmColumns) -> Floats:
    [drawn] = model.decide([DrawRequest(context, arms, 0.0)])
    return drawn.p


def _object(text: bytes) -> dict[str, msgspec.Raw]:
    """The members of an object as they were written; a list of objects has none."""
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return {}


def _except(members: dict[str, msgspec.Raw], key: str) -> bytes:
    return msgspec.json.encode({name: value for name, value in members.items() if name != key})
