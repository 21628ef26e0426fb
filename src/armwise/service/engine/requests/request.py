"""A parsed request for a decision: context, arms and options."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import PackedTokens


class ParsedRequest(msgspec.Struct, frozen=True, gc=False):
    """A parsed request for a decision; ``tokens`` are the context's, ``catalogue`` is the hash of its arms."""

    context: bytes
    tokens: PackedTokens
    arms: ArmColumns
    id: str | None = None
    excluded: Sequence[str] = ()
    deferred: bool = False
    catalogue: bytes = b""
