"""A Decider in memory notices when tastes change, as the service does (the world of benchmarks/serve_drift.py)."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.service.decider.memory import Memory
from armwise.service.engine.requests.request import ParsedRequest
from armwise.service.journal.events import Creation, Settings

ARMS = read_named_arms([f"a{k}" for k in range(10)])


def live(home: Memory, seed: int, n: int = 1500) -> tuple[float, list[int]]:
    """The mean expected reward of the last 500 decisions; tastes change after ``n``. When there were alarms."""
    rng, found = np.random.default_rng(seed), []
    pays = rng.uniform(0.02, 0.25, (5, 10))
    pays[range(5), rng.permutation(10)[:5]] = 0.55
    for t, (who, luck) in enumerate(rng.random((2 * n, 2)).tolist()):
        now = np.roll(pays, 5, axis=1) if t >= n else pays
        person = int(5 * who)
        context = {"person": f"p{person}", "hour": int(997 * who) % 24}
        [made] = home.decide([ParsedRequest(*read_context(context), ARMS)])
        paid = now[person, int(made.arm[1:])]
        found.append(paid)
        home.reward([(made.id, float(luck < paid), None)])
    return float(np.mean(found[-500:])), [int(seq) for seq, _ in home.model().drift.alarms]


@pytest.mark.parametrize("learn", ["provisional", "arrival"])  # in one compiled call, and by steps
def test_it_forgets_when_tastes_change(learn: str) -> None:
    # Over three seeds: the alarm comes within 500 decisions of the change and never before; what is earned after it is
    # well above what it is without watching. A failure means that drift is not watched, or that nothing is forgotten.
    earned = np.zeros(2)
    for seed in range(3):
        homes = [Memory(Creation(settings=Settings(drift=d, learn=learn)), seed=seed) for d in ("forget", "off")]
        (watched, alarms), (unwatched, none) = (live(home, seed) for home in homes)
        earned += watched / 3, unwatched / 3
        assert alarms and all(1500 < seq / 2 <= 2000 for seq in alarms)  # events: each decision has a reward
        assert not none
    assert earned[0] > earned[1] + 0.05
