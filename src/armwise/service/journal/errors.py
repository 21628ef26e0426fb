"""Errors of a request other than refused input."""

from __future__ import annotations

import re

_SLOT = re.compile(r"\x1f\d+")  # what follows the caller's id in the id of a slot's decision


class Conflict(Exception):
    """The same id (or idempotency key) came before with other content; a slot is named by the id of its list.

    ``id`` is the decision's id, if the message names one.
    """

    def __init__(self, message: str, id: str = "") -> None:
        super().__init__(_SLOT.sub("", message))
        self.id = id


class Unknown(Exception):
    """Nothing has this name; ``id`` is the decision's id, if the name is one of a decision."""

    def __init__(self, message: str, id: str = "") -> None:
        super().__init__(_SLOT.sub("", message))
        self.id = id


class Unavailable(Exception):
    """The journal cannot be written to now; nothing was decided."""


class Stale(Unavailable):
    """Decisions are sharded over databases that this process does not know; nothing was decided."""


class Damaged(ValueError):
    """An event of the journal cannot be read; its application cannot be served, other applications can."""
