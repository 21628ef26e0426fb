"""The measurements of a race: regret, reward, time, arms and metrics of every run at the recorded rounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats
from armwise.core.capabilities.stopping import Stopping
from armwise.core.tools.extras import needs
from armwise.environments.lists import click_measure
from armwise.racing.run.heat import Heat, Player, Run, world_seed

if TYPE_CHECKING:
    import pandas as pd


class Measured:
    """The runs of one heat as arrays: one row per seed, one column per recorded round."""

    def __init__(self, heat: Heat, seeds: list[int], runs: list[Run]) -> None:
        self.heat, self.seeds, self.runs = heat, seeds, runs
        self.world, self.agents, self.horizon = heat.world, dict(heat.agents), heat.horizon
        self.rounds: NDArray[np.int64] = heat.rounds

    @property
    def label(self) -> str:
        """The name of the heat."""
        return self.heat.label

    @cached_property
    def failures(self) -> list[str]:
        """One line for each run that failed: agent, world, seed and why."""
        return [f"{run.agent} on {self.world!r} with seed {run.seed}: {run.error}" for run in self.runs if run.error]

    @cached_property
    def finishers(self) -> list[str]:
        """The agents with at least one finished run, in the order they were given."""
        return [name for name in self.agents if any(run.agent == name and not run.error for run in self.runs)]

    def runs_of(self, name: str) -> list[Run]:
        """The finished runs of an agent, by seed."""
        if name not in self.agents:
            raise ValueError(f"the agents of this race are {', '.join(self.agents)}, got {name!r}")
        return [run for run in self.runs if run.agent == name and not run.error]

    def _finished(self, name: str) -> list[Run]:
        if not (runs := self.runs_of(name)):
            raise ValueError(f"no run of {name!r} finished: see result.failures")
        return runs

    def regret(self, name: str) -> Floats:
        """Cumulative regret at ``rounds``, one row per seed."""
        return np.stack([run.regret for run in self._finished(name)])

    def reward(self, name: str) -> Floats:
        """Cumulative reward at ``rounds``, one row per seed."""
        return np.stack([run.reward for run in self._finished(name)])

    def seconds(self, name: str) -> Floats:
        """Time spent choosing and learning up to each of ``rounds``, one row per seed."""
        return np.stack([run.seconds_at for run in self._finished(name)])

    def metric(self, metric: str, name: str) -> Floats:
        """A user-defined metric, cumulative at each of ``rounds``: one row per seed.

        >>> import armwise as aw
        >>> result = aw.race([aw.UCB1(3)], aw.environments.Switching(n_arms=3), horizon=20, seeds=2,
        ...                  metrics={"plays of arm 0": lambda played: played.arms == 0})
        >>> result.metric("plays of arm 0", "UCB1")[:, -1] <= 20
        array([ True,  True])
        """
        runs = self.runs_of(name)
        if not runs or metric not in runs[0].metrics:
            known = ", ".join(runs[0].metrics) if runs else ""
            raise ValueError(f"metric must be one that the race was given ({known or 'none'}), got {metric!r}")
        return np.stack([run.metrics[metric] for run in runs])

    @property
    def costs(self) -> tuple[str, ...]:
        """The names of the costs of this world: "cost", or "cost 0", "cost 1", ...; empty for a world without costs."""
        known = {each for run in self.runs for each in run.metrics} - set(self.heat.metrics) - set(self._clicks)
        return tuple(sorted(known))

    @property
    def _clicks(self) -> tuple[str, ...]:
        return tuple(click_measure(slot) for slot in range(self.world.n_slots or 0))

    def clicks(self, name: str) -> Floats:
        """Clicks per list on each slot, one row per seed, in a world of lists.

        >>> import armwise as aw
        >>> world = aw.environments.Lists(n_arms=6, n_slots=2)
        >>> aw.race([aw.CascadeKLUCB(6)], world, horizon=50, seeds=3).clicks("CascadeKLUCB").shape
        (3, 2)
        """
        if self.world.n_slots is None:
            raise ValueError(f"{self.world!r:.80} shows one arm a round, so there are no clicks by slot")
        return np.stack([self.metric(each, name)[:, -1] for each in self._clicks], axis=1) / self.horizon

    def best_clicks(self) -> Floats:
        """Clicks per list on each slot that the best list of each round can expect, one row per seed.

        Where worlds are long, over their first block of rounds.

        >>> import armwise as aw
        >>> world = aw.environments.Lists(n_arms=3, n_slots=2, attraction=[0.5, 0.2, 0.0])
        >>> aw.race([aw.CascadeKLUCB(3)], world, horizon=50, seeds=1).best_clicks().round(9)
        array([[0.5, 0.1]])
        """
        if self.world.n_slots is None:
            raise ValueError(f"{self.world!r:.80} shows one arm a round, so there are no clicks by slot")
        found = []
        for seed in self.seeds:
            block: Any = next(iter(self.world.blocks(self.horizon, world_seed(seed))))
            found.append(block.click_chances(block.best_lists).mean(axis=0))
        return np.stack(found)

    def shown(self, name: str) -> Floats:
        """The share of lists that showed each arm, over the last quarter of the rounds and all seeds: (K,).

        >>> import armwise as aw
        >>> aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=40, seeds=2).shown("UCB1").sum().round(9)
        np.float64(1.0)
        """
        share = self.arm_share(name)
        return np.asarray(share[-max(1, len(share) // 4) :].mean(axis=0) * (self.world.n_slots or 1))

    def cost(self, name: str) -> Floats:
        """Cumulative cost at ``rounds``, one row per seed; (seeds, rounds, m) where there are m > 1 resources.

        >>> import armwise as aw
        >>> world = aw.environments.Budgeted(n_arms=3, dim=2, rate=0.2)
        >>> result = aw.race({"free": aw.HardStop(aw.LinUCB(2), 20.0, 1.0, 0)}, world, horizon=100, seeds=2)
        >>> bool((result.cost("free")[:, -1] <= 20.0).all())
        True
        """
        if not self.costs:
            raise ValueError(f"{self.world!r:.80} has no costs")
        table = np.stack([self.metric(each, name) for each in self.costs], axis=2)
        return np.asarray(table[:, :, 0]) if len(self.costs) == 1 else table

    def final(self, name: str, seed: int | None = None) -> Player:
        """The agent after the last round of a seed (by default the first seed).

        >>> import armwise as aw
        >>> result = aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=2, keep=["agents"])
        >>> result.final("UCB1").t
        21
        """
        run = self._run(name, seed)
        if run.final is None:
            raise ValueError(f"{name!r} was not kept: race with keep=['agents']")
        return run.final

    def arms(self, name: str, seed: int | None = None) -> NDArray[np.int64]:
        """The arm of every round of a seed: the first one by default, others if the race has ``keep=["arms"]``.

        >>> import armwise as aw
        >>> len(aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=2).arms("UCB1"))
        20
        """
        run = self._run(name, seed)
        if run.arms is None:
            raise ValueError(f"the arms of {name!r} with seed {run.seed} were not kept: race with keep=['arms']")
        return run.arms.astype(np.int64)

    def _run(self, name: str, seed: int | None) -> Run:
        wanted = self.seeds[0] if seed is None else seed
        for run in self.runs_of(name):
            if run.seed == wanted:
                return run
        raise ValueError(f"no finished run of {name!r} with seed {wanted}: agents {self.finishers}, seeds {self.seeds}")

    @property
    def searchers(self) -> list[str]:
        """The agents that search for the best arm and stop."""
        return [name for name in self.finishers if isinstance(self.agents[name], Stopping)]

    def stopping_times(self, name: str) -> Floats:
        """The round after which the agent's search stopped, one per seed; NaN where it went on to the horizon.

        >>> import armwise as aw
        >>> world = aw.environments.KArmed([0.2, 0.8])
        >>> result = aw.race([aw.LUCB(2, delta=0.1)], world, horizon=1000, seeds=3)
        >>> result.stopping_times("LUCB") < 1000
        array([ True,  True,  True])
        """
        if name not in self.searchers:
            raise ValueError(f"name must be an agent that stops ({', '.join(self.searchers) or 'none'}), got {name!r}")
        runs = self._finished(name)
        return np.array([np.nan if run.stopped_at is None else float(run.stopped_at) for run in runs])

    def answers(self, name: str) -> list[int | None]:
        """The arm that the agent named when its search stopped, one per seed; None where it went on.

        >>> import armwise as aw
        >>> world = aw.environments.KArmed([0.2, 0.8])
        >>> aw.race([aw.LUCB(2, delta=0.1)], world, horizon=1000, seeds=3).answers("LUCB")
        [1, 1, 1]
        """
        if name not in self.searchers:
            raise ValueError(f"name must be an agent that stops ({', '.join(self.searchers) or 'none'}), got {name!r}")
        return [run.answer for run in self._finished(name)]

    def quantiles(self, levels: Sequence[float] = (0.05, 0.5, 0.95)) -> pd.DataFrame:
        """The quantiles of regret over the seeds at every recorded round: agent, round, one column per level.

        >>> import armwise as aw
        >>> aw.race([aw.UCB1(3)], aw.environments.Switching(3), horizon=20, seeds=4).quantiles().columns.tolist()
        ['agent', 'round', 'q0.05', 'q0.5', 'q0.95']
        """
        with needs("race"):
            import pandas as pd

        if not all(0.0 <= level <= 1.0 for level in levels):
            raise ValueError(f"levels must lie in [0, 1], got {list(levels)}")
        n, names = len(self.rounds), self.finishers
        columns = {"agent": np.repeat(names, n), "round": np.tile(self.rounds, len(names))}
        table = np.concatenate([np.quantile(self.regret(name), levels, axis=0) for name in names], axis=1)
        return pd.DataFrame(columns | {f"q{level:g}": table[i] for i, level in enumerate(levels)})

    def arm_share(self, name: str) -> Floats:
        """The share of each arm in successive stretches of the horizon, over all seeds: (stretches, K)."""
        counts = np.sum([run.counts for run in self.runs_of(name)], axis=0)
        counts = counts[counts.sum(axis=1) > 0]
        share: Floats = counts / counts.sum(axis=1, keepdims=True)
        return share

    def seconds_per_decision(self, name: str) -> float:
        """Time to choose and learn once when rounds are played in blocks, averaged over all runs."""
        return float(np.mean([run.seconds for run in self.runs_of(name)])) / self.horizon

    def curves(self) -> pd.DataFrame:
        """Every run at every recorded round: agent, seed, round, regret, reward, time so far, user-defined metrics.

        >>> import armwise as aw
        >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=200, seeds=4)
        >>> result.curves().columns.tolist()
        ['world', 'agent', 'seed', 'round', 'regret', 'reward', 'seconds']
        """
        with needs("race"):
            import pandas as pd

        whole = [run for run in self.runs if not run.error]
        n = len(self.rounds)
        return pd.DataFrame(
            {
                "world": self.label,
                "agent": np.repeat([run.agent for run in whole], n),
                "seed": np.repeat([run.seed for run in whole], n),
                "round": np.tile(self.rounds, len(whole)),
                "regret": np.concatenate([run.regret for run in whole]) if whole else [],
                "reward": np.concatenate([run.reward for run in whole]) if whole else [],
                "seconds": np.concatenate([run.seconds_at for run in whole]) if whole else [],
            }
            | {
                metric: np.concatenate([run.metrics[metric] for run in whole])
                for metric in (whole[0].metrics if whole else ())
            }
        )
