"""Doubling: an agent that must know the horizon, when nobody does (survey 5; Auer et al. 2002)."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any

from armwise.agents.wrappers.transparent import TransparentWrapper
from armwise.agents.wrappers.wrapper import expect_agent, teach
from armwise.core import rounds, saving
from armwise.core.agent import Agent, Choice, Floats, Played, Seed, Theory
from armwise.core.outcomes import check_choice
from armwise.core.rounds import Batches
from armwise.theory import bounds

_LONGEST = 2**40  # an agent that refuses even this horizon refuses something else


class DoublingBatches(Batches["Doubling"]):
    """The rest of a run is one block of its agent."""

    def compiled(self, agent: Doubling) -> bool:
        return agent._inner.compiled

    def block(self, agent: Doubling, contexts: Any, rewards: Floats) -> Played:
        n = min(len(rewards), agent._end() - agent._n_learnt)
        played = rounds.play(agent._inner, rounds.rows(contexts, 0, n), rewards[:n])
        agent._restart_if_due(agent._n_learnt + n)
        return played


class Doubling(TransparentWrapper):
    """Restart a horizon-tuned agent at horizons 1, 2, 4, ...: run m learns 2^m rewards, then a fresh agent takes over.

    ``make_agent`` makes an agent for a horizon: an agent class or one of its class methods (or the name of either),
    called as ``make_agent(horizon=T, **arguments)``; or any function of T, but then the agent cannot be saved. Horizons
    that the agent refuses as too short are skipped (Exp4P needs K ln N <= T): the first run is the first one accepted.

    The note says which run chose. A reward that arrives after its run has ended counts as a round but teaches
    nothing: it was drawn from the probabilities of an agent that is gone.

    >>> import numpy as np
    >>> agent = Doubling("Exp3.theoretical", {"n_arms": 2}, seed=1)
    >>> played = agent.play(None, np.tile([0.0, 1.0], (100, 1)))
    >>> agent.horizon, agent.t - 1 - (1 + 2 + 4 + 8 + 16 + 32)  # this run's horizon, and its rewards so far
    (64, 37)
    """

    theory = Theory(
        section="5",
        regret="sqrt(2) / (sqrt(2) - 1) times the agent's own O(sqrt(T))",
        comparator="what the agent inside competes with",
        assumes="what the agent inside assumes, but not the horizon",
        reference="Auer, Cesa-Bianchi, Freund, Schapire 2002",
        regret_bound=bounds.doubling,
        adversarial=True,
        call='aw.Doubling("Exp3.theoretical", {{"n_arms": {K}}})',
        call_if_linear='aw.Doubling("SupLinUCB", {{"dim": {d}, "delta": {delta}}})',
    )
    _learnt = ("_inner", "_run")
    batches = DoublingBatches()

    def __init__(
        self,
        make_agent: Callable[..., Agent] | str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)  # each run is seeded from its own stream
        self.make_agent = make_agent if isinstance(make_agent, str) else _name_of(make_agent) or make_agent
        self.arguments = None if arguments is None else dict(arguments)
        self._make = _find(self.make_agent) if isinstance(self.make_agent, str) else self.make_agent
        if not callable(self._make):
            raise ValueError(f"make_agent must be callable, or the name of an agent, got {make_agent!r:.80}")
        self._first, self._run = self._first_accepted(), 0
        self._wrap(self._fresh())
        self.restarts = True

    @property
    def first_horizon(self) -> int:
        """The horizon of the first run: the shortest that the agent accepts.

        >>> Doubling("Exp4P", {"n_experts": 4, "n_arms": 2}).first_horizon
        4
        """
        return self._first

    @property
    def horizon(self) -> int:
        """The horizon of the current run.

        >>> Doubling("Exp3.theoretical", {"n_arms": 2}).horizon
        1
        """
        return int(self._first * 2**self._run)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to a file, which needs a maker that has a name.

        >>> import armwise as aw
        >>> Doubling(lambda T: aw.Exp3.theoretical(2, T)).save("model.aw")
        Traceback (most recent call last):
        ...
        ValueError: make_agent is a function, which no file can hold: name it instead, as in Doubling("Exp3...
        """
        if not isinstance(self.make_agent, str):
            raise ValueError(
                "make_agent is a function, which no file can hold: name it instead, "
                'as in Doubling("Exp3.theoretical", {"n_arms": 2})'
            )
        super().save(path)

    def made_for(self, horizon: int) -> Agent:
        """The agent of a run of this horizon, before its first round.

        >>> round(Doubling("Exp3.theoretical", {"n_arms": 2}).made_for(1024).gamma, 3)
        0.028
        """
        if isinstance(self.make_agent, str) or self.arguments is not None:
            made = self._make(horizon=horizon, **(self.arguments or {}))
        else:
            made = self._make(horizon)
        return expect_agent("what make_agent returns", made)

    def _first_accepted(self) -> int:
        horizon = 1
        while True:
            try:
                self.made_for(horizon)
                return horizon
            except ValueError:
                if horizon >= _LONGEST:
                    raise
                horizon *= 2

    def _fresh(self) -> Agent:
        return self.made_for(self.horizon).clone(seed=int(self._rng.integers(2**63)))

    def _end(self) -> int:
        """The total number of rewards at the end of the current run: first (1 + 2 + ... + 2^run)."""
        return int(self._first * (2 ** (self._run + 1) - 1))

    def _restart_if_due(self, n_learnt: int) -> None:
        while n_learnt >= self._end():
            self._run += 1
            self._inner = self._fresh()

    def _probabilities(self, context: Any) -> Floats:
        return self._inner._probabilities(context)

    def _choose(self, context: Any) -> Choice:
        choice = self._inner._choose(context)
        return choice._replace(note=[self._run, choice.note])

    def _learn(self, context: Any, choice: Choice, reward: float) -> None:
        run, note = choice.note if choice.note is not None else (self._run, None)
        if run == self._run:
            teach(self._inner, context, choice._replace(note=note), reward)
        self._restart_if_due(self._n_learnt + 1)

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        run, note = self._run, None
        if choice.note is not None:
            if not (isinstance(choice.note, (list, tuple)) and len(choice.note) == 2 and type(choice.note[0]) is int):
                raise ValueError(f"choice.note must be [run, note] as choose wrote it, got {choice.note!r:.80}")
            run, note = choice.note
        if run == self._run:
            check_choice(self._inner, choice._replace(note=note), n_arms)


def _name_of(maker: Any) -> str | None:
    """The name under which a file can find this maker again: "Exp4P", "Exp3.theoretical"; None if it has none."""
    cls = getattr(maker, "__self__", maker)  # a class method knows its class
    if not (inspect.isclass(cls) and issubclass(cls, Agent)):
        return None
    name = saving._class_name(cls).removeprefix("armwise:") + ("" if cls is maker else f".{maker.__name__}")
    return None if "<locals>" in name else name


def _find(name: str) -> Any:
    package, _, path = name.rpartition(":")
    cls, _, method = path.partition(".")
    try:
        found = saving._find_class(f"{package or 'armwise'}:{cls}")
        return getattr(found, method) if method else found
    except (saving.LoadError, AttributeError):
        raise ValueError(
            f"make_agent must be callable, or the name of an agent such as 'Exp4P' or 'Exp3.theoretical', got {name!r}"
        ) from None
