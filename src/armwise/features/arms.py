"""Arms as they are sent: an id, or an object with an id and features."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from armwise.features.tokens import NOTHING, InvalidInput, Part, Tail, hash_token, part, refuse_twice, tail, why

MAX_ID = 256


class Arm(NamedTuple):
    """One arm of a request, with its features read.

    >>> read_arm(b'{"id": "pasta", "features": {"taste": "salty"}}').id
    'pasta'
    """

    id: str
    features: Part
    n_keys: int  # in the text it came as
    hash: bytes  # of its id, as a token
    raw: msgspec.Raw  # as it came; remembered with the arm, so that a thousand decisions share it


class ArmColumns(NamedTuple):
    """The arms of a request, field by field: what is done with a field is done for all arms at once.

    >>> read_arms([b'"a"', b'"b"']).ids
    ('a', 'b')
    """

    ids: tuple[str, ...]
    features: tuple[Part, ...]
    n_keys: tuple[int, ...]
    hashes: tuple[bytes, ...]
    raws: tuple[msgspec.Raw, ...]
    tail: Tail  # their tokens, put together

    def picked(self, positions: Sequence[int]) -> ArmColumns:
        """Some of them, in this order.

        >>> read_arms([b'"a"', b'"b"']).picked([1]).ids
        ('b',)
        """
        return _columns([tuple([column[i] for i in positions]) for column in self[:-1]])


class _Sent(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    features: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Sent | str)


def read_arm(text: bytes) -> Arm:
    """An arm from its JSON; remembered, since a catalogue of arms comes again with every request.

    >>> read_arm(b'"salad"').features.n_keys
    0
    >>> read_arm(b'7')
    Traceback (most recent call last):
    ...
    armwise.features.tokens.InvalidInput: an arm: Expected `str | object`, got `int`
    """
    return _remembered(text) if len(text) <= 4096 else _read(text)


def _read(text: bytes) -> Arm:
    try:
        sent = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"an arm: {why(error, text)}") from None
    if isinstance(sent, str):
        return Arm(check_id("an arm's id", sent), NOTHING, 0, _hash(sent), msgspec.Raw(text))
    unset = sent.features is msgspec.UNSET
    features = NOTHING if unset else part(bytes(sent.features), "a")
    n_keys = features.n_keys + (1 if unset else 2)
    refuse_twice("an arm", text, n_keys)
    return Arm(check_id("an arm's id", sent.id), features, n_keys, _hash(sent.id), msgspec.Raw(text))


def _hash(id: str) -> bytes:
    return hash_token(b"a\x1ei" + id.encode())


_remembered = functools.lru_cache(maxsize=8192)(_read)


def check_id(what: str, id: str) -> str:
    """An id of 1 to 256 characters, none of them a control character.

    >>> check_id("the event id", "")
    Traceback (most recent call last):
    ...
    armwise.features.tokens.InvalidInput: the event id must have 1 to 256 characters, got 0
    """
    if not 0 < len(id) <= MAX_ID:
        raise InvalidInput(f"{what} must have 1 to {MAX_ID} characters, got {len(id)}")
    if not id.isprintable() and any(ord(c) < 32 or ord(c) == 127 for c in id):
        raise InvalidInput(f"{what} must have no control characters, got {id[:40]!r}")
    return id


def read_arms(texts: Sequence[bytes]) -> ArmColumns:
    """All arms of a request; their ids must differ.

    >>> read_arms([b'"a"', b'{"id": "a"}'])
    Traceback (most recent call last):
    ...
    armwise.features.tokens.InvalidInput: two arms have the id 'a'
    """
    texts = tuple(texts)
    return _all_remembered(texts) if sum(map(len, texts)) <= 16384 else _read_all(texts)


def _read_all(texts: tuple[bytes, ...]) -> ArmColumns:
    if not texts:
        raise InvalidInput("arms must not be empty")
    arms = _columns(list(zip(*[read_arm(text) for text in texts])))
    if len(set(arms.ids)) != len(arms.ids):
        twice, n = Counter(arms.ids).most_common(1)[0]  # not by looking back from each: there may be many
        raise InvalidInput(f"{'two' if n == 2 else n} arms have the id {twice!r}")
    return arms


def _columns(columns: Sequence[Any]) -> ArmColumns:
    ids, features, n_keys, hashes, raws = columns
    return ArmColumns(ids, features, n_keys, hashes, raws, tail(hashes, features))


_all_remembered = functools.lru_cache(maxsize=256)(_read_all)
