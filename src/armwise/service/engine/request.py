"""What is asked for: a context, arms, and what else a request for a decision may say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import PackedTokens


class ParsedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for a decision, read; ``tokens`` are the context's, ``catalogue`` the hash that named the arms."""

    context: bytes
    tokens: PackedTokens
    arms: ArmColumns
    id: str | None = None
    excluded: Sequence[str] = ()
    deferred: bool = False
    catalogue: bytes = b""
