"""Advised: an expert agent on any context, with policies for experts (survey 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from armwise.agents.wrappers.wrapper import Wrapper
from armwise.core import rounds
from armwise.core.agent import Agent, Choice, Context, Floats, Played, Seed, Theory
from armwise.core.arguments import MAX_MAGNITUDE, refuse_masked, wanted_numbers
from armwise.core.capabilities.noting import Noting
from armwise.core.outcomes import check_choice
from armwise.core.rounds import Batches
from armwise.policies import Uniform, distribution, distributions


class AdvisedBatches(Batches["Advised"]):
    """The rounds of the agent inside."""

    def compiled(self, agent: Advised) -> bool:
        return agent.agent.compiled

    def block(self, agent: Advised, contexts: Any, rewards: Floats) -> Played:
        return rounds.play(agent.agent, contexts, rewards)


class Advised(Wrapper, Noting):
    """Give an expert agent (Exp4, Exp4P) the advice of N policies on each context.

    An expert is a policy, any function of a context that answers an arm or a distribution, or a frozen agent.
    ``uniform`` adds the uniform expert that the bounds of Exp4 and Exp4P ask for, as the last one. ``sees`` says
    which view of a round the experts read; anything that they can read is accepted. ``play`` builds the advice of
    its whole block, T N K numbers, before it plays.

    >>> from armwise import Exp4
    >>> experts = [lambda x: 0, lambda x: int(x[0] > 0.5)]
    >>> agent = Advised(Exp4(n_experts=3, n_arms=2, seed=1), experts, uniform=True)
    >>> agent.probabilities([0.9])
    array([0.5, 0.5])
    >>> agent.advice([0.9])
    array([[1. , 0. ],
           [0. , 1. ],
           [0.5, 0.5]])
    """

    theory = Theory(
        section="5",
        regret="that of the agent within",
        comparator="the best expert in hindsight",
        assumes="what the agent within assumes of its advice",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        adversarial=True,
        call="aw.Advised(aw.Exp4.theoretical(n_experts={N}, n_arms={K}, horizon={T}), "
        "[aw.Constant(i % {K}) for i in range({N})])",
    )
    plain_input = False  # what the algorithm reads is the advice
    batches = AdvisedBatches()
    n_arms: int

    def __init__(
        self,
        agent: Agent,
        experts: Sequence[Any],
        *,
        uniform: bool = False,
        sees: Literal["nothing", "features", "shared", "key"] = "shared",
        seed: Seed = None,
    ) -> None:
        if not isinstance(agent, Agent) or agent.sees != "advice" or agent.n_arms is None:
            raise ValueError(f"agent must be one that sees advice (Exp4, Exp4P), got {agent!r:.80}")
        if sees not in ("nothing", "features", "shared", "key"):
            raise ValueError(f"sees must be 'nothing', 'features', 'shared' or 'key', got {sees!r}")
        super().__init__(agent, seed=seed)
        self.agent, self.experts, self.uniform, self.sees = agent, list(experts), bool(uniform), sees
        self.n_arms, self.reward_range = agent.n_arms, agent.reward_range
        self.n_costs, self.negative_costs = agent.n_costs, agent.negative_costs
        for i, expert in enumerate(self.experts):
            if not callable(expert) and not isinstance(expert, Agent):
                raise ValueError(f"experts[{i}] must be a policy or a function of a context, got {expert!r:.80}")
        self._advisers = [*self.experts, Uniform(self.n_arms)] if self.uniform else self.experts
        n = len(self._advisers)
        if n != agent.n_experts:
            raise ValueError(
                f"experts: {n} advise (the uniform one included: {self.uniform}), but the agent expects "
                f"n_experts={agent.n_experts}"
            )

    def advice(self, context: Context) -> Floats:
        """The (N, K) advice of the experts on one context.

        >>> from armwise import Exp4
        >>> Advised(Exp4(n_experts=1, n_arms=2), [lambda x: x % 2]).advice(7)
        array([[0., 1.]])
        """
        return self._read(context)

    # What the algorithm reads is the advice: the context itself goes no further than the experts.

    def _read(self, context: Any) -> Floats:
        context = self._finite("context", context)
        return np.stack([self._ask(distribution, i, e, context) for i, e in enumerate(self._advisers)])

    def _read_block(self, contexts: Any, T: int) -> Floats:
        contexts = [None] * T if contexts is None and self.sees == "nothing" else self._finite("contexts", contexts)
        if not hasattr(contexts, "__len__") or len(contexts) != T:
            raise ValueError(f"contexts must have one row for each of the {T} rows of rewards, got {contexts!r:.80}")
        advice = [self._ask(distributions, i, e, contexts) for i, e in enumerate(self._advisers)]
        return np.ascontiguousarray(np.stack(advice, axis=1))

    def _finite(self, name: str, context: Any) -> Any:
        if context is None and self.sees != "nothing":
            raise ValueError(f"{name} must be what the experts read, got None")
        refuse_masked(name, context)
        if isinstance(context, (list, tuple, np.ndarray)) and not (self.sees == "key" and name == "context"):
            array = np.asarray(context, dtype=object if self.sees == "key" else None)
            if array.dtype.kind == "c":
                raise ValueError(f"{name} must be finite numbers, got complex numbers")
            if array.dtype.kind == "f" and not (np.abs(array) <= MAX_MAGNITUDE).all():
                raise ValueError(f"{name} must be {wanted_numbers(array)}")
        return context

    def _ask(self, read: Callable[..., Floats], i: int, expert: Any, context: Any) -> Floats:
        try:
            return read(expert, context, self.n_arms)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"experts[{i}] cannot advise on this context: {error}") from error

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        check_choice(self.agent, choice, n_arms)

    def _probabilities(self, advice: Floats) -> Floats:
        return self.agent._probabilities(advice)

    def _choose(self, advice: Floats) -> Choice:
        return self.agent._choose(advice)

    def _learn(self, advice: Floats, choice: Choice, reward: float) -> None:
        self.agent._learn(advice, choice, reward)
        self.agent._n_learnt += 1
