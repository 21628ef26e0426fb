"""What people have (dictionaries, rows of tables, dataclasses) as the JSON that the encoder and the journal read."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


_PLAIN = {str, int, float, bool, type(None)}


def _is_plain(names: dict[Any, Any]) -> bool:
    """Whether nothing in it needs a second look: names and values as JSON has them (NaN is written as null)."""
    return _PLAIN.issuperset(map(type, names.values())) and set(map(type, names)) <= {str}


def to_json(what: str, value: Any) -> bytes:
    """A context as JSON: an object with names, from a mapping, a dataclass, or a row of pandas or polars.

    A date becomes its parts (hour, weekday, month, ...), a set a sorted list; NaN and other gaps become null.

    >>> to_json("context", {"device": "phone", "hour": 21, "gap": float("nan")})
    b'{"device":"phone","hour":21,"gap":null}'
    >>> to_json("context", [1, 2])
    Traceback (most recent call last):
    ...
    ValueError: context must have names: a dictionary, a dataclass, or a row of a table, got list [1, 2]
    """
    if value is None:
        return b"{}"
    if type(value) is dict and _is_plain(value):  # nearly always
        return _encode(value)
    if isinstance(value, (bytes, str)):
        try:
            plain = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            raise ValueError(f"{what} is text, but not JSON: {error}") from None
    else:
        plain = to_plain(what, value)
    if not isinstance(plain, dict):
        raise ValueError(
            f"{what} must have names: a dictionary, a dataclass, or a row of a table, got "
            f"{type(value).__name__} {value!r:.60}"
        )
    return _encode(plain)


def to_plain(where: str, value: Any) -> Any:
    """Numbers, text, booleans, lists and dictionaries from whatever says it.

    >>> to_plain("x", {"when": datetime.date(2026, 11, 16)})
    {'when': {'year': 2026, 'month': '11', 'day': 16, 'weekday': 'Monday'}}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)) and not hasattr(value, "dtype"):
        return None if isinstance(value, float) and math.isnan(value) else value
    if isinstance(value, datetime.date):
        return _date(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):  # a named tuple: what itertuples gives
        value = value._asdict()
    elif hasattr(value, "to_dicts"):  # a frame of polars with one row
        rows = value.to_dicts()
        if len(rows) != 1:
            raise ValueError(f"{where} must be one row, got a frame of {len(rows)}")
        value = rows[0]
    elif not isinstance(value, Mapping) and hasattr(value, "to_dict"):  # a row of pandas
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): to_plain(f"{where}.{name}", each) for name, each in value.items()}
    if isinstance(value, Set):
        return [to_plain(where, each) for each in sorted(value, key=str)]
    if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:  # a numpy scalar
        return to_plain(where, value.item())
    if hasattr(value, "tolist"):
        return to_plain(where, value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [to_plain(f"{where}[{i}]", each) for i, each in enumerate(value)]
    if str(value) in ("NaT", "<NA>"):
        return None
    raise ValueError(f"{where} must be a number, text, a boolean, a date, a list or a dictionary, got {value!r:.60}")


def _date(value: datetime.date) -> dict[str, Any] | None:
    if str(value) == "NaT":
        return None
    parts: dict[str, Any] = {"year": value.year, "month": str(value.month), "day": value.day,
                             "weekday": value.strftime("%A")}  # fmt: skip
    if isinstance(value, datetime.datetime):
        parts["hour"] = value.hour
    return parts


def arm_to_json(arm: Any) -> bytes:
    """An arm: its id, or an object with an id whose other names are its features (or that has ``features``).

    >>> arm_to_json("red"), arm_to_json({"id": "blue", "price": 3})
    (b'"red"', b'{"id":"blue","features":{"price":3}}')
    """
    if isinstance(arm, str):
        return _encode(arm)
    if type(arm) is dict and _is_plain(arm) and type(arm.get("id")) is str and "features" not in arm:
        features = arm.copy()
        id = features.pop("id")
        return _encode({"id": id, "features": features} if features else id)
    plain = to_plain("an arm", arm)
    if not isinstance(plain, dict) or not isinstance(plain.get("id"), (str, int)):
        raise ValueError(f"an arm must be its id, or have an 'id' among its names, got {arm!r:.60}")
    features = plain.get("features", {name: each for name, each in plain.items() if name != "id"})
    return _encode({"id": str(plain["id"]), "features": features} if features else str(plain["id"]))
