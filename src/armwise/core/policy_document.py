"""A learnt policy as a document: numbers, names and one rule, which any language can evaluate.

``docs/edge.md`` describes the document. Its checksum is the SHA-256 of the text without the checksum: the bytes up to
the last comma, and a closing brace.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from armwise import __version__
from armwise.core.arguments import FilePath, short
from armwise.core.choices import Floats

FORMAT = "armwise policy 1"
_SEAL = b',"checksum":"sha256:'


class CannotExport(ValueError):
    """A policy that the wanted format cannot express exactly; the message has the reason, and the nearest alternative.

    >>> import armwise as aw
    >>> aw.LinThompson(dim=2).export("policy.json")
    Traceback (most recent call last):
    ...
    armwise.core.policy_document.CannotExport: LinThompson cannot be exported exactly: it draws from a posterior, ...
    """


class LinearModel(NamedTuple):
    """The weights of a linear estimate, and its widths: pairs of alpha and W, whose margin is alpha ||W x||."""

    weights: Floats
    widths: tuple[tuple[float, Floats], ...] = ()


class FrozenAgent(NamedTuple):
    """All that an agent's distribution depends on now: models, the rule over their estimates, floors inside out."""

    models: tuple[LinearModel, ...]
    rule: dict[str, Any]
    floors: tuple[float, ...] = ()

    def under(self, floor: float) -> FrozenAgent:
        """The same with one share more that is spread over all arms."""
        return self._replace(floors=(*self.floors, floor))


class Policy:
    """A learnt policy that runs elsewhere: what ``agent.export`` and ``Decider.export`` write.

    >>> import armwise as aw, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "policy.json")
    >>> exported = aw.LinUCB(dim=2, alpha=0.5, lam=1.0).export(path)
    >>> Policy.load(path).checksum == exported.checksum
    True
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        wrong = _mistake(document)
        if wrong:
            raise ValueError(f"document must be a policy of the format {FORMAT!r}, got one {wrong}")
        self.document = {name: value for name, value in document.items() if name != "checksum"}
        self._text = msgspec.json.encode(self.document)

    @property
    def checksum(self) -> str:
        """SHA-256 of the text without the checksum, in hexadecimal digits."""
        return hashlib.sha256(self._text).hexdigest()

    @property
    def text(self) -> str:
        """The document as JSON, with its checksum."""
        return (self._text[:-1] + _SEAL + self.checksum.encode() + b'"}').decode()

    def save(self, path: FilePath) -> None:
        """Write the document, all of it or nothing."""
        put(path, self.text + "\n")

    @classmethod
    def load(cls, path: FilePath) -> Policy:
        """Read a document; ValueError if a byte of it has changed since it was written."""
        with open(path, "rb") as file:
            return cls.parse(file.read(), os.fspath(path))

    @classmethod
    def parse(cls, text: bytes | str, where: str = "the policy") -> Policy:
        """``load`` from a text."""
        raw = text.encode() if isinstance(text, str) else text
        body, seal, rest = raw.rstrip().rpartition(_SEAL)
        if not seal or rest[64:] != b'"}':
            raise ValueError(f"{where}: not a policy that armwise exported: it ends without a checksum")
        own = body + b"}"
        if hashlib.sha256(own).hexdigest().encode() != rest[:64]:
            raise ValueError(f"{where}: it was changed since it was exported: its checksum is another")
        try:
            document = msgspec.json.decode(own)
        except msgspec.DecodeError as error:
            raise ValueError(f"{where}: not JSON: {error}") from None
        policy = cls(document)
        policy._text = own
        return policy

    def __repr__(self) -> str:
        made = self.document
        of = f"{made['application']!r}, " if made["application"] else ""
        return f"Policy({of}{made['agent']}, position={made['position']}, checksum={self.checksum[:12]!r})"


_MEMBERS = {"format", "made_by", "agent", "application", "version", "position", "lessons", "sees", "arms", "encoder",
            "models", "rule", "floors"}  # fmt: skip
_OPTIONAL = {"checksum", "ramp"}


def _mistake(document: Mapping[str, Any]) -> str:
    if not isinstance(document, Mapping):
        return f"that is no object but {type(document).__name__}"
    if document.get("format") != FORMAT:
        return f"with the format {document.get('format')!r:.60}"
    missing, strange = _MEMBERS - set(document), set(document) - _MEMBERS - _OPTIONAL
    return f"without {sorted(missing)}" if missing else f"with {sorted(strange)}" if strange else ""


def put(path: FilePath, text: str) -> None:
    """Write a text file, all of it or nothing: a reader never sees half of one."""
    target = os.fspath(path)
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {folder}")
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def describe(
    frozen: FrozenAgent,
    *,
    agent: str,
    sees: str,
    encoder: Mapping[str, Any] | None,
    arms: Sequence[str] | None = None,
    application: str | None = None,
    version: str = "",
    position: int | None = None,
    lessons: int = 0,
    ramp: Mapping[str, Any] | None = None,
) -> Policy:
    """The document of an agent that is frozen as it is now."""
    models = [
        {
            "weights": model.weights.tolist(),
            "widths": [
                {"alpha": float(alpha), "factor": [np.trim_zeros(row, "b").tolist() for row in factor]}
                for alpha, factor in model.widths
            ],
        }
        for model in frozen.models
    ]
    return Policy(
        {
            "format": FORMAT, "made_by": f"armwise {__version__}", "agent": agent, "application": application,
            "version": version, "position": position, "lessons": lessons, "sees": sees,
            "arms": None if arms is None else list(arms), "encoder": encoder, "models": models, "rule": frozen.rule,
            "floors": list(frozen.floors),
        }
        | ({} if ramp is None else {"ramp": ramp})
    )  # fmt: skip


def fixed(p: Floats) -> FrozenAgent:
    """A distribution that no context changes."""
    return FrozenAgent((), {"kind": "fixed", "p": p.tolist()})


def column_names(dim: int | None, columns: Sequence[str] | None) -> list[str]:
    """The names of an agent's columns: those given, or x0, x1, ..."""
    names = [f"x{i}" for i in range(dim or 0)] if columns is None else _names("columns", columns)
    if dim is not None and len(names) != dim:
        raise ValueError(f"columns must be {dim} names, one per column of the agent, got {len(names)}")
    return names


def _names(what: str, given: Sequence[str]) -> list[str]:
    names = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    right = bool(names) and all(isinstance(name, str) and name for name in names)
    if not right or len(set(names)) != len(names):
        raise ValueError(f"{what} must be different names, got {short(given)}")
    return names


def arm_names(n_arms: int | None, arms: Sequence[str] | None) -> list[str] | None:
    """The names of an agent's arms, where it has as many: those given, or "0", "1", ..."""
    if n_arms is None:
        if arms is not None:
            raise ValueError("arms are offered with each request here: leave them out")
        return None
    names = [str(a) for a in range(n_arms)] if arms is None else _names("arms", arms)
    if len(names) != n_arms:
        raise ValueError(f"arms must be {n_arms} names, got {len(names)}")
    return names


def finite(value: float) -> float:
    """A number that JSON has."""
    if not math.isfinite(value):
        raise ValueError(f"the policy has a number that is not finite: {value}")
    return float(value)
