"""EpsilonGreedy: the best mean so far, and now and then any arm; without contexts or over any model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from armwise.agents.arms.arm_batches import GreedyBatches
from armwise.agents.arms.counts import kary_estimates
from armwise.core.agent import Choice, Floats, Seed, Sees, Theory, count, fraction, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.one_row import OneRow
from armwise.core.capabilities.per_arm import PerArm
from armwise.core.policy_document import FrozenAgent
from armwise.models.ridge import Ridge
from armwise.native import kary
from armwise.native.choice import tied_probabilities
from armwise.theory import bounds, hypotheses


class EpsilonGreedy(Merging, PerArm, OneRow):
    """Play the arm with the best estimate, except for a share ``epsilon_t`` spread uniformly.

    epsilon_t = epsilon t^-decay, t one more than the rewards learnt; a constant share (``decay=0``) never stops
    exploring, decay=1/3 balances exploring and estimating. Without a ``model`` an arm's estimate is its mean reward
    (0 before its first). With one it is the model's: ``Ridge(dim)`` over per-arm features, ``Ridge(dim, n_models=K)``
    with one model for each arm over a shared context, or anything with the same ``estimate`` and ``update``.

    >>> agent = EpsilonGreedy(n_arms=2, epsilon=0.1)
    >>> agent.learn(None, Choice(arm=1, probability=0.5), 1.0)
    >>> agent.probabilities()
    array([0.05, 0.95])
    >>> from armwise.models.ridge import Ridge
    >>> EpsilonGreedy(model=Ridge(dim=3), epsilon=0.2).probabilities(np.eye(3)[:2])
    array([0.5, 0.5])
    """

    theory = Theory(
        section="3",
        regret="O(epsilon T + sqrt(T K ln(T K) / epsilon))",
        comparator="the best arm in expectation",
        assumes="rewards in [0, 1], independent, one distribution per arm",
        reference="Auer, Cesa-Bianchi, Fischer 2002",
        regret_bound=bounds.epsilon_greedy,
        hypotheses=hypotheses.epsilon_greedy,
        exponent=1.0,
        call="aw.EpsilonGreedy(n_arms={K}, epsilon=0.1)",
    )
    sees: Sees = "nothing"  # with a model, what the model needs
    batches = GreedyBatches()
    _learnt = ("_totals", "_counts")

    def __init__(
        self,
        n_arms: int | None = None,
        epsilon: float = 0.1,
        *,
        decay: float = 0.0,
        model: Any = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.epsilon = fraction("epsilon", epsilon, zero=True, one=True)
        self.decay = positive("decay", decay, zero=True)
        self.model = model
        self.merges = model is None or (hasattr(model, "merge") and not model.forgets)
        self.per_arm = model is None or (model.n_models > 1 and hasattr(model, "add_model"))
        if model is None:
            self.n_arms = count("n_arms", n_arms)
        else:
            self.reward_range, self.dim = (-np.inf, np.inf), model.dim
            self.sees = "features" if model.n_models == 1 else "shared"
            self.n_arms = n_arms if model.n_models == 1 else model.n_models
            if n_arms is not None and count("n_arms", n_arms) != self.n_arms:
                raise ValueError(f"n_arms is {n_arms}, but the model has {model.n_models} arms: leave n_arms out")
        size = self.n_arms if model is None else 0
        self._totals, self._counts = np.zeros(size or 0), np.zeros(size or 0)

    def clone(self, seed: Seed = None) -> Self:
        """An agent with the same parameters that has learnt nothing, its model fresh too.

        >>> EpsilonGreedy(n_arms=2, epsilon=0.3).clone(seed=1).epsilon
        0.3
        """
        fresh = None if self.model is None else type(self.model)(**self.model.params())
        return type(self)(**self.params() | {"model": fresh}, seed=seed)

    @property
    def one_row(self) -> bool:
        """Whether what it learns of a choice is in that arm's row: with one model over the arms' features.

        >>> from armwise.models.ridge import Ridge
        >>> EpsilonGreedy(model=Ridge(dim=2)).one_row, EpsilonGreedy(n_arms=2).one_row
        (True, False)
        """
        return self.model is not None and self.sees == "features" and self.n_arms is None

    def _probabilities(self, context: Any) -> Floats:
        epsilon = kary.decayed(self.epsilon, self.decay, self._n_learnt)
        if self.model is None:
            return kary.greedy_mixed(self._totals, self._counts, epsilon)
        means, _ = self.model.estimate(context) if self.sees == "features" else self.model.estimate_all(context)
        mixed: Floats = (1.0 - epsilon) * tied_probabilities(means) + epsilon / means.size
        return mixed

    def freeze(self) -> FrozenAgent:
        """The means, with epsilon_t as a floor.

        >>> from armwise.models.ridge import Ridge
        >>> EpsilonGreedy(model=Ridge(dim=3), epsilon=0.2).freeze().floors
        (0.2,)
        """
        if not isinstance(self.model, Ridge):
            return super().freeze()
        epsilon = kary.decayed(self.epsilon, self.decay, self._n_learnt)
        rule = {"kind": "optimism", "extra": 0.0, "beyond": 1.0}
        return FrozenAgent(self.model.exported(), rule, (epsilon,))

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        if self.model is None:
            self._totals[choice.arm] += reward
            self._counts[choice.arm] += 1.0
        elif self.sees == "features":
            self.model.update(context[choice.arm], reward)
        else:
            self.model.update(context, reward, choice.arm)

    def _estimates(self, context: Any) -> tuple[Floats, Floats]:
        if self.model is None:
            return kary_estimates(self._totals, self._counts)
        estimate = self.model.estimate if self.sees == "features" else self.model.estimate_all
        means, widths = estimate(context)
        return means, widths

    def _merge(self, other: Self) -> None:
        self._totals += other._totals
        self._counts += other._counts
        if self.model is not None:
            self.model.merge(other.model)

    def _add_arm(self) -> None:
        if self.model is None:
            self._totals, self._counts = np.append(self._totals, 0.0), np.append(self._counts, 0.0)
        else:
            self.model.add_model()

    def _remove_arm(self, arm: int) -> None:
        if self.model is None:
            self._totals, self._counts = np.delete(self._totals, arm), np.delete(self._counts, arm)
        elif self.model.n_models == 2:
            raise ValueError(f"arm {arm} is one of two, and one model alone would be one over features of arms")
        else:
            self.model.remove_model(arm)
