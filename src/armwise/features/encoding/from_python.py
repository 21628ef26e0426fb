"""Turn Python values (dictionaries, rows of tables, dataclasses) into the JSON that encoder and journal read."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import itertools
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from armwise.features.encoding.arms import ArmColumns, check_id, check_ids, read_arms
from armwise.features.encoding.tokens import (
    LIMITS,
    NO_TOKENS,
    ArmTokens,
    InvalidInput,
    PackedTokens,
    hash_id,
    part,
    part_of,
    read_json,
)
from armwise.native.tokens import tokens

_encode = msgspec.json.Encoder().encode


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # whatever the locale is


def read_context(value: Any) -> tuple[bytes, PackedTokens]:
    """A context as JSON, and its tokens."""
    if type(value) is dict:
        try:
            found = part_of(value, "c")
            return _encode(value), found
        except (TypeError, ValueError, OverflowError):  # it has more types than JSON, or a fault that is named there
            pass
    text = to_json("context", value)
    return text, part(text, "c")


def read_named_arms(arms: Iterable[Any]) -> ArmColumns:
    """The arms of a request: ids, or dictionaries with an id."""
    if type(arms) is not list and (isinstance(arms, (str, bytes, Mapping)) or not isinstance(arms, Iterable)):
        raise ValueError(f"arms must be a list of ids or dictionaries, got {type(arms).__name__}")
    every = list(arms)
    if every and type(every[0]) is not dict:
        try:
            return _only_ids(tuple(every))
        except (TypeError, _NotIds):
            pass
    return (_described(every) if every else None) or read_arms([arm_to_json(arm) for arm in every])


class _NotIds(Exception):
    pass


@functools.lru_cache(maxsize=256)
def _only_ids(arms: tuple[Any, ...]) -> ArmColumns:
    if any(type(arm) is not str for arm in arms):
        raise _NotIds  # hashable objects may still change
    return read_arms([arm_to_json(arm) for arm in arms])


def _described(arms: list[Any]) -> ArmColumns | None:
    """Arms that are ids or flat dictionaries; None: ``arm_to_json`` reads them, or names the fault.

    Their values cannot change, so their JSON is written on demand. A catalogue that comes again is one object.
    """
    described = [arm for arm in arms if type(arm) is dict]
    try:
        ids = tuple([arm["id"] if type(arm) is dict else arm for arm in arms])
        known = _catalogues.get(ids)
        hashes = _hashed(ids) if known is None else known.hashes
        packed, _, kinds = tokens(described, b"a", "id", LIMITS)
    except (KeyError, TypeError, ValueError):
        return None
    if kinds is None or [arm for arm in described if "features" in arm]:
        return None
    if len(described) < len(arms):
        each = iter(packed)
        packed = [next(each) if type(arm) is dict else NO_TOKENS.counted for arm in arms]
    words = b"".join(itertools.chain.from_iterable(zip(hashes, packed)))
    if known is not None and known.kinds == kinds and known.columns.tail.words == words:
        return known.columns
    copies = [arm.copy() if type(arm) is dict else arm for arm in arms]
    columns = ArmColumns(ids, ArmTokens(len(ids), words), None, _Texts(copies))
    if len(words) <= MAX_CATALOGUE_BYTES:
        if len(_catalogues) >= MAX_CATALOGUES:
            _catalogues.clear()
        _catalogues[ids] = _Catalogue(hashes, kinds, columns)
    return columns


def _hashed(ids: tuple[Any, ...]) -> list[bytes]:
    """The hashes of ids; TypeError or ValueError if they are none."""
    for id in ids:
        if type(id) is not str:
            raise TypeError
        check_id("an arm's id", id)
    check_ids(ids)
    return [hash_id(id) for id in ids]


class _Catalogue(NamedTuple):
    hashes: list[bytes]  # of the ids
    kinds: int
    columns: ArmColumns


MAX_CATALOGUES, MAX_CATALOGUE_BYTES = 64, 1 << 16  # of tokens
_catalogues: dict[tuple[str, ...], _Catalogue] = {}  # the last arms with these ids


class _Texts(msgspec.Struct, frozen=True, gc=False):
    """The JSON of arms that are ids or flat dictionaries, written on demand."""

    arms: list[Any]

    def __call__(self) -> list[bytes]:
        return [arm_to_json(arm) for arm in self.arms]


def to_json(what: str, value: Any) -> bytes:
    """A context as JSON: an object with names, from a mapping, a dataclass, or a row of pandas or polars.

    A date becomes its parts (hour, weekday, month, ...), a set a sorted list; NaN and other gaps become null.
    """
    if value is None:
        return b"{}"
    if isinstance(value, (bytes, str)):
        try:
            plain = read_json(value.encode() if isinstance(value, str) else bytes(value))
        except ValueError as error:
            raise ValueError(f"{what} is text, but {error}") from None
    else:
        try:
            plain = to_plain(what, value)
        except RecursionError:
            raise ValueError(f"{what} is nested too deeply, or contains itself") from None
    if not isinstance(plain, dict):
        raise ValueError(
            f"{what} must have names: a dictionary, a dataclass, or a row of a table, got "
            f"{type(value).__name__} {value!r:.60}"
        )
    return _written(what, plain)


def _written(what: str, plain: Any) -> bytes:
    try:
        return _encode(plain)
    except UnicodeEncodeError:
        raise InvalidInput(f"{what}: half a surrogate pair in a string") from None


def to_plain(where: str, value: Any) -> Any:
    """Numbers, text, booleans, lists and dictionaries from whatever says it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)  # of subclasses, numpy's among them, the text alone
    if isinstance(value, (int, float)) and not hasattr(value, "dtype"):
        return _number(where, float(value) if isinstance(value, float) else int(value))
    if isinstance(value, datetime.date):
        return _date(value)
    if isinstance(value, decimal.Decimal):
        return _number(where, float(value))
    if isinstance(value, enum.Enum):
        return to_plain(where, value.value)
    if isinstance(value, uuid.UUID):
        return str(value)
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
        if len({str(name) for name in value}) != len(value):
            raise ValueError(f"{where} has two names that are the same as text, among {list(value)[:5]}")
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


def _number(where: str, value: int | float) -> float | None:
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError(f"{where} must be finite, got {value}")
        return None if math.isnan(value) else value
    if -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)  # beyond what JSON's readers take as whole
    except OverflowError:
        raise ValueError(
            f"{where} must be below 1e150 in size, got a whole number of {value.bit_length()} bits"
        ) from None


def _date(value: datetime.date) -> dict[str, Any] | None:
    if str(value) == "NaT":
        return None
    parts: dict[str, Any] = {"year": value.year, "month": str(value.month), "day": value.day,
                             "weekday": _WEEKDAYS[value.weekday()]}  # fmt: skip
    if isinstance(value, datetime.datetime):
        parts["hour"] = value.hour
    return parts


def arm_to_json(arm: Any) -> bytes:
    """An arm: its id, or an object with an id whose other names are its features (or that has ``features``)."""
    if isinstance(arm, str):
        return _written("an arm", arm)
    plain = to_plain("an arm", arm)
    if not isinstance(plain, dict) or not isinstance(plain.get("id"), (str, int)):
        raise ValueError(f"an arm must be its id, or have an 'id' among its names, got {arm!r:.60}")
    features = plain.get("features", {name: each for name, each in plain.items() if name != "id"})
    id = str(plain["id"])
    return _written("an arm", {"id": id, "features": features} if features else id)
