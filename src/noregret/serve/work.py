"""How much is asked for: what may be done in the loop that serves all others, and what is too much.

What a request asks for is counted in pairs of features, what a configuration asks for in bytes of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noregret.persist import Saved
from noregret.serve.tokens import BadInput, Part

if TYPE_CHECKING:
    from noregret.serve.http import Call

SMALL = 4096  # bytes: two a token at least, so at most LEAST_PAIRS
LEAST_PAIRS = 1 << 20
MAX_PAIRS = 10_000_000  # about 50 ms, in a thread of its own
MAX_MEMORY = 1 << 30  # bytes of an agent; there are about three copies of it at a time
_COMMAS = 1000  # between the tokens: at most 250,000 pairs, about a millisecond


def light(body: bytes) -> bool:
    """Whether a request keeps nobody waiting: few tokens to read, few pairs of them to cross.

    >>> light(b'{"arms": ["a", "b"]}'), light(b"1," * 5000)
    (True, False)
    """
    return len(body) <= SMALL or body.count(b",") <= _COMMAS


def pairs(contexts: Sequence[Part], arms: Sequence[Part]) -> int:
    """How many pairs are crossed: a context's tokens and the constant with each arm's, its id and the constant.

    >>> from noregret.serve.tokens import NOTHING, part
    >>> pairs([part(b'{"hour": 9}', "c")], [part(b'{"taste": "salty"}', "a"), NOTHING])
    10
    """
    return sum([c.n_tokens + 1 for c in contexts]) * sum([a.n_tokens + 2 for a in arms])


def check(call: Call, contexts: Sequence[Part], arms: Sequence[Part]) -> None:
    """BadInput if the application does not take so much at once; only agents that see features cross any."""
    model = call.engine.model(call.application)
    if model.agent.sees != "features":
        return
    application = call.service.config.applications.get(call.application)
    most = MAX_PAIRS if application is None else application.max_pairs
    n, numbers = pairs(contexts, arms), len(arms) * model.encoder.dim
    if n > most:
        raise BadInput(
            f"the features of the context and of the arms make {n} pairs, at most {most} are accepted: "
            "send fewer arms or features, or raise max_pairs of the application"
        )
    if numbers > most:
        raise BadInput(
            f"{len(arms)} arms, each a row of {model.encoder.dim}, make {numbers} numbers, at most {most} are accepted: "
            "send fewer arms, or raise max_pairs of the application"
        )


def footprint(value: Any) -> int:
    """The bytes of all arrays in an agent, or in a part of one.

    >>> footprint([np.zeros(3), {"a": np.zeros(2)}])
    40
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(footprint, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(footprint, value))
    return footprint(vars(value)) if isinstance(value, Saved) else 0
