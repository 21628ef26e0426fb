"""API keys and their roles. Only hashes are stored; a key is compared with all of them in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

import msgspec

ROLES = ("read", "decide", "reward", "admin")  # admin includes all others


class Key(msgspec.Struct, forbid_unknown_fields=True):
    """A key: the SHA-256 of its secret in hexadecimal, its roles, its applications (none named: all).

    >>> Key(name="shop", sha256=digest("s3cret"), roles=["decide"]).may("decide", "default")
    True
    """

    name: str
    sha256: str
    roles: list[str]
    applications: list[str] = []

    def __post_init__(self) -> None:
        if not self.roles:
            raise ValueError(f"roles of key {self.name!r} must name at least one of {', '.join(ROLES)}")
        for role in self.roles:
            if role not in ROLES:
                raise ValueError(f"roles of key {self.name!r}: {role!r} is not one of {', '.join(ROLES)}")
        if len(self.sha256) != 64 or not all(c in "0123456789abcdef" for c in self.sha256):
            raise ValueError(
                f"sha256 of key {self.name!r} must be 64 hexadecimal digits: armwise serve --new-key makes one"
            )

    def may(self, role: str, application: str) -> bool:
        """Return whether this key has a role for an application.

        >>> Key(name="k", sha256=digest("s"), roles=["read"], applications=["a"]).may("read", "b")
        False
        """
        if self.applications and application and application not in self.applications:
            return False
        return role in self.roles or "admin" in self.roles


ANYONE = Key(name="", sha256="0" * 64, roles=["admin"])  # on loopback, if no keys are configured


def digest(secret: str) -> str:
    """Return the hash that is stored of a secret.

    >>> digest("s3cret")[:8]
    '1ec1c26b'
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    """Return a random secret of 256 bits, for which a plain hash is safe.

    >>> len(new_secret()) >= 43
    True
    """
    return secrets.token_urlsafe(32)


class Keys:
    """The keys of a service.

    >>> keys = Keys([Key(name="shop", sha256=digest("s3cret"), roles=["decide"])])
    >>> keys.find("s3cret").name, keys.find("guess")
    ('shop', None)
    """

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = list(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def find(self, secret: str | None) -> Key | None:
        """Return the key with this secret, in a time that does not depend on the secret.

        >>> Keys([]).find(None) is ANYONE
        True
        """
        if not self._keys:
            return ANYONE
        given = digest(secret or "").encode()
        found = None
        for key in self._keys:
            if hmac.compare_digest(given, key.sha256.encode()):
                found = key
        return found if secret else None
