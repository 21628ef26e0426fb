"""A ranking as it is asked for, and what its slots may show; the same for ``Decider``, folders and HTTP.

The decision of a slot sees the context and its own position: the model learns that lower slots are clicked less, and
what an arm is worth apart from that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from armwise.agents.ranking.lists import Offer, OpenSlots, read_offer
from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import InvalidInput, part
from armwise.service.engine.requests.slots import MAX_SLOTS, SlotsRequest
from armwise.service.journal.events import MAX_MAGNITUDE

DEFAULT_SLOTS = 5


def read_ranking(
    context: bytes, arms: ArmColumns, k: Any, id: str | None = None, pinned: Any = None, at_most: Any = None
) -> SlotsRequest:
    """The slots of a ranking, or InvalidInput.

    ``pinned`` is {slot: arm}, slots counted from 0; ``at_most`` is {feature: n}: of the arms whose feature has one
    value, at most n are shown.
    """
    if not is_whole(k) or not 1 <= k <= MAX_SLOTS:
        raise InvalidInput(f"k must be a whole number from 1 to {MAX_SLOTS}, got {k!r:.60}")
    k, ids = int(k), arms.ids
    fixed = _read_pinned(pinned, k, ids)
    labels, limit = _read_at_most(at_most, arms)
    try:
        offer = read_offer(len(ids), k, None, fixed, labels, limit)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    contexts = [with_position(context, slot) for slot in range(k)]
    asked = msgspec.json.encode(
        [msgspec.json.decode(context), arms.digest, k, sorted(fixed.items()),
         sorted((name, int(n)) for name, n in (at_most or {}).items())], order="sorted",
    )  # fmt: skip

    def free(shown: list[int]) -> NDArray[np.bool_]:
        return open_arms(len(ids), k, offer, shown)

    names = [str(slot) for slot in range(k)]
    digest = hashlib.blake2b(asked, digest_size=16).hexdigest()
    return SlotsRequest(contexts, names, arms, free, digest, [part(each, "c") for each in contexts], id=id)


def open_arms(n_arms: int, k: int, offer: Offer | None, shown: Sequence[int]) -> NDArray[np.bool_]:
    """Which arms the slot below those shown may show: one, where it is pinned."""
    slots = OpenSlots(n_arms, k, offer)
    for arm in shown:
        slots.take(arm)
    free = np.zeros(n_arms, np.bool_)
    free[slots.free if slots.pinned is None else [slots.pinned]] = True
    return free


def with_position(context: bytes, slot: int) -> bytes:
    """The context that a slot's decision sees."""
    whole = context.strip()
    inner = whole[1:-1].strip() if whole.startswith(b"[") else whole
    return b'[%b%b{"slot":{"position":"%d"}}]' % (inner, b"," if inner else b"", slot + 1)


def read_list_rewards(shown: Sequence[str], given: Any, final: bool = False) -> list[tuple[int, float]]:
    """Rewards of a list as (slot, value): {arm: value}, {slot: value} with whole numbers, or a value per slot from the
    top, None where nothing is said. Nobody clicked so far: {}, which says nothing of any slot.
    """
    checked = check_list_rewards(given)
    found: list[tuple[int, float]] = []
    if isinstance(checked, dict):
        for key, value in checked.items():
            if isinstance(key, int):
                if not 0 <= key < len(shown):
                    raise InvalidInput(f"rewards: the list has slots 0 to {len(shown) - 1}, got {key}")
                found.append((key, value))
            elif key in shown:
                found.append((list(shown).index(key), value))
            else:
                raise InvalidInput(f"rewards: {key!r:.60} is not one of the arms that the list showed, {list(shown)}")
        if len({slot for slot, _ in found}) < len(found):
            raise InvalidInput("rewards: a slot is named twice, by its arm and by its number")
    elif len(checked) == len(shown):
        found = [(slot, one) for slot, one in enumerate(checked) if one is not None]
    else:
        raise InvalidInput(f"rewards must be {{arm: value}}, {{slot: value}} or {len(shown)} values, got {given!r:.60}")
    if final and not found:
        raise InvalidInput("rewards must name the slots for which they are final: [0, 0, 0], say, where nobody clicked")
    return found


def check_list_rewards(given: Any) -> dict[str | int, float] | list[float | None]:
    """Rewards of a list in Python's numbers, whichever arms it showed."""
    if isinstance(given, Mapping):
        found: dict[str | int, float] = {}
        for key, value in given.items():
            if not isinstance(key, str) and not is_whole(key):
                raise InvalidInput(f"rewards: {key!r:.60} is not one of the arms, nor the number of a slot")
            found[key if isinstance(key, str) else int(key)] = _number(value, repr(key))
        return found
    if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim == 1):
        return [None if value is None else _number(value, f"slot {slot}") for slot, value in enumerate(given)]
    raise InvalidInput(f"rewards must be {{arm: value}}, {{slot: value}} or a value per slot, got {given!r:.60}")


def _number(value: Any, whose: str) -> float:
    value = value.item() if isinstance(value, np.generic) else value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        raise InvalidInput(f"rewards: {whose:.60} must have a number of at most {MAX_MAGNITUDE:g}, got {value!r:.60}")
    return float(value)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, of Python's or NumPy's."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _read_pinned(pinned: Any, k: int, ids: Sequence[str]) -> dict[int, int]:
    if pinned is None:
        return {}
    if not isinstance(pinned, Mapping):
        raise InvalidInput(f"pinned must be {{slot: arm}}, got {pinned!r:.60}")
    found: dict[int, int] = {}
    for key, arm in pinned.items():
        slot: Any = slot_number(key) if isinstance(key, str) else key  # keys of JSON are texts
        if not is_whole(slot) or not 0 <= slot < k:
            raise InvalidInput(f"pinned must have slots 0 to {k - 1}, got {key!r:.60}")
        if arm not in ids:
            raise InvalidInput(f"pinned: {arm!r:.60} is not one of the arms")
        if slot in found:
            raise InvalidInput(f"pinned must not name a slot twice, got {slot} twice")
        found[int(slot)] = list(ids).index(arm)
    if len(set(found.values())) < len(found):
        raise InvalidInput(f"pinned must not name an arm twice, got {pinned!r:.60}")
    return found


def slot_number(key: str) -> int | None:
    """The slot that a key of JSON names; None if it is no number as JSON writes it."""
    return int(key) if key.isdecimal() and len(key) < 10 and key == str(int(key)) else None


def _read_at_most(at_most: Any, arms: ArmColumns) -> tuple[list[Any] | None, dict[Any, int] | None]:
    """A request's ``at_most``: the value of each arm's feature, and how many arms of each value a list may show."""
    if at_most is None:
        return None, None
    if not isinstance(at_most, Mapping) or len(at_most) != 1:
        raise InvalidInput(f"at_most must be {{feature: number}} of one feature, got {at_most!r:.60}")
    [(name, n)] = at_most.items()
    if not is_whole(n) or n < 1:
        raise InvalidInput(f"at_most: {name!r:.60} must have a whole number of at least 1, got {n!r:.60}")
    labels: list[Any] = []
    for i, raw in enumerate(arms.raws):
        value = _feature(msgspec.json.decode(raw), name)
        labels.append(("of no value", i) if value is None else msgspec.json.encode(value, order="sorted"))
    if all(isinstance(label, tuple) for label in labels):
        raise InvalidInput(f"at_most: no arm has a feature {name!r:.60}")
    return labels, {label: int(n) for label in labels if not isinstance(label, tuple)}


def _feature(arm: Any, name: Any) -> Any:
    features = arm.get("features") if isinstance(arm, dict) else None
    for each in features if isinstance(features, list) else [features]:
        if isinstance(each, dict) and name in each:
            return each[name]
    return None
