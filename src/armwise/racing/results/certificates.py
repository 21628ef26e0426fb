"""The certificate of a run: the rounds of its world again, with the arms that were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from armwise.environments.environment import BEST_ARM_EACH_ROUND
from armwise.racing.run.run import Heat, Run, one_thread_each, world_seed

if TYPE_CHECKING:
    from armwise.theory.certificate import Certificate
    from armwise.theory.certificate.rounds import Block

_POINTS = 6  # rounds at which a curve is drawn, each twice the one before


def certify(heat: Heat, run: Run | None, delta: float) -> Certificate | str:
    """What this run proves about its own regret, or why it proves nothing.

    >>> import armwise as aw
    >>> heat = Heat(aw.environments.Switching(n_arms=3), {"Exp3": aw.Exp3(n_arms=3)}, horizon=100)
    >>> certify(heat, None, 0.05)
    'no run was recorded'
    """
    if run is None or run.arms is None:
        return "no run was recorded"
    if BEST_ARM_EACH_ROUND not in heat.world.comparators:
        return f"a certificate is against {BEST_ARM_EACH_ROUND}, this world measures against {heat.world.comparator}"
    assumed = heat.world.reward_class()
    if assumed is None:
        return "this world states nothing of its rewards that a certificate could use"
    # Here, because SciPy comes with it, which is slow to import: a race without proofs goes without.
    from armwise.theory.certificate import Rounds, certificate
    from armwise.theory.certificate.rounds import Block

    view, arms, T = assumed.pop("view"), run.arms, heat.horizon

    def make() -> Iterator[Block]:
        start = 0
        for block in heat.world.blocks(T, world_seed(run.seed)):
            played = arms[start : start + len(block)].astype(np.int64)
            yield Block(block.view(view), played, block.rewards[np.arange(len(block)), played])
            start += len(block)

    rounds = Rounds(make, T, heat.world.n_arms)
    at = sorted({max(1, T >> i) for i in range(_POINTS)})
    with one_thread_each():  # its matrices are small: a second thread would wait for them in a loop
        return certificate(rounds, delta=delta, at=at, **assumed)
