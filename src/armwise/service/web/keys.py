"""API keys and their roles. Only hashes are stored; a key is compared with all of them in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

import msgspec

ROLES = ("read", "decide", "reward", "admin")  # admin includes all others


class Key(msgspec.Struct, forbid_unknown_fields=True):
    """A key: the SHA-256 of its secret in hexadecimal, its roles, its applications (none named: all)."""

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
        """Return whether this key has a role for an application."""
        if self.applications and application and application not in self.applications:
            return False
        return role in self.roles or "admin" in self.roles


ANYONE = Key(name="", sha256="0" * 64, roles=["admin"])  # on loopback, if no keys are configured


def digest(secret: str) -> str:
    """Return the hash that is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    """Return a random secret of 256 bits, for which a plain hash is safe."""
    return secrets.token_urlsafe(32)


class Keys:
    """The keys of a service."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = list(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def find(self, secret: str | None) -> Key | None:
        """Return the key with this secret, in a time that does not depend on the secret."""
        if not self._keys:
            return ANYONE
        given = digest(secret or "").encode()
        found = None
        for key in self._keys:
            if hmac.compare_digest(given, key.sha256.encode()):
                found = key
        return found if secret else None
