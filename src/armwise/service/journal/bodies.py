"""Bodies of events as stored: repeated arms once, by hash; large bodies compressed.

A body is JSON; or, where it is large, JSON compressed with zlib. Before that a decision between many arms has the byte
``0x01`` and the hash of its arms (BLAKE2b, 16 bytes) as they were sent, one JSON array, which the table ``catalogues``
holds once. The chain goes over the body as it is stored, so it covers the arms too.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence

import msgspec

MANY = 4096  # bytes of arms from which they are stored apart
LARGE = 8192  # bytes from which a body is compressed: below, the time is worth more than the place
_APART, _HASH = b"\x01", 16
_COMPRESSED = b"\x78"  # how zlib begins, and no JSON does
_arms = msgspec.json.Decoder(list[msgspec.Raw])


def as_array(arms: Sequence[msgspec.Raw]) -> bytes:
    """Arms as one text, for hashing.

    >>> as_array([msgspec.Raw(b'"a"'), msgspec.Raw(b'"b"')])
    b'["a","b"]'
    """
    return b"[" + b",".join(map(bytes, arms)) + b"]"


def hashed(text: bytes) -> bytes:
    """Hash arms.

    >>> hashed(b'["a"]').hex()
    'f53b3155b302982e196b7645b7b614b1'
    """
    return hashlib.blake2b(text, digest_size=_HASH).digest()


def pack(text: bytes, catalogue: bytes = b"") -> bytes:
    """Encode a body for storage.

    >>> len(pack(b'{"p":[' + b"0.001," * 5000 + b"0.5]}")) < 200
    True
    """
    whole = zlib.compress(text, 1) if len(text) >= LARGE else text
    return _APART + catalogue + whole if catalogue else whole


def catalogue_of(body: bytes) -> bytes:
    """The hash of the arms that a stored body refers to; empty if the body contains them.

    >>> catalogue_of(pack(b"{}", bytes(16))) == bytes(16), catalogue_of(b"{}")
    (True, b'')
    """
    return body[1 : 1 + _HASH] if body[:1] == _APART else b""


def unpack(body: bytes) -> bytes:
    """Decode a stored body to JSON, without the arms it refers to; raise ValueError if it is damaged.

    >>> unpack(pack(b"{}", bytes(16)))
    b'{}'
    """
    text = body[1 + _HASH :] if body[:1] == _APART else body
    if text[:1] != _COMPRESSED:
        return text
    try:
        return zlib.decompress(text)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def pack_arms(text: bytes) -> bytes:
    """Encode arms for storage.

    >>> [bytes(arm) for arm in unpack_arms(pack_arms(b'["a"]'))]
    [b'"a"']
    """
    return zlib.compress(text, 6)  # once for many decisions


def unpack_arms(data: bytes) -> list[msgspec.Raw]:
    """Decode stored arms; raise ValueError if they are damaged.

    >>> unpack_arms(b"")
    Traceback (most recent call last):
    ...
    ValueError: Error -5 while decompressing data: incomplete or truncated stream
    """
    try:
        return _arms.decode(zlib.decompress(data))
    except zlib.error as error:
        raise ValueError(str(error)) from None
