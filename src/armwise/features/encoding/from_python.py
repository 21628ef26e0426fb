"""What people have (dictionaries, rows of tables, dataclasses) as the JSON that the encoder and the journal read."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import msgspec

from armwise.features.encoding.arms import ArmColumns, check_ids, read_arms
from armwise.features.encoding.tokens import Flat, InvalidInput, Part, Tail, read_json
from armwise.native.plain import ids_of, revalued, shape_of

_encode = msgspec.json.Encoder().encode


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # whatever the locale is
_flat, _flat_arms = Flat("c"), Flat("a")


def read_context(value: Any) -> tuple[bytes, Part | None]:
    """A context as JSON; of a flat dictionary also its tokens, which are found without reading the JSON again.

    >>> read_context({"hour": 9})[0]
    b'{"hour":9}'
    """
    if type(value) is dict:
        tokens = _flat.part(value)
        if tokens is not None:
            try:
                return _encode(value), tokens
            except OverflowError:  # a whole number that JSON's readers do not take: a number all the same
                pass
    return to_json("context", value), None


def read_named_arms(arms: Iterable[Any]) -> ArmColumns:
    """The arms of a request: ids, or dictionaries with an id.

    >>> read_named_arms(["a", {"id": "b", "price": 3}]).ids
    ('a', 'b')
    """
    if type(arms) is not list and (isinstance(arms, (str, bytes, Mapping)) or not isinstance(arms, Iterable)):
        raise ValueError(f"arms must be a list of ids or dictionaries, got {type(arms).__name__}")
    every = arms if type(arms) is list else tuple(arms)
    if every and type(every[0]) is not dict:
        try:
            return _only_ids(tuple(every))
        except (TypeError, _NotIds):
            pass
    return (_described(every) if every else None) or read_arms([arm_to_json(arm) for arm in every])


class _Catalogue(msgspec.Struct, frozen=True, gc=False):
    """Arms of which some are flat dictionaries: the names of each (None: the arm is its id), and all values in turn."""

    names: tuple[Any, ...]
    values: tuple[Any, ...]
    columns: ArmColumns

    def read(self, arms: Sequence[Any]) -> _Catalogue | None:
        """These arms, if they differ from the catalogue's in values alone, or the catalogue itself if in nothing."""
        words = self.columns.tail.words
        found = revalued(arms, self.names, self.values, words, "id", _flat_arms.texts)
        if found is None:
            return None
        return self if found is self.values else _catalogue(self.names, found[0], found[1], self.columns.ids)


def _catalogue(names: tuple[Any, ...], values: Any, words: Any, ids: tuple[str, ...]) -> _Catalogue:
    return _Catalogue(names, values, ArmColumns(ids, Tail(len(ids), words), None, _Texts(names, values)))


def _described(arms: Sequence[Any]) -> ArmColumns | None:
    """Arms of which some are flat dictionaries, without their JSON texts, which are written when somebody asks.

    Those with the same ids as before, and the same in everything else, are the same object again.
    """
    read = _latest[0].read(arms)
    if read is None:
        every = tuple(arms)
        ids = ids_of(every, "id")
        if ids is None:
            return None
        before = _catalogues.get(ids)
        read = None if before is None else before.read(every)
        if read is None:
            tokens = _flat_arms.tail(every)
            if tokens is None:
                return None
            check_ids(ids)
            read = _catalogue(*shape_of(every), tokens.words, ids)
            if len(tokens.words) > MOST_REMEMBERED:
                return read.columns
            if len(_catalogues) >= MOST_CATALOGUES:
                _catalogues.clear()
            _catalogues[ids] = read
    _latest[0] = read
    return read.columns


class _Texts(msgspec.Struct, frozen=True, gc=False):
    """The JSON texts of arms as ``shape_of`` has them, written when somebody asks."""

    names: tuple[Any, ...]
    values: tuple[Any, ...]

    def __call__(self) -> list[bytes]:
        texts, each = [], iter(self.values)
        for own in self.names:
            arm = {"id": next(each)} if own is None else {name: next(each) for name in own}
            id = arm.pop("id")
            texts.append(_encode({"id": id, "features": arm} if arm else id))
        return texts


# How many lists of arms are remembered, and how many bytes of tokens each may have.
MOST_CATALOGUES, MOST_REMEMBERED = 64, 1 << 16
_catalogues: dict[tuple[str, ...], _Catalogue] = {}
_latest = [_catalogue((), (), b"", ())]


class _NotIds(Exception):
    pass


@functools.lru_cache(maxsize=256)
def _only_ids(arms: tuple[Any, ...]) -> ArmColumns:
    if any(type(arm) is not str for arm in arms):
        raise _NotIds  # what is hashable may still change
    return read_arms([arm_to_json(arm) for arm in arms])


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
    """Numbers, text, booleans, lists and dictionaries from whatever says it.

    >>> to_plain("x", {"when": datetime.date(2026, 11, 16)})
    {'when': {'year': 2026, 'month': '11', 'day': 16, 'weekday': 'Monday'}}
    """
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
    """An arm: its id, or an object with an id whose other names are its features (or that has ``features``).

    >>> arm_to_json("red"), arm_to_json({"id": "blue", "price": 3})
    (b'"red"', b'{"id":"blue","features":{"price":3}}')
    """
    if isinstance(arm, str):
        return _written("an arm", arm)
    plain = to_plain("an arm", arm)
    if not isinstance(plain, dict) or not isinstance(plain.get("id"), (str, int)):
        raise ValueError(f"an arm must be its id, or have an 'id' among its names, got {arm!r:.60}")
    features = plain.get("features", {name: each for name, each in plain.items() if name != "id"})
    id = str(plain["id"])
    return _written("an arm", {"id": id, "features": features} if features else id)
