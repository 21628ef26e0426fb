"""Balance of contexts, and columns that follow the reward."""

import numpy as np

from armwise.offline.logs.checks.balance import Balance
from armwise.offline.logs.rows import LogBlock


def test_a_wrong_propensity_unbalances_the_contexts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 1))
    p = 1 / (1 + np.exp(-x[:, 0]))
    arms = (rng.random(4000) < p).astype(int)
    right, wrong = Balance(2, ["age"]), Balance(2, ["age"])
    right.add(LogBlock(arms, np.zeros(4000), 2, contexts=x, probabilities=np.where(arms, p, 1 - p)))
    wrong.add(LogBlock(arms, np.zeros(4000), 2, contexts=x, probabilities=np.full(4000, 0.5)))
    assert right.worst()[0][1] < 4
    assert wrong.worst()[0][1] > 20


def test_a_purchase_implies_a_visit():
    rng = np.random.default_rng(0)
    visit = (rng.random(2000) < 0.2).astype(float)
    bought = visit * (rng.random(2000) < 0.3)
    both = Balance(1, ["age", "bought"])
    x = np.column_stack([rng.normal(40, 9, 2000), bought])
    both.add(LogBlock(np.zeros(2000, int), visit, 1, contexts=x, probabilities=np.ones(2000)))
    assert both.implying() == ["bought"]
