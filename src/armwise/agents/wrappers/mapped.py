"""Mapped: an agent over features of the columns instead of the columns themselves."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from armwise.agents.wrappers.wrapper import Wrapper, expect_agent, teach
from armwise.core import rounds
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory
from armwise.core.capabilities.counting import CountsChoices, choosing_changes, record_choice
from armwise.core.capabilities.noting import Noting
from armwise.core.capabilities.revising import Fading, Revising, can_fade, can_revise, predicted
from armwise.core.outcomes import check_choice
from armwise.core.rounds import Batches
from armwise.core.saving import Saved
from armwise.features.maps import FeatureMap


class MappedBatches(Batches["Mapped"]):
    """Rounds mapped at once, and round by round until the map is settled."""

    def compiled(self, agent: Mapped) -> bool:
        return agent.agent.compiled and agent.features.settled

    def block(self, agent: Mapped, contexts: Floats, rewards: Floats) -> Played:
        if agent._before is not None:
            return rounds.loop(agent, contexts[:1], rewards[:1])
        mapped = agent._fitted._transform(contexts.reshape(-1, contexts.shape[-1])).reshape(*contexts.shape[:-1], -1)
        inside = mapped if agent._same else agent.agent._read_block(mapped, len(rewards))
        return rounds.play(agent.agent, inside, rewards)


class Mapped(Wrapper, Revising, Fading, CountsChoices, Noting):
    """``agent``, made for ``features.size`` numbers, over rows that ``features`` maps; it sees the raw columns.

    The map is fixed once it is fitted, so means, widths, probabilities and bounds are the agent's own in the mapped
    space, exactly; the map is saved with the agent.

    A map that is not ``settled`` (``features.Scale``) takes in the rows of every context whose reward is learnt. When
    it changes, the agent begins anew, its random streams apart, and learns all rewards so far again in their order, so
    that means and widths are exact in the space of the new map; once the map is settled the rewards are let go, and all
    is as with any other map. Until then ``play`` runs round by round. ``features`` stays as it was given, ``fitted`` is
    the map of now. Such an agent takes no revisions (``revises``) and does not fade (``fades``).

    >>> import armwise as aw, numpy as np
    >>> rows = np.random.default_rng(1).normal(size=(2000, 2))
    >>> features = aw.features.Join([aw.features.Fourier(64)]).fit(rows[:200])
    >>> agent = Mapped(aw.LinUCB(features.size, n_arms=2, seed=1), features)
    >>> inside = (rows**2).sum(axis=1) < 1.4                      # no linear rule of the columns knows this
    >>> agent.play(rows, np.stack([inside, ~inside], axis=1)).rewards[-500:].mean() > 0.9
    np.True_

    >>> agent = Mapped(aw.LinUCB(3, n_arms=2, seed=1), aw.features.Join([aw.features.Scale(2)]))
    >>> agent.play(rows * [1e-3, 1e6], np.stack([rows[:, 0] > 0, rows[:, 0] <= 0], axis=1)).rewards[-500:].mean() > 0.9
    np.True_
    """

    theory = Theory(
        section="beyond the survey",
        regret="the agent's own",
        comparator="what the agent inside competes with, over functions of the features",
        assumes="what the agent inside assumes, of the features",
        reference="Rahimi, Recht 2007 (random features)",
        infinite_policies=True,
        call="aw.Mapped(aw.LinUCB(65, n_arms={K}), "
        "aw.features.Join([aw.features.Fourier(64)]).fit(np.random.default_rng(0).random((100, {d}))))",
    )
    batches = MappedBatches()

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
        if choosing_changes(agent) and not features.settled:
            raise ValueError(
                f"features still changes while the agent learns, and {type(agent).__name__} cannot learn its rewards "
                "again, since its choices change it too: call features.fit(rows) with enough rows first"
            )
        self.features = features
        self._fitted = features if features.settled else copy.deepcopy(features)  # a clone begins with it as given
        self._before = None if features.settled else copy.deepcopy(agent)
        self._kept: list[tuple[Floats, tuple[Any, ...], float]] = []  # contexts, choices, rewards until it is settled
        self.sees, self.reward_range, self.n_arms = agent.sees, agent.reward_range, agent.n_arms
        self.dim, self.choosing_changes = features.columns, choosing_changes(agent)
        self.n_costs, self.negative_costs = agent.n_costs, agent.negative_costs
        self.revises, self.fades = can_revise(agent) and features.settled, can_fade(agent) and features.settled

    @property
    def fitted(self) -> FeatureMap:
        """The map of now: ``features``, or what it became by what was learnt.

        >>> import armwise as aw
        >>> agent = Mapped(aw.LinUCB(1, n_arms=2, seed=1), aw.features.Scale(1, rows=2))
        >>> _ = agent.play([[1.0], [3.0]], [[0.0, 1.0], [0.0, 1.0]])
        >>> agent.fitted.settled, agent.fitted.transform([[4.0]]), agent.features.settled
        (True, array([[2.]]), False)
        """
        return self._fitted

    def _state(self) -> dict[str, Any]:
        if self.features.settled:  # then the map is among the parameters, and nothing is kept
            return super()._state()
        return super()._state() | {"_fitted": self._fitted, "_before": self._before, "_kept": self._kept}

    @property
    def _same(self) -> bool:
        """Whether the agent takes mapped rows as they are; one without a dim reads them first, also after a file."""
        return self.agent.plain_input and self.agent.dim is not None

    def _map(self, context: Floats) -> Any:
        """The mapped rows, as the agent reads them."""
        mapped = self._fitted._transform(context if context.ndim == 2 else context[None])
        mapped = mapped if context.ndim == 2 else mapped[0]
        return mapped if self._same else self.agent._read(mapped)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        check_choice(self.agent, choice, n_arms)

    def _probabilities(self, context: Floats) -> Floats:
        return self.agent._probabilities(self._map(context))

    def _estimates(self, context: Floats) -> tuple[Floats, Floats | None]:
        return self.agent._estimates(self._map(context))

    def _choose(self, context: Floats) -> Choice:
        return self.agent._choose(self._map(context))

    def record_choice(self, context: Floats, choice: Choice) -> None:
        record_choice(self.agent, self._map(context), choice)

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        teach(self.agent, self._map(context), choice, reward)  # what it refuses is not kept
        if self._before is None:
            return
        self._kept.append((np.array(context), tuple(choice), reward))
        if self._fitted._watch(np.atleast_2d(context)):
            self._learn_again(self._before)
        if self._fitted.settled:
            self._before, self._kept = None, []

    def _learn_again(self, before: Agent) -> None:
        """The agent as it was in the beginning, taught all that was kept, in the features of now."""
        live = dict(vars(self.agent))
        fresh = copy.deepcopy(vars(before), {id(before): self.agent})  # the same object: callers may hold it
        _keep_streams(fresh, live, set())
        vars(self.agent).clear()
        vars(self.agent).update(fresh)
        for context, choice, reward in self._kept:
            teach(self.agent, self._map(context), Choice(*choice), reward)

    def _fade(self, keep: float) -> None:
        self._inside._fade(keep)

    def _predicted(self, context: Floats, arm: int) -> float | None:
        return predicted(self.agent, self._map(context), arm)

    def _revise(self, context: Floats, choice: Choice, before: float, after: float) -> None:
        self._inside._revise(self._map(context), choice, before, after)


def _keep_streams(fresh: dict[str, Any], live: dict[str, Any], done: set[int]) -> None:
    """Put the random streams of ``live`` into ``fresh``: one that began anew would draw what was drawn before."""
    for name, value in live.items():
        if isinstance(value, np.random.Generator):
            fresh[name] = value
            continue
        inside, others = (each if isinstance(each, (list, tuple)) else [each] for each in (value, fresh.get(name)))
        for one, other in zip(inside, others):
            if isinstance(one, Saved) and type(one) is type(other) and id(one) not in done:
                done.add(id(one))
                _keep_streams(vars(other), vars(one), done)
