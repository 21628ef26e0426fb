"""Without SciPy, which is an extra: every agent that does without it plays, and what needs it says so in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import CASES

ROOT = Path(__file__).parent.parent
LINEAR_PROGRAMMES = {"RandomizedUCB"}  # cannot do without, and says so when it is made
MESSAGE = "scipy is not installed, which this needs: pip install 'armwise[scipy]'"

BLOCKED = f"""
import json, sys
sys.modules["scipy"] = None
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
import armwise as aw
"""

PLAY = """
import pickle, warnings
from armwise.testing.checks import rounds_for, run
from tests.cases import CASES

answers = {}
for case in CASES:
    try:
        agent = case.make(3)
        data = rounds_for(agent, 12, seed=3)
        run(agent, data)
        agent.probabilities(data.context(0))
        pickle.loads(pickle.dumps(agent)).choose(data.context(0))
        answers[case.name] = "played"
    except ImportError as error:
        answers[case.name] = f"{type(error).__name__}: {error}"
print(json.dumps(answers))
"""

REFUSED = {
    "budget_optimum of two resources": "aw.budget_optimum([[0.0, 1.0]], [[[0.0, 0.0], [1.0, 1.0]]], rate=[0.5, 0.6])",
    "a certificate": "aw.certificate",
    "offline evaluation": "aw.offline.evaluate",
    "the fit of a kernel": "agent = aw.GPUCB(aw.kernels.RBF()); from armwise.models.kernel_fit import fit; "
    "fit(aw.kernels.RBF(), 0.1, np.eye(2), np.ones(2))",
}

DECIDED = """
shop = aw.Decider(seed=1)
for _ in range(20):
    decision = shop.decide({"device": "phone"}, arms=["red", {"id": "blue", "price": 3}])
    shop.reward(decision.id, 1.0)
exact = aw.BetaThompson(5, draws=2, seed=1).play(None, np.ones((30, 5))).probabilities
best = aw.budget_optimum([[0.0, 1.0]], [[0.0, 1.0]], rate=0.5).value
print(json.dumps([decision.arm in ("red", "blue"), bool(np.all(exact > 0.0)), best]))
"""


def without_scipy(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=False)


def test_every_agent_but_one_plays_without_scipy() -> None:
    done = without_scipy(PLAY)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert set(answers) == {case.name for case in CASES}
    for name, answer in answers.items():
        assert answer == (f"MissingExtra: {MESSAGE}" if name in LINEAR_PROGRAMMES else "played"), name


@pytest.mark.parametrize("what", REFUSED)
def test_what_needs_scipy_names_the_extra(what: str) -> None:
    *_, last = without_scipy(REFUSED[what]).stderr.strip().splitlines()
    assert last == f"armwise.core.tools.extras.MissingExtra: {MESSAGE}"


def test_a_decider_exact_probabilities_and_the_optimum_of_one_budget_need_none() -> None:
    done = without_scipy(DECIDED)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, True, 0.5]
