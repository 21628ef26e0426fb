"""What can go wrong with a request, apart from input that is refused."""

from __future__ import annotations

import re

_SLOT = re.compile(r"\x1f\d+")  # what the id of a slot's decision has behind the id that the caller knows


class Conflict(Exception):
    """The same id (or idempotency key) came before with other content; a slot is called by the id of its list.

    >>> raise Conflict("event e1\\x1f0 was decided with other content")
    Traceback (most recent call last):
    ...
    armwise.service.errors.Conflict: event e1 was decided with other content
    """

    def __init__(self, message: str) -> None:
        super().__init__(_SLOT.sub("", message))


class Unknown(Exception):
    """There is nothing of this name; ``id`` is the decision's, where one was meant.

    >>> raise Unknown("no decision has the id e1", "e1")
    Traceback (most recent call last):
    ...
    armwise.service.errors.Unknown: no decision has the id e1
    """

    def __init__(self, message: str, id: str = "") -> None:
        super().__init__(_SLOT.sub("", message))
        self.id = id


class Unavailable(Exception):
    """The journal cannot be written to now; nothing was decided.

    >>> raise Unavailable("the disk is full")
    Traceback (most recent call last):
    ...
    armwise.service.errors.Unavailable: the disk is full
    """


class Stale(Unavailable):
    """Decisions are spread over other databases than this process knows of; nothing was decided.

    >>> raise Stale("a database was added")
    Traceback (most recent call last):
    ...
    armwise.service.errors.Stale: a database was added
    """


class Damaged(ValueError):
    """An event of the journal cannot be read; its application cannot be served, the others can.

    >>> raise Damaged("event 7 (reward) is damaged: Input data was truncated")
    Traceback (most recent call last):
    ...
    armwise.service.errors.Damaged: event 7 (reward) is damaged: Input data was truncated
    """
