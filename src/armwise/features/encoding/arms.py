"""Arms as they are sent: an id, or an object with an id and features."""

from __future__ import annotations

import collections
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from armwise.features.encoding.tokens import (
    MAX_ID,
    NO_TOKENS,
    ArmTokens,
    InvalidInput,
    PackedTokens,
    hash_id,
    part,
    refuse_twice,
    why,
)


class Arm(NamedTuple):
    """One arm of a request, with its features read."""

    id: str
    features: PackedTokens
    n_keys: int  # in the text it came as
    hash: bytes  # of its id, as a token
    raw: msgspec.Raw  # as it came; remembered with the arm, so that a thousand decisions share it
    words: bytes  # the hash of its id and its tokens, as ``ArmTokens`` has them


class ArmColumns(msgspec.Struct, gc=False, eq=False):  # no cycle goes through it
    """The arms of a request, field by field: each operation on a field is done for all arms at once."""

    ids: tuple[str, ...]
    tail: ArmTokens  # their tokens, put together
    _arms: Sequence[Arm] | None  # None: read from their texts, on demand
    _write: Callable[[], Sequence[bytes]] | None  # gives the texts where there are none yet
    _raws: list[msgspec.Raw] | None = None
    _text: bytes = b""
    _n_keys: int = -1
    _digest: str = ""
    _pieces: list[bytes] | None = None  # the tokens of each, where they are not read

    @property
    def raws(self) -> list[msgspec.Raw]:
        """Each arm as it came, or as it is journaled; the list is not to be changed."""
        if self._raws is None:
            if self._text:
                self._raws = _each.decode(self._text)
            elif self._write is not None:
                self._raws = [msgspec.Raw(text) for text in self._write()]
            else:
                self._raws = [arm.raw for arm in self.arms]
        return self._raws

    @property
    def journal(self) -> Any:
        """Their form in the journal: all as one array, or each by itself; both are written the same."""
        if (self._text or self._raws is None) and len(text := self.text) < _MAX_REMEMBERED_BYTES:
            return msgspec.Raw(text)
        return list(self.raws)

    @property
    def text(self) -> bytes:
        """All of them as one JSON array."""
        if not self._text:
            if self._raws is None and self._write is not None:
                self._text = b"[%b]" % b",".join(self._write())
            else:
                self._text = b"[%b]" % b",".join(self.raws)
        return self._text

    @property
    def digest(self) -> str:
        """A hash of what they say, whatever the spacing and the order of keys; made once for arms that come again."""
        if not self._digest:
            self._digest = hashlib.blake2b(self.tail.in_any_order(), digest_size=16).hexdigest()
        return self._digest

    @property
    def arms(self) -> Sequence[Arm]:
        """Each arm by itself."""
        if self._arms is None:
            self._arms = [read_arm(bytes(raw)) for raw in self.raws]
        return self._arms

    @property
    def features(self) -> list[PackedTokens]:
        """The tokens of each one's features."""
        return [arm.features for arm in self.arms]

    @property
    def n_keys(self) -> int:
        """The number of keys in their texts."""
        if self._n_keys < 0:
            self._n_keys = sum([arm.n_keys for arm in self.arms])
        return self._n_keys

    def picked(self, positions: Sequence[int]) -> ArmColumns:
        """Some of them, in this order; their texts stay unwritten if they are."""
        if self._arms is not None:
            return _columns([self._arms[i] for i in positions])
        if self._pieces is None:
            self._pieces = self.tail.pieces()
        words = b"".join([self._pieces[i] for i in positions])
        ids = tuple([self.ids[i] for i in positions])
        return ArmColumns(ids, ArmTokens(len(ids), words), None, _PickedTexts(self, positions))


class _PickedTexts(msgspec.Struct, frozen=True, gc=False):
    """The JSON of some of the arms of a request, written on demand, once for all that are picked from it."""

    columns: ArmColumns
    positions: Sequence[int]

    def __call__(self) -> list[bytes]:
        raws = self.columns.raws
        return [bytes(raws[i]) for i in self.positions]


class _Sent(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    features: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Sent | str)


def read_arm(text: bytes) -> Arm:
    """An arm from its JSON; remembered, since a catalogue of arms comes again with every request."""
    return _remembered(text) if len(text) <= _MAX_REMEMBERED_BYTES else _read(text)


def _read(text: bytes) -> Arm:
    try:
        sent = _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"an arm: {why(error, text)}") from None
    if isinstance(sent, str):
        return _arm(sent, NO_TOKENS, 0, text)
    unset = sent.features is msgspec.UNSET
    features = NO_TOKENS if unset else part(bytes(sent.features), "a")
    n_keys = features.n_keys + (1 if unset else 2)
    refuse_twice("an arm", text, n_keys)
    return _arm(sent.id, features, n_keys, text)


def _arm(id: str, features: PackedTokens, n_keys: int, text: bytes) -> Arm:
    hash = hash_id(check_id("an arm's id", id))
    return Arm(id, features, n_keys, hash, msgspec.Raw(text), hash + features.counted)


_MAX_REMEMBERED_BYTES = 4096  # bytes of an arm beyond which it is not remembered
_remembered = functools.lru_cache(maxsize=8192)(_read)


def check_id(what: str, id: str) -> str:
    """An id of 1 to 256 characters that UTF-8 can hold, none of them a control character."""
    if not 0 < len(id) <= MAX_ID:
        raise InvalidInput(f"{what} must have 1 to {MAX_ID} characters, got {len(id)}")
    if not id.isprintable():
        if any(ord(c) < 32 or ord(c) == 127 for c in id):
            raise InvalidInput(f"{what} must have no control characters, got {id[:40]!r}")
        if any("\ud800" <= c <= "\udfff" for c in id):
            raise InvalidInput(f"{what} must be a text that UTF-8 can hold, got {id[:40]!r}")
    return id


def read_arms(texts: Sequence[bytes]) -> ArmColumns:
    """All arms of a request; their ids must differ."""
    texts = tuple(texts)
    if sum(map(len, texts)) <= 16384:
        return _all_remembered(texts)
    text = b"[%b]" % b",".join(texts)
    for known in list(_long_sets):
        if known.text == text and len(known.ids) == len(texts):
            return known
    arms = _read_all(texts)
    arms._text = text
    _long_sets.append(arms)  # a bounded deque: the oldest goes
    return arms


def _read_all(texts: tuple[bytes, ...]) -> ArmColumns:
    arms = _columns([_remembered(text) if len(text) <= _MAX_REMEMBERED_BYTES else _read(text) for text in texts])
    check_ids(arms.ids)
    return arms


def check_ids(ids: Sequence[str]) -> None:
    """InvalidInput if there is no arm, or two have the same id."""
    if not ids:
        raise InvalidInput("arms must not be empty")
    if len(set(ids)) != len(ids):
        twice, n = Counter(ids).most_common(1)[0]  # not by looking back from each: there may be many
        raise InvalidInput(f"{'two' if n == 2 else n} arms have the id {twice!r}")


def _columns(arms: Sequence[Arm]) -> ArmColumns:
    words = ArmTokens(len(arms), b"".join([arm.words for arm in arms]))
    return ArmColumns(tuple([arm.id for arm in arms]), words, arms, None)


_all_remembered = functools.lru_cache(maxsize=256)(_read_all)
_each = msgspec.json.Decoder(list[msgspec.Raw])
_long_sets: collections.deque[ArmColumns] = collections.deque(maxlen=16)
