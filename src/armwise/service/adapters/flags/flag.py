"""A flag: an application whose arms have values, or an experiment."""

from __future__ import annotations

import functools
import hashlib
from typing import Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import ArmColumns, read_arms
from armwise.service.experiments.definition import KEY
from armwise.service.model.model import Model


class Flag(NamedTuple):
    """An application as a flag: its arms, the value of each, and the time for which a unit keeps its arm.

    An experiment's units keep their arms for as long as it lasts. ``control`` is an application's arm for the units
    that experiments hold out, if it has one.
    """

    arms: ArmColumns
    values: dict[str, Any]
    window: int  # milliseconds
    is_experiment: bool = False
    control: str = ""

    def decision(self, unit: str, now: int, back: int = 0) -> str:
        """The id of a unit's decision in this window, or ``back`` windows before."""
        return f"{own_decisions(unit)}{now // self.window - back}"


def own_decisions(unit: str) -> str:
    """The common prefix of the ids of a unit's decisions."""
    return f"unit-{hashlib.blake2b(unit.encode(), digest_size=16).hexdigest()}-"


def flag_of(model: Model) -> Flag | None:
    """The flag that an application is: by its variants, its fixed arms or its experiment; None if it has none."""
    extra = model.settings.extra
    experiment = extra.get(KEY, {})
    values = extra.get("variants") or experiment.get("values")
    values = values or {arm: arm for arm in experiment.get("arms") or model.arms}
    if not values:
        return None
    window = max(1, int(model.settings.window * 1000))
    return Flag(_columns(tuple(values)), values, window, bool(experiment), extra.get("control", ""))


@functools.lru_cache(maxsize=4096)
def _columns(names: tuple[str, ...]) -> ArmColumns:
    return read_arms([msgspec.json.encode(name) for name in names])
