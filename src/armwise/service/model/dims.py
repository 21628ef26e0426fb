"""Choose the number of hash positions from the number of feature pairs in a decision.

A pair of a token of the context and one of an arm has a weight of its own until it shares its position. More positions
mean fewer collisions, and a decision costs their square (``benchmarks/decider_dims.py`` has both). So there are as many
as needed for at most ``FULL`` pairs of a decision per position, between ``MIN_POSITIONS`` and ``MAX_POSITIONS``, while
the arms are few enough for decisions to stay below a millisecond or so (``MAX_COST``): counted in the first decision,
and again, in the latest ``SAMPLE``, after 10, 100 and 1,000 of them. Texts of many values count once per decision, so
that 20 features cost what 20 features cost; for thousands of values, where time allows, give ``dim``. A model that has
too few positions is trained anew on all decisions: a folder's journal has that as an event, so that a replay does the
same.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armwise.features.encoding.tokens import RequestTokens
from armwise.service.model.model import Model

MIN_POSITIONS, MAX_POSITIONS, FULL = 128, 512, 2
MAX_COST = 100 * 256 * 256  # arms times squared positions of a decision: 25 arms with 512, 100 with 256
SAMPLE = 100
LOOKS = (0, 10, 100, 1000)  # decisions after which the next one is looked at, with those before it
NEVER = 1 << 62
AUTOMATIC = {"dim": "automatic"}  # in the settings' ``extra`` of an application whose positions nobody fixed


def next_look(n: int) -> int:
    """The number of decisions at which the next look is due, after ``n`` of them."""
    return next((look for look in LOOKS if look > n), NEVER)


def wanted_dim(model: Model, stacks: Iterable[RequestTokens]) -> int:
    """The number of positions that these decisions need; the model's own if that is enough or fixed."""
    dim = model.encoder.dim
    if model.optimist is None:  # others are too slow with more of them
        return dim
    pairs = most_arms = 0
    for stack in stacks:
        words, at, offered = np.frombuffer(stack.tail.words, np.uint64), 0, set[int]()
        for _ in range(min(stack.tail.n, FULL * MAX_POSITIONS)):
            n = int(words[at + 1])
            offered.add(int(words[at]))
            offered.update(words[at + 2 : at + 2 + 3 * n : 3].tolist())
            at += 2 + 3 * n
        pairs = max(pairs, (len(stack.context.counted) // 24 + 1) * (len(offered) + 1))
        most_arms = max(most_arms, stack.tail.n)
    while dim < MAX_POSITIONS and pairs > FULL * dim and most_arms * (2 * dim) ** 2 <= MAX_COST:
        dim *= 2
    return dim
