"""Mapped: an agent over features of the columns instead of the columns themselves."""

from __future__ import annotations

from typing import Any

from armwise.agent import Agent, Choice, Floats, Played, Seed, Theory
from armwise.around import Around, expect_agent, teach
from armwise.features.maps import FeatureMap


class Mapped(Around):
    """``agent``, made for ``features.size`` numbers, over rows that ``features`` maps; it sees the raw columns.

    The map is fixed once it is fitted, so means, widths, probabilities and bounds are the agent's own in the mapped
    space, exactly; the map is saved with the agent.

    >>> import armwise as aw, numpy as np
    >>> rows = np.random.default_rng(1).normal(size=(2000, 2))
    >>> features = aw.features.Join([aw.features.Fourier(64)]).fit(rows[:200])
    >>> agent = Mapped(aw.LinUCB(features.size, n_arms=2, seed=1), features)
    >>> inside = (rows**2).sum(axis=1) < 1.4                      # no linear rule of the columns knows this
    >>> agent.play(rows, np.stack([inside, ~inside], axis=1)).rewards[-500:].mean() > 0.9
    np.True_
    """

    theory = Theory(
        section="beyond the survey",
        regret="the agent's own",
        comparator="what the agent inside competes with, over functions of the features",
        assumes="what the agent inside assumes, of the features",
        reference="Rahimi, Recht 2007 (random features)",
        infinite_policies=True,
    )

    def __init__(self, agent: Agent, features: FeatureMap, *, seed: Seed = None) -> None:
        super().__init__(expect_agent("agent", agent), seed=seed)
        self.agent = agent
        if agent.sees not in ("features", "shared"):
            raise ValueError(
                f"agent must see features or a shared context, got {type(agent).__name__}: it sees {agent.sees}"
            )
        if not isinstance(features, FeatureMap):
            raise ValueError(f"features must be a feature map, such as features.Columns(), got {features!r:.80}")
        if not features.columns:
            raise ValueError("features has seen no rows yet: call features.fit(rows) first")
        if agent.dim not in (None, features.size):
            raise ValueError(f"agent must be made for dim={features.size}, the size of features, got {agent.dim}")
        self._same = (
            agent.plain_input and agent.dim is not None
        )  # otherwise it reads rows its own way, also mapped ones
        self.features = features
        self.sees, self.reward_range, self.n_arms = agent.sees, agent.reward_range, agent.n_arms
        self.dim, self.compiled, self.choosing_changes = features.columns, agent.compiled, agent.choosing_changes
        self.revises, self.fades, self.n_costs = agent.revises, agent.fades, agent.n_costs

    def _map(self, context: Floats) -> Any:
        """The mapped rows, as the agent reads them."""
        mapped = self.features._transform(context if context.ndim == 2 else context[None])
        mapped = mapped if context.ndim == 2 else mapped[0]
        return mapped if self._same else self.agent._read(mapped)

    def _check_choice(self, choice: Any, n_arms: int) -> None:
        self.agent._check_choice(choice, n_arms)

    def _probabilities(self, context: Floats) -> Floats:
        return self.agent._probabilities(self._map(context))

    def _estimates(self, context: Floats) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(self._map(context))

    def _choose(self, context: Floats) -> Choice:
        return self.agent._choose(self._map(context))

    def _chose(self, context: Floats, choice: Choice) -> None:
        self.agent._chose(self._map(context), choice)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        teach(self.agent, self._map(context), choice, reward)

    def _play(self, contexts: Floats, rewards: Floats) -> Played:
        rows = contexts.reshape(-1, contexts.shape[-1])
        mapped = self.features._transform(rows).reshape(*contexts.shape[:-1], -1)
        played = self.agent._play(mapped if self._same else self.agent._read_block(mapped, len(rewards)), rewards)
        self._n_learnt += len(rewards)
        return played

    def _fade(self, keep: float) -> None:
        self.agent._fade(keep)

    def _predicted(self, context: Floats, arm: int) -> float | None:
        return self.agent._predicted(self._map(context), arm)

    def _revise(self, context: Floats, choice: Choice, before: float, after: float) -> None:
        self.agent._revise(self._map(context), choice, before, after)
