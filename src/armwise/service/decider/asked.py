"""What is asked for: a context, arms, and perhaps an id."""

from __future__ import annotations

import msgspec

from armwise.features.encoding.arms import ArmColumns
from armwise.features.encoding.tokens import Part


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A request for a decision, read; ``tokens`` are the context's, where they were found without its JSON."""

    context: bytes
    tokens: Part | None
    arms: ArmColumns
    id: str | None
