"""The certificate of a run: replays the rounds of its world with the recorded arms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from armwise.environments.environment import BEST_ARM_EACH_ROUND
from armwise.racing.run.heat import Heat, Run, one_thread_each, world_seed

if TYPE_CHECKING:
    from armwise.theory.certificate import Certificate
    from armwise.theory.certificate.played_rounds import RoundsBlock

_POINTS = 6  # rounds at which a curve is drawn, each twice the one before


def certify(heat: Heat, run: Run | None, delta: float) -> Certificate | str:
    """Bound the regret of a run from its own rounds, or say in one sentence why that is impossible."""
    if run is None or run.arms is None:
        return "no run was recorded"
    if BEST_ARM_EACH_ROUND not in heat.world.comparators:
        return f"a certificate is against {BEST_ARM_EACH_ROUND}, this world measures against {heat.world.comparator}"
    assumed = heat.world.reward_class()
    if assumed is None:
        return "this world states no reward model that a certificate could use"
    # Imported here because it loads SciPy, which is slow and which a race without certificates does not need.
    from armwise.theory.certificate import RejectedCertificateWarning, Rounds, certificate
    from armwise.theory.certificate.played_rounds import RoundsBlock

    view, arms, T = assumed.pop("view"), run.arms, heat.horizon

    def make() -> Iterator[RoundsBlock]:
        start = 0
        for block in heat.world.blocks(T, world_seed(run.seed)):
            played = arms[start : start + len(block)].astype(np.int64)
            yield RoundsBlock(block.view(view), played, block.rewards[np.arange(len(block)), played])
            start += len(block)

    rounds = Rounds(make, T, heat.world.n_arms)
    at = sorted({max(1, T >> i) for i in range(_POINTS)})
    with one_thread_each(), warnings.catch_warnings():  # its matrices are small: a second BLAS thread would only spin
        warnings.simplefilter("ignore", RejectedCertificateWarning)  # it is said below, once
        proved = certificate(rounds, delta=delta, at=at, **assumed)
    return proved if proved.applies else f"rejected: {proved.fit}"
