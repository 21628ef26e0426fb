"""One run (an agent, a world, a seed), and one task of a worker (several agents on the world of one seed)."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.agents.ranking.ranker import Ranker
from armwise.core.agent import Agent, Floats
from armwise.core.capabilities.stopping import Stopping
from armwise.core.seeds import purpose_seed
from armwise.core.tools.extras import needs
from armwise.core.tools.threads import thread_pools
from armwise.environments.environment import Block, Environment

Player = Agent | Ranker  # the players: agents choose an arm a round, rankers a list in a world of lists
_BINS = 48  # parts of the horizon in which arms are counted


@dataclass(frozen=True)
class Heat:
    """One world, the agents that meet it, and for how long.

    >>> import armwise as aw
    >>> Heat(aw.environments.Switching(n_arms=3), {"Exp3": aw.Exp3(n_arms=3)}, horizon=100).label
    'Switching'
    """

    world: Environment
    agents: Mapping[str, Player]
    horizon: int
    name: str = ""
    letters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # constants of a bound, by agent
    about: str = ""  # a description in one or two sentences
    recorded: tuple[int, ...] | None = None  # the rounds at which curves are recorded; None: ``grid(horizon)``
    metrics: Mapping[str, Callable[[Stretch], Any]] = field(default_factory=dict)
    callbacks: tuple[Callable[[Stretch], None], ...] = ()
    keep: tuple[
        str, ...
    ] = ()  # "agents": the agents after the last round; "arms": the arm of every round, for every seed

    @property
    def label(self) -> str:
        """The name of the heat in tables and pictures."""
        return self.name or type(self.world).__name__

    @property
    def rounds(self) -> NDArray[np.int64]:
        """The rounds at which runs are recorded.

        >>> import armwise as aw
        >>> Heat(aw.environments.Switching(n_arms=3), {}, horizon=100, recorded=(10, 100)).rounds
        array([ 10, 100])
        """
        return grid(self.horizon) if self.recorded is None else np.array(self.recorded, np.int64)


@dataclass(frozen=True)
class Stretch:
    """Consecutive rounds of a run, passed to metrics and callbacks.

    ``rounds`` counts from 1; ``block`` has the world's own tables: ``rewards``, ``expected`` and ``competitors`` of
    every arm, and ``view(sees)``. ``agent`` is the agent after the last of these rounds: do not change it.

    >>> import armwise as aw
    >>> aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=1,
    ...         callbacks=[lambda stretch: print(stretch.name, stretch.seed, stretch.rounds[-1])])
    UCB1 0 20
    ...
    """

    name: str
    seed: int
    rounds: NDArray[np.int64]
    contexts: Any
    arms: NDArray[np.int64]
    rewards: Floats
    probabilities: Floats  # NaN where the agent does not know them
    block: Block
    agent: Player


@dataclass
class Run:
    """The measurements of one agent with one seed at the heat's ``rounds``, or the error that stopped it.

    >>> import armwise as aw
    >>> run = aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=1).runs[0]
    >>> run.agent, run.seed, len(run.regret), run.error
    ('UCB1', 0, 20, '')
    """

    agent: str
    seed: int
    regret: Floats = field(default_factory=lambda: np.empty(0))
    reward: Floats = field(default_factory=lambda: np.empty(0))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), np.int64))
    seconds: float = 0.0
    arms: NDArray[Any] | None = None  # the arm of every round, kept for the first seed, for its certificate
    error: str = ""
    trace: str = ""
    seconds_at: Floats = field(default_factory=lambda: np.empty(0))  # time so far
    metrics: dict[str, Floats] = field(default_factory=dict)  # user-defined, cumulative
    final: Player | None = None  # the agent after the last round, with keep=["agents"]
    stopped_at: int | None = None  # where the agent's search for the best arm stopped
    answer: int | None = None  # the arm that it then named


def grid(horizon: int) -> NDArray[np.int64]:
    """The rounds at which a run is recorded: dense enough on linear and on logarithmic axes."""
    even = np.linspace(1, horizon, min(horizon, 120))
    slow = np.geomspace(1, horizon, min(horizon, 80))
    return np.unique(np.concatenate([even, slow]).round().astype(np.int64))


def world_seed(seed: int) -> np.random.SeedSequence:
    """The seed of a world: the same for every agent, so that comparisons are paired."""
    return purpose_seed(seed, "world")


def agent_seed(seed: int, name: str) -> np.random.SeedSequence:
    """The seed of an agent: it depends on the agent's name, so that other agents in the race do not change it."""
    return purpose_seed(seed, f"agent {name}")


def play_seed(heat: Heat, names: list[str], seed: int) -> list[Run]:
    """Run these agents of a heat with one seed; an agent that fails does not stop the others."""
    if heat.world.adaptive:  # its rounds depend on the arms, so each agent needs its own copy
        return [run for name in names for run in _play(heat, [name], seed)]
    return _play(heat, names, seed)


def _play(heat: Heat, names: list[str], seed: int) -> list[Run]:
    runners = [_Runner(heat, name, seed) for name in names]
    rounds = heat.world.blocks(heat.horizon, world_seed(seed))
    points, totals, start = heat.rounds, np.zeros(0), 0
    arms: Any = None
    while start < heat.horizon:
        try:
            block = rounds.send(arms)
        except Exception as error:
            for runner in runners:
                runner.fail(error)
            break
        inside = points[(points > start) & (points <= start + len(block))] - start - 1
        running = (totals if start else np.zeros(block.competitors.shape[1])) + np.cumsum(block.competitors, axis=0)
        best, totals = running[inside].max(axis=1), running[-1]
        for runner in runners:
            arms = runner.play(block, start, inside, best)
        if heat.world.adaptive and runners[0].run.error:
            break
        start += len(block)
    rounds.close()
    return [runner.finished() for runner in runners]


class _Runner:
    """One agent and its measurements while it plays the blocks."""

    def __init__(self, heat: Heat, name: str, seed: int) -> None:
        self.run, self.heat = Run(name, seed), heat
        self.regret: list[Floats] = []
        self.reward: list[Floats] = []
        self.seconds: list[Floats] = []
        self.metrics: dict[str, list[Floats]] = {each: [] for each in heat.metrics}
        self.metric_totals = dict.fromkeys(heat.metrics, 0.0)
        n_slots = heat.world.n_slots
        shape = (heat.horizon,) if n_slots is None else (heat.horizon, n_slots)
        self.arms = np.empty(shape, np.min_scalar_type(heat.world.n_arms - 1))
        self.counts = np.zeros(_BINS * heat.world.n_arms, np.int64)
        self.total = self.total_expected = 0.0
        self.agent: Player | None = None
        try:
            self.agent = heat.agents[name].clone(seed=agent_seed(seed, name))
        except Exception as error:
            self.fail(error)

    def play(self, block: Block, start: int, inside: NDArray[np.int64], best: Floats) -> NDArray[np.int64] | None:
        if self.agent is None or self.run.error:
            return None
        try:
            contexts = block.view(self.agent.sees)  # made once for all agents, so not in anyone's time
            before = time.perf_counter()
            played = block.play(self.agent)
            spent = time.perf_counter() - before
            self._observe(contexts, played, block, start, inside)
        except Exception as error:
            self.fail(error)
            return None
        # The rounds of a block are played in one call: its time is divided evenly among them.
        self.seconds.append(self.run.seconds + spent * (inside + 1) / len(block))
        self.run.seconds += spent
        expected = self.total_expected + np.cumsum(block.expected_of(played))
        reward = self.total + np.cumsum(played.rewards)
        self.regret.append(best - expected[inside])
        self.reward.append(reward[inside])
        self.total, self.total_expected = float(reward[-1]), float(expected[-1])
        self.arms[start : start + len(block)] = played.arms
        bins = (start + np.arange(len(block))) * _BINS // self.heat.horizon
        K = self.heat.world.n_arms
        shown = played.arms.reshape(len(block), -1)
        self.counts += np.bincount((bins[:, None] * K + shown).ravel(), minlength=_BINS * K)
        arms: NDArray[np.int64] = played.arms
        return arms

    def _observe(self, contexts: Any, played: Any, block: Block, start: int, inside: NDArray[np.int64]) -> None:
        """Record costs, clicks and user-defined metrics, and call the callbacks."""
        for name, values in block.measures(played).items():
            so_far = self.metric_totals.get(name, 0.0) + np.cumsum(values)
            self.metrics.setdefault(name, []).append(so_far[inside])
            self.metric_totals[name] = float(so_far[-1])
        if not (self.heat.metrics or self.heat.callbacks):
            return
        assert self.agent is not None
        rounds = np.arange(start + 1, start + len(block) + 1)
        stretch = Stretch(self.run.agent, self.run.seed, rounds, contexts, played.arms, played.rewards,
                          played.probabilities, block, self.agent)  # fmt: skip
        for name, metric in self.heat.metrics.items():
            values = np.asarray(metric(stretch), np.float64)
            if values.shape != (len(block),):
                raise ValueError(
                    f"metrics[{name!r}] must give one number per round: {len(block)} of them, got shape {values.shape}"
                )
            so_far = self.metric_totals[name] + np.cumsum(values)
            self.metrics[name].append(so_far[inside])
            self.metric_totals[name] = float(so_far[-1])
        for callback in self.heat.callbacks:
            callback(stretch)

    def fail(self, error: Exception) -> None:
        self.run.error = f"{type(error).__name__}: {error}"
        self.run.trace = "".join(traceback.format_exception(error))

    def finished(self) -> Run:
        if not self.run.error:
            self.run.regret, self.run.reward = np.concatenate(self.regret), np.concatenate(self.reward)
            self.run.counts = self.counts.reshape(_BINS, -1)
            self.run.arms = self.arms
            self.run.seconds_at = np.concatenate(self.seconds)
            self.run.metrics = {name: np.concatenate(parts) for name, parts in self.metrics.items()}
            self.run.final = self.agent if "agents" in self.heat.keep else None
            if isinstance(self.agent, Stopping):
                self.run.stopped_at, self.run.answer = self.agent.stopped_at, self.agent.answer
        return self.run


def one_thread_each() -> Any:
    """Limit BLAS to one thread: workers do not compete for cores, and sums do not depend on the number of threads."""
    with needs("race"):
        return thread_pools().limit(limits=1)
