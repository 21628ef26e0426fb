"""Bodies of events as stored: repeated arms once, by hash; large bodies compressed.

A body is JSON; a large body is compressed with zlib. The arms of a decision between many arms are stored apart, as one
JSON array in the table ``catalogues``; the decision's body then begins with the byte ``0x01`` and the hash of that
array (BLAKE2b, 16 bytes). The hash chain covers the body as it is stored, and so the arms too.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

import msgspec

MIN_CATALOGUE_BYTES = 4096  # bytes of arms; larger lists of arms are stored apart
MIN_COMPRESSED_BYTES = 8192  # bytes; below, compression costs more time than the space is worth
_APART, _HASH = b"\x01", 16
_COMPRESSED = b"\x78"  # the first byte of zlib data; no JSON begins with it
_arms = msgspec.json.Decoder(list[msgspec.Raw])


def as_array(arms: Sequence[msgspec.Raw]) -> bytes:
    """Join arms to one JSON array."""
    return b"[" + b",".join(map(bytes, arms)) + b"]"


def hashed(text: bytes) -> bytes:
    """Hash arms."""
    return hashlib.blake2b(text, digest_size=_HASH).digest()


def pack(text: bytes, catalogue: bytes = b"") -> bytes:
    """Encode a body for storage."""
    whole = zlib.compress(text, 1) if len(text) >= MIN_COMPRESSED_BYTES else text
    return _APART + catalogue + whole if catalogue else whole


def catalogue_of(body: bytes) -> bytes:
    """The hash of the arms that a stored body refers to; empty if the body contains them."""
    return body[1 : 1 + _HASH] if body[:1] == _APART else b""


def unpack(body: bytes) -> bytes:
    """Decode a stored body to JSON, without the arms it refers to; raise ValueError if it is damaged."""
    text = body[1 + _HASH :] if body[:1] == _APART else body
    if text[:1] != _COMPRESSED:
        return text
    try:
        return zlib.decompress(text)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def pack_arms(text: bytes) -> bytes:
    """Encode arms for storage."""
    return zlib.compress(text, 6)  # once for many decisions


def unpack_arms(data: bytes) -> list[msgspec.Raw]:
    """Decode stored arms; raise ValueError if they are damaged."""
    try:
        return _arms.decode(zlib.decompress(data))
    except zlib.error as error:
        raise ValueError(str(error)) from None
