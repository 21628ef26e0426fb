"""check_agent passes what keeps the contract, whatever its size, and names the check that anything else fails."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import armwise as aw
from armwise.core.agent import Choice, Floats, Seed
from armwise.core.outcomes import check_choice
from armwise.testing.checks import CHECKS, check_agent


class Softmax(aw.Agent):
    """A sound agent, and the base of unsound ones."""

    theory = aw.Theory("-", "none proved", "the best arm in expectation", "independent rewards", "Sutton, Barto 2018")
    sees = "nothing"
    _learnt: ClassVar[tuple[str, ...]] = ("_totals", "_counts")
    n_arms: int

    def __init__(self, n_arms: int, temperature: float = 0.1, *, seed: Seed = None) -> None:
        super().__init__(seed=seed)
        self.n_arms, self.temperature = n_arms, temperature
        self._totals, self._counts = np.zeros(n_arms), np.zeros(n_arms)

    def _probabilities(self, context: Any) -> Floats:
        score = self._totals / np.maximum(self._counts, 1.0) / self.temperature
        weight = np.exp(score - score.max())
        return np.asarray(weight / weight.sum())

    def _learn(self, context: Any, choice: aw.Choice, reward: float) -> None:
        self._totals[choice.arm] += reward
        self._counts[choice.arm] += 1.0


class NotNormalised(Softmax):
    def _probabilities(self, context: Any) -> Floats:
        return super()._probabilities(context) * 1.1


class OtherArmsThanItSays(Softmax):
    def _choose(self, context: Any) -> aw.Choice:
        return aw.Choice(0, float(self._probabilities(context)[0]))


class SeedOfItsOwn(Softmax):
    def _choose(self, context: Any) -> aw.Choice:
        p = self._probabilities(context)
        arm = int(np.random.default_rng().choice(self.n_arms, p=p))
        return aw.Choice(arm, float(p[arm]))


class ForgetsWhenSaved(Softmax):
    _learnt: ClassVar[tuple[str, ...]] = ("_totals",)


class RemembersWhenCloned(Softmax):
    def clone(self, seed: Seed = None) -> Any:
        fresh = super().clone(seed)
        fresh._totals, fresh._counts, fresh._n_learnt = self._totals, self._counts, self._n_learnt
        return fresh


class TakesAnyReward(Softmax):
    reward_range = (-np.inf, np.inf)

    def learn(self, context: Any, choice: Choice, reward: Any, cost: Any = None) -> None:
        check_choice(self, choice, self._count_arms(self._read(context)))
        self._learn(context, choice, float(reward) if isinstance(reward, (int, float)) else 0.0)
        self._n_learnt += 1


class PrefersTheFirst(Softmax):
    def _probabilities(self, context: Any) -> Floats:
        p = super()._probabilities(context) / 2
        p[0] += 0.5
        return p


class NeverLearns(Softmax):
    def _learn(self, context: Any, choice: aw.Choice, reward: float) -> None:
        pass


class SaysNothingOfTheory(aw.Agent):
    sees = "nothing"
    n_arms = 3

    def _probabilities(self, context: Any) -> Floats:
        return np.full(3, 1 / 3)

    def _learn(self, context: Any, choice: aw.Choice, reward: float) -> None:
        pass


@pytest.mark.parametrize(
    "agent",
    [
        Softmax(2),
        Softmax(7, 0.2),
        aw.UCB1(2),
        aw.LinUCB(dim=1, alpha=0.5),
        aw.LinUCB(dim=8, alpha=0.5),
        aw.LinUCB(dim=2, alpha=0.5, n_arms=2),
        aw.PerContext(aw.UCB1(2)),
        aw.Exp4(n_experts=3, n_arms=2, gamma=0.1),
    ],
    ids=repr,
)
def test_sound_agents_of_any_size_pass(agent: aw.Agent) -> None:
    before = agent.t
    assert check_agent(agent, horizon=2000, margin=0.02) == tuple(check.__name__ for check in CHECKS)
    assert agent.t == before


@pytest.mark.parametrize(
    ("unsound", "check"),
    [
        (SaysNothingOfTheory, "carries_its_theory"),
        (NotNormalised, "valid_probabilities"),
        (OtherArmsThanItSays, "choose_and_probabilities_agree"),
        (SeedOfItsOwn, "same_seed_same_arms"),
        (ForgetsWhenSaved, "saved_and_loaded_continues"),
        (RemembersWhenCloned, "clone_forgets"),
        (TakesAnyReward, "bad_input_is_refused_and_changes_nothing"),
        (PrefersTheFirst, "renaming_arms_renames_probabilities"),
        (NeverLearns, "beats_uniform_play"),
    ],
)
def test_an_unsound_agent_is_told_which_check_it_fails(unsound: type[aw.Agent], check: str) -> None:
    sizes: dict[str, Any] = {} if unsound is SaysNothingOfTheory else {"n_arms": 3}
    with pytest.raises(AssertionError) as caught:
        check_agent(lambda seed: unsound(seed=seed, **sizes))
    assert caught.value.__notes__[-1].endswith(f"fails {check}")


def test_what_makes_no_agent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"it made 'UCB1'"):
        check_agent(lambda seed: "UCB1")  # type: ignore[arg-type, return-value]
