"""How much is asked for: what may be done in the loop that serves all others, and what is too much.

What a request asks for is counted in pairs of features, what a configuration asks for in bytes of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from armwise.features.encoding.tokens import ArmTokens, InvalidInput, PackedTokens, count_tokens
from armwise.service.web.offload import run_in

if TYPE_CHECKING:
    from armwise.service.web.http import Call

_TINY = 4096  # bytes, two a token at least: LEAST_PAIRS at most, 5 ms at the very worst, so they need not be counted
SMALL = 8192  # bytes that are read in the loop, whatever they are: 4000 numbers of one digit take 10 ms
_COMMAS = 2000  # of larger bodies: between 2001 features at most
FEW_PAIRS = 250_000  # that are crossed in the loop: about a millisecond
T = TypeVar("T")
_THREADS = ThreadPoolExecutor(2, "armwise-heavy")  # not those that answer questions, which would wait behind


def large(body: bytes) -> bool:
    """Whether to read a body would keep the loop from all others.

    >>> large(b"{}")
    False
    """
    return len(body) > SMALL and body.count(b",") > _COMMAS


async def aside(apart: bool, work: Callable[[], T]) -> T:
    """Do some work at once, or in a thread where that would keep others waiting."""
    return await run_in(_THREADS, work) if apart else work()


def pairs(contexts: Sequence[PackedTokens], arms: ArmTokens) -> int:
    """How many pairs are crossed: a context's tokens and the constant with each arm's, its id and the constant.

    >>> from armwise.features.encoding.arms import read_arms
    >>> from armwise.features.encoding.tokens import part
    >>> pairs([part(b'{"hour": 9}', "c")], read_arms([b'{"id": "a", "features": {"taste": "salty"}}', b'"b"']).tail)
    10
    """
    left = count_tokens(contexts) + len(contexts)
    return left * (arms.n_tokens + 2 * arms.n)


def heavy(call: Call, contexts: Sequence[PackedTokens], arms: ArmTokens, named: bool = False) -> bool:
    """Whether a request is not for the loop; InvalidInput if the application does not take so much at once.

    ``named``: the arms are not in the body.
    """
    if len(call.body) <= _TINY and len(contexts) == 1 and not named:
        return False
    model = call.engine.model(call.application)
    n, numbers = pairs(contexts, arms), arms.n * model.encoder.dim
    if max(n, len(contexts) * numbers) <= FEW_PAIRS or model.agent.sees != "features":  # others cross nothing
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
