"""Inference by simulation: the agent itself is run again and again on worlds like the log's.

An agent that stops trying an arm where it looks bad leaves a log from which, without a model of the rewards, only a
range can be told. With one (rewards linear in the contexts) the value can be estimated by regression; but the rows of a
regression that an agent chose are no sample, so that its errors are neither centred nor normal. Here their law is taken
from clones of the agent that live through worlds drawn from the fitted model: Efron's (1979) bootstrap, studentised, in
the way of Cho, Bibaut and Kallus (2025), who re-run the experiment instead of approximating it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.core.agent import Agent, Choice, Floats
from armwise.core.seeds import stream
from armwise.core.tools.progress import progress_bar
from armwise.offline.estimators.arm_inputs import per_arm
from armwise.offline.evaluation.targets import views
from armwise.offline.logs.rows import Ints, LogBlock, ndim

LACK_OF_FIT, DRIFT = 0.2, 0.01  # p-values below which the model does not hold, which costs a wider interval at most
_RIDGE, _PRIOR_ROWS = 1.0, 10.0  # of scaled columns; rows of the common variance in that of a model
_FEW = 30  # rows of an arm below which its fit, and so its world, is not to be relied on
_PART = 0.02  # share of a policy's decisions from which on an arm matters to it
_CHECKED = 500  # rows on which the agent is compared with the log
_EXTRAS = 30  # columns, beyond the model's own, that the check of its fit tries
_POOL = 200  # residuals that stand for those of a model


@dataclass(frozen=True)
class Simulation:
    """The estimates by name, each with its ends and standard error; what speaks against the model and the agent."""

    estimates: dict[str, tuple[float, float, float, float]]
    rows: dict[str, int]  # of the model that has the fewest, of those that the estimate needs
    lack_of_fit: float  # p-value of "the rewards are as the model says", against squares, cubes and products
    drift: float  # the same, against another level in the second half
    unlike: str  # why the agent cannot have written the log, or empty
    model: str
    agent: str
    runs: int

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the model and the agent."""
        return self.lack_of_fit >= LACK_OF_FIT and self.drift >= DRIFT and not self.unlike

    @property
    def rests_on(self) -> str:
        """The assumptions of the intervals, in words."""
        return (
            f"simulated intervals rest on {self.model} (lack of fit p = {self.lack_of_fit:.2g}), and on {self.agent} "
            f"as given, which had learnt nothing, having written this log; {self.runs} simulated logs"
        )

    @property
    def weaknesses(self) -> list[str]:
        """Evidence against the model, and against the agent."""
        found = [f"no simulated intervals: {self.unlike}"] if self.unlike else []
        if self.lack_of_fit < LACK_OF_FIT:
            found.append(
                f"no simulated intervals: they would rest on {self.model}, which does not hold here (lack of fit "
                f"p = {self.lack_of_fit:.2g}: squares, cubes or products explain the rewards better)"
            )
        if self.drift < DRIFT:
            found.append(f"no simulated intervals: rewards changed half-way (p = {self.drift:.2g})")
        return found

    def against(self, name: str) -> tuple[str, ...]:
        """Evidence against this estimate's interval: the model, the agent, or too few rows of an arm."""
        if self.weaknesses:
            return ("no simulated interval",)
        if self.rows[name] < _FEW:
            return (f"no simulated interval: the agent played an arm that it needs in only {self.rows[name]} rows, too "
                    f"few for a fit (at least {_FEW})",)  # fmt: skip
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rest = {
            name: getattr(self, name)
            for name in ("model", "agent", "runs", "lack_of_fit", "drift", "holds", "rests_on")
        }
        return {**rest, "weaknesses": self.weaknesses}


def simulate(
    rows: LogBlock, agent: Agent, policies: Mapping[str, Floats], control: Floats | None = None, *, level: float = 0.95,
    runs: int = 399, limits: tuple[float, float] | None = None, names: list[str] | None = None, seed: int = 0,
    progress: bool = False,
) -> Simulation:  # fmt: skip
    """The values of policies, their differences to ``control``, and the agent's own lift over it ("agent - control").

    Policies are (n, K) tables of probabilities; ``names`` are those of the contexts' columns.
    """
    if rows.available is not None:
        raise ValueError("interval='simulated' needs a log whose rounds all offer the same arms")
    design = _Design(rows)
    questions = _Questions(rows, policies, control)
    own = design.fit(np.arange(len(rows)), rows.arms, rows.rewards)
    world = _World(design, own, _limits(limits, agent, rows.rewards))
    values, errors = questions.answers(design, own)
    truths, misfit = questions.values_in(world.mean), design.misfit(own)
    seen = views(agent.sees, rows)
    t, worse = np.empty((runs, len(values))), np.zeros(2)
    with progress_bar(runs, " simulated logs", show=progress, extra="offline", leave=False) as bar:
        for run in range(runs):
            again = _rerun(agent, seen, design, world, seed, run)
            estimates, se = questions.answers(design, again)
            earned = float(world.mean[again.rows, again.arms].mean())
            t[run] = (estimates - questions.asked(truths, earned)) / se
            worse += design.misfit(again) >= misfit
            bar.update(1)
    # Ranks k / (runs + 1): a t from the same law falls below the k-th with just this probability.
    low, high = np.quantile(t, [0.5 - level / 2, 0.5 + level / 2], axis=0, method="weibull")
    found = {name: (float(values[i]), float(values[i] - high[i] * errors[i]), float(values[i] - low[i] * errors[i]),
                    float(errors[i])) for i, name in enumerate(questions.names)}  # fmt: skip
    p = (1.0 + worse) / (1.0 + runs)
    return Simulation(
        found, dict(zip(questions.names, questions.rows(design, own))), float(p[0]), float(p[1]),
        _unlike(agent, rows, seen, seed), design.about(names), type(agent).__name__, runs,
    )  # fmt: skip


# ---------------------------------------------------------------------- the model


@dataclass(frozen=True)
class _Fit:
    """Ridge estimates on one log, real or simulated: rows (of the real log), arms, and sums by model."""

    rows: Ints
    arms: Ints
    residuals: Floats
    theta: Floats  # (M, p)
    inverse: Floats  # (M, p, p), of the Gram matrices with the ridge
    gram: Floats  # (M, p, p)
    variance: Floats  # (M,) of the noise


class _Design:
    """The columns of the regression: a model for each arm on the contexts, or one on the features of the arms."""

    def __init__(self, rows: LogBlock) -> None:
        self.shared = per_arm(rows)
        self.K = rows.n_arms
        if self.shared:
            X = np.asarray(rows.features(), np.float64)
        elif ndim(rows.contexts) == 1:
            raise ValueError("interval='simulated' needs contexts that are numbers, or none; these are keys")
        else:
            X = np.empty((len(rows), 0)) if rows.contexts is None else np.asarray(rows.contexts, np.float64)
        self.columns = X.shape[-1]
        flat = X.reshape(math.prod(X.shape[:-1]), X.shape[-1])
        spread = flat.std(axis=0)
        kept = spread > 1e-12 * np.maximum(np.abs(flat).max(axis=0, initial=0.0), 1.0)  # a constant is the level
        scaled = (X[..., kept] - flat.mean(axis=0)[kept]) / spread[kept]
        self.X = np.concatenate([np.ones((*scaled.shape[:-1], 1)), scaled], axis=-1)
        self.models = 1 if self.shared else self.K
        self.extras = _extras(scaled)

    def about(self, names: list[str] | None) -> str:
        """The model of the rewards, in words."""
        if self.shared:
            return "rewards that are linear in the features of the arms, with the same weights for every arm"
        if self.columns == 0:
            return "rewards that have one mean for each arm, which does not change"
        of = ", ".join(names) if names is not None and len(names) == self.columns else f"x0 to x{self.columns - 1}"
        return f"rewards that are linear in the columns ({of}), with weights of its own for each arm"

    def chosen(self, values: Floats, rows: Ints, arms: Ints) -> Floats:
        """The values (of ``X`` or ``extras``) of the arms that were played."""
        return np.asarray(values[rows, arms] if self.shared else values[rows])

    def fit(self, rows: Ints, arms: Ints, rewards: Floats) -> _Fit:
        X, p, M = self.chosen(self.X, rows, arms), self.X.shape[-1], self.models
        gram, moment = np.zeros((M, p, p)), np.zeros((M, p))
        mean = float(rewards.mean())  # an arm without rows answers the mean reward
        parts = list(self.parts(arms))
        for m, mine in parts:
            gram[m], moment[m] = X[mine].T @ X[mine], X[mine].T @ (rewards[mine] - mean)
        inverse = np.linalg.inv(gram + _RIDGE * np.eye(p))
        theta = np.einsum("mpq,mq->mp", inverse, moment)
        theta[:, 0] += mean
        residuals = np.empty(len(rewards))
        squares, free = np.zeros(M), np.zeros(M)
        for m, mine in parts:
            residuals[mine] = rewards[mine] - X[mine] @ theta[m]
            squares[m] = residuals[mine] @ residuals[mine]
            free[m] = max(len(mine) - float(np.trace(inverse[m] @ gram[m])), 0.0)
        common = squares.sum() / max(free.sum(), 1.0)
        variance = (squares + _PRIOR_ROWS * common) / (free + _PRIOR_ROWS)
        return _Fit(rows, arms, residuals, theta, np.asarray(inverse, np.float64), gram, np.maximum(variance, 1e-24))

    def parts(self, arms: Ints) -> Iterator[tuple[int, Ints]]:
        """Each model that has rows, with these."""
        if self.shared:
            yield 0, np.arange(len(arms))
            return
        for arm in np.unique(arms):
            yield int(arm), np.flatnonzero(arms == arm)

    def means(self, theta: Floats) -> Floats:
        """(n, K) expected rewards in the rounds of the real log."""
        return np.asarray(self.X @ theta[0] if self.shared else self.X @ theta.T)

    def misfit(self, fit: _Fit) -> Floats:
        """Score statistics of squares, cubes and products beside the fit, and of a change half-way."""
        late = (np.arange(len(fit.rows)) >= len(fit.rows) / 2).astype(float)[:, None]
        X = self.chosen(self.X, fit.rows, fit.arms)
        return np.array([self._score(fit, X, E) for E in (self.chosen(self.extras, fit.rows, fit.arms), late)])

    def _score(self, fit: _Fit, X: Floats, extras: Floats) -> float:
        total = 0.0
        for m, mine in self.parts(fit.arms):
            x, e = X[mine], extras[mine]
            e = e - x @ (fit.inverse[m] @ (x.T @ e))  # what the model's own columns do not explain
            # Each column on its own: a bend is in one or two of them, and several are much alike where the arm is
            # played, so that a joint test of all would spend its power on directions that no bend has.
            total += float(((e.T @ fit.residuals[mine]) ** 2 / ((e**2).sum(axis=0) + _RIDGE)).sum()) / fit.variance[m]
        return total


def _extras(scaled: Floats) -> Floats:
    """Squares, cubes and products of columns, as many as are tried."""
    d = scaled.shape[-1]
    found = [scaled[..., i] ** 2 for i in range(d)] + [scaled[..., i] ** 3 for i in range(d)]
    found += [scaled[..., i] * scaled[..., j] for i in range(d) for j in range(i)]
    return np.stack(found[:_EXTRAS], axis=-1) if found else np.empty((*scaled.shape[:-1], 0))


class _Questions:
    """Values of policies, then their differences to the control, then the agent's own lift, which comes last."""

    def __init__(self, rows: LogBlock, policies: Mapping[str, Floats], control: Floats | None) -> None:
        tables = dict(policies)
        self.values = list(tables)
        self.names = list(tables)
        self.pairs: list[int] = []
        if control is not None:
            self.pairs = [i for i, name in enumerate(self.values) if not np.array_equal(tables[name], control)]
            self.names += [f"{self.values[i]} - control" for i in self.pairs] + ["agent - control"]
        asked = [*tables.values(), *([] if control is None else [control])]  # the last one not by itself
        self.tables = [table[:1] if (table == table[:1]).all() else table for table in asked]
        self.n = len(rows)

    def rows(self, design: _Design, fit: _Fit) -> list[int]:
        """The fewest rows of an arm that plays a part in each question."""
        counts = np.full(design.K, self.n) if design.shared else np.bincount(fit.arms, minlength=design.K)
        least = np.array([counts[table.mean(axis=0) > _PART].min(initial=self.n) for table in self.tables])
        if len(least) == len(self.values):
            return [int(each) for each in least]
        return [int(each) for each in (*least[:-1], *np.minimum(least[self.pairs], least[-1]), least[-1])]

    def values_in(self, mean: Floats) -> Floats:
        """The values of the policies (and the control) in a world with these expected rewards."""
        return np.array([float((table * mean).sum(axis=1).mean()) for table in self.tables])

    def asked(self, values: Floats, earned: float) -> Floats:
        """The answers to all questions, given the policies' values and what the agent earned in its own rounds."""
        if len(values) == len(self.values):
            return values
        return np.asarray(np.r_[values[:-1], values[self.pairs] - values[-1], earned - values[-1]])

    def answers(self, design: _Design, fit: _Fit) -> tuple[Floats, Floats]:
        """Estimates and their standard errors."""
        X = design.X[fit.rows]
        means = np.asarray(X @ fit.theta[0] if design.shared else X @ fit.theta.T)
        G, scores = [], []
        for table in self.tables:
            pi = table if len(table) == 1 else table[fit.rows]
            G.append(self._slopes(design, X, pi))
            scores.append((pi * means).sum(axis=1))
        g, f = np.stack(G), np.stack(scores)
        values = f.mean(axis=1)
        if len(values) > len(self.values):
            g = np.concatenate([g[:-1], g[self.pairs] - g[-1], -g[-1:]])
            f = np.concatenate([f[:-1], f[self.pairs] - f[-1], -f[-1:]])
        weights = np.einsum("mpq,amq->amp", fit.inverse, g)  # of a row of model m in question a: weights . x
        noise = np.einsum("amp,mpq,amq,m->a", weights, fit.gram, weights, fit.variance)
        y = 0.0
        if len(values) > len(self.values):  # the agent's own mean has the weight 1 / n in every row
            y = float((fit.residuals.sum() + means[np.arange(self.n), fit.arms].sum()) / self.n)
            column, counts = fit.gram[:, 0], fit.gram[:, 0, 0]  # sums of x, and rows, by model
            both = 2.0 * np.einsum("mp,mp->m", weights[-1], column) / self.n + counts / self.n**2
            noise[-1] += float(both @ fit.variance)
        spread = f.var(axis=1) / self.n
        return self.asked(values, y), np.sqrt(np.maximum(noise, 1e-300) + spread)

    def _slopes(self, design: _Design, X: Floats, pi: Floats) -> Floats:
        """The derivatives of the policy's value by theta: (M, p)."""
        if design.shared:
            return np.asarray(np.einsum("nk,nkp->p", np.broadcast_to(pi, X.shape[:2]), X)[None] / len(X))
        if len(pi) == 1:
            return np.asarray(pi[0][:, None] * X.mean(axis=0))
        return np.asarray(pi.T @ X / len(X))


# ---------------------------------------------------------------------- worlds


def _limits(given: tuple[float, float] | None, agent: Agent, rewards: Floats) -> tuple[float, float]:
    """Between which rewards can lie: what was said, 0 and 1 if all lie there, and what the agent takes."""
    low, high = given if given is not None else (-math.inf, math.inf)
    if given is None and rewards.min() >= 0.0 and rewards.max() <= 1.0:
        low, high = 0.0, 1.0
    return max(low, agent.reward_range[0]), min(high, agent.reward_range[1])


class _World:
    """Rewards drawn from the fitted model: 0 or 1, or the mean and one of the residuals."""

    def __init__(self, design: _Design, fit: _Fit, limits: tuple[float, float]) -> None:
        self._mean, self._limits, self._pools = design.means(fit.theta), limits, None
        rewards = fit.residuals + self._mean[fit.rows, fit.arms]
        if np.isin(rewards.round(9), (0.0, 1.0)).all():
            self.mean = np.clip(self._mean, 0.0, 1.0)
            return
        self._pools = self._residuals(design, fit)
        self.mean = np.column_stack([
            np.clip(self._mean[:, [k]] + self._pools[k], *limits).mean(axis=1) for k in range(design.K)
        ])  # fmt: skip

    def _residuals(self, design: _Design, fit: _Fit) -> Floats:
        """(K, _POOL) residuals, of the model's own rows where it has enough, as wide as its noise."""
        quantiles = (np.arange(_POOL) + 0.5) / _POOL
        pools = np.tile(np.quantile(fit.residuals, quantiles), (design.models, 1))
        for m, mine in design.parts(fit.arms):
            if len(mine) >= 30:
                pools[m] = np.quantile(fit.residuals[mine], quantiles)
        pools -= pools.mean(axis=1, keepdims=True)
        spread = np.maximum(pools.std(axis=1), 1e-150)
        pools *= (np.sqrt(fit.variance) / spread)[:, None]
        return np.broadcast_to(pools, (design.K, _POOL))

    def draw(self, rows: Ints, rng: np.random.Generator) -> Floats:
        """(n, K) rewards of these rounds."""
        if self._pools is None:
            return np.asarray(rng.random((len(rows), self.mean.shape[1])) < self.mean[rows], np.float64)
        K = len(self._pools)
        noise = self._pools[np.arange(K), rng.integers(0, _POOL, (len(rows), K))]
        return np.asarray(np.clip(self._mean[rows] + noise, *self._limits))


def _rerun(agent: Agent, seen: Any, design: _Design, world: _World, seed: int, run: int) -> _Fit:
    """A clone lives through resampled rounds with rewards of the world; the model is fitted to its log."""
    rng = stream(seed, f"simulated log {run}")
    n = len(design.X)
    rows = rng.integers(0, n, n)
    contexts = (
        None if agent.sees == "nothing" else seen[rows] if isinstance(seen, np.ndarray) else [seen[i] for i in rows]
    )
    played = agent.clone(seed=int(rng.integers(2**63))).play(contexts, world.draw(rows, rng))
    return design.fit(rows, played.arms, played.rewards)


# ---------------------------------------------------------------------- is it the agent?


def _unlike(agent: Agent, rows: LogBlock, seen: Any, seed: int) -> str:
    """Why the log cannot be this agent's, told from its first rows; empty if it can.

    Two clones, which learn what the log's agent learnt, are asked for their probabilities q and q' in each round. If
    the log's arm is drawn as theirs would be, then q(arm) - q . q' has the mean 0 in every round.
    """
    n = min(len(rows), _CHECKED)
    one, other = (agent.clone(seed=int(stream(seed, f"replayed {i}").integers(2**63))) for i in range(2))
    gaps, same = np.zeros(n), rows.probabilities is not None
    for t in range(n):
        context, arm = seen[t], int(rows.arms[t])
        try:
            q, again = one.probabilities(context), other.probabilities(context)
            p = None if rows.probabilities is None else float(rows.probabilities[t])
            for clone in (one, other):
                clone.learn(context, Choice(arm, p if p is not None else max(float(q[arm]), 1e-9)), rows.rewards[t])
        except (ValueError, NotImplementedError):
            return ""  # it does not know its probabilities, or learns only its own choices: no statement is possible
        gaps[t] = q[arm] - q @ again
        same = same and p is not None and abs(q[arm] - p) <= 1e-6
    squares = float(gaps @ gaps)
    z = float(gaps.sum()) / math.sqrt(squares) if squares > 0 else 0.0
    if same or abs(z) <= 4.0:
        return ""
    more = "less often" if z < 0 else "more often"
    return (
        f"{type(agent).__name__} as given would have played the logged arms {more} ({abs(z):.1f} standard errors, from "
        f"{n:,} rows): it is not what wrote this log, or it had learnt before, or it was told rewards later"
    )
