"""Admission: decide whether a request runs on the event loop, in a thread, or is refused as too large.

The cost of a request is counted in pairs of crossed features, that of a configuration in bytes of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from armwise.features.encoding.tokens import ArmTokens, InvalidInput, PackedTokens, count_tokens
from armwise.service.web.offload import run_in

if TYPE_CHECKING:
    from armwise.service.web.http import Call

_MAX_UNCOUNTED_BYTES = 4096  # such bodies hold at most MIN_MAX_PAIRS pairs (two bytes per token): 5 ms at most
MAX_BYTES_ON_LOOP = 8192  # bytes that the event loop always parses itself: 4000 one-digit numbers take 10 ms
_MAX_COMMAS_ON_LOOP = 2000  # limit for larger bodies: the pairs of 2001 features
MAX_PAIRS_ON_LOOP = 250_000  # pairs crossed on the event loop: about a millisecond
T = TypeVar("T")
_THREADS = ThreadPoolExecutor(2, "armwise-heavy")  # read requests have another pool


def large(body: bytes) -> bool:
    """Return whether parsing this body would block the event loop for too long."""
    return len(body) > MAX_BYTES_ON_LOOP and body.count(b",") > _MAX_COMMAS_ON_LOOP


async def aside(apart: bool, work: Callable[[], T]) -> T:
    """Run the work on the event loop, or in a thread if it is large."""
    return await run_in(_THREADS, work) if apart else work()


def pairs(contexts: Sequence[PackedTokens], arms: ArmTokens) -> int:
    """Count the crossed pairs: (context tokens + constant) x (arm tokens + id + constant)."""
    left = count_tokens(contexts) + len(contexts)
    return left * (arms.n_tokens + 2 * arms.n)


def heavy(call: Call, contexts: Sequence[PackedTokens], arms: ArmTokens, named: bool = False) -> bool:
    """Return whether a request needs a thread; raise InvalidInput if it exceeds the application's limit.

    ``named``: the arms come from a catalogue, not from the body.
    """
    if len(call.body) <= _MAX_UNCOUNTED_BYTES and len(contexts) == 1 and not named:
        return False
    model = call.engine.model(call.application)
    n, numbers = pairs(contexts, arms), arms.n * model.encoder.dim
    crosses = model.agent.sees == "features"
    if not crosses or max(n, len(contexts) * numbers) <= MAX_PAIRS_ON_LOOP:
        return False
    most = model.settings.max_pairs
    if n > most:
        raise InvalidInput(
            f"the features of the context and of the arms make {n} pairs, at most {most} are accepted: "
            "send fewer arms or features, or raise max_pairs of the application"
        )
    if numbers > most:
        raise InvalidInput(
            f"{arms.n} arms, each a row of {model.encoder.dim}, make {numbers} numbers, at most {most} are "
            "accepted: send fewer arms, or raise max_pairs of the application"
        )
    return True
