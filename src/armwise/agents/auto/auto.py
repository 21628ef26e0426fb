"""Auto: one agent that needs no tuning (beyond the survey).

It maps the raw columns (``features.Columns`` and ``features.Fourier``), keeps nested ridge models of the mapped rows (a
constant per arm, linear, additive, smooth), lets the one that predicts best decide, and is optimistic in proportion to
the errors it makes: where rewards are nearly determined it explores little, where they are noise it explores more.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from armwise import __version__
from armwise.core import saving
from armwise.core.agent import Choice, Floats, Played, Seed, Theory, count, fraction, make_choice
from armwise.core.arguments import short
from armwise.core.capabilities.per_arm import PerArm
from armwise.core.rounds import Batches, loop
from armwise.models.exact_process import DistinctRows
from armwise.models.nested import NestedModel, chosen
from armwise.native.choice import best_arms, draw, tied_probabilities

_CHUNK = 4096  # rows that play maps at once, of all arms; but at least 64 rounds


class AutoBatches(Batches["Auto"]):
    """Rounds up to the next fit of the maps or decision on the memory; looped while the exact process may decide."""

    def compiled(self, agent: Auto) -> bool:
        return True

    def block(self, agent: Auto, contexts: Any, rewards: Floats) -> Played:
        if agent._process is not None and not agent._process.full:
            return loop(agent, contexts[:16], rewards[:16])
        table = contexts[:, None, :] if agent.n_arms is not None else contexts
        chunk = max(64, _CHUNK // table.shape[1])
        n = min(len(rewards), agent._model.until_refit(), agent._until_look_back(), chunk)
        return self._nested(agent, table[:n], rewards[:n])

    def _nested(self, agent: Auto, block: Floats, rewards: Floats) -> Played:
        played = Played(*agent._model.play(block, rewards, agent.floor, agent._rng))
        rows, models = chosen(block, played.arms, agent.n_arms)
        for model in agent._models:
            if model is not agent._model:
                model.teach(rows, models, played.rewards, block if agent.n_arms is None else block[:, 0])
        agent._look_back(agent._n_learnt + len(rewards))
        return played


class Auto(PerArm):
    """Choose well from raw columns, with nothing to set.

    ``Auto(dim, n_arms=K)`` sees one context per round and learns one model per arm; ``Auto(dim)`` sees one row of
    features per arm, any number of them. Rewards may be of any size: their range is learnt. ``floor`` is the share of
    decisions spread evenly over all arms, so that every probability is at least floor / K and the log can answer other
    questions later; without it the best arm is played.

    ``drift=True`` forgets, and learns how fast: models that remember the last 64, 256 and 1,024 rewards (up to twice as
    many) all learn every reward, and every 16 rewards the shortest memory that predicts about as well as any, lately,
    takes over.

    The maps and the range of the rewards are fitted anew whenever the number of rewards learnt reaches 1, 2, 4, ...,
    1,024, from those rewards, which are then learnt again in their order. Beyond that the cost per decision, and the
    memory, stay what they are. Where rows that describe arms come back, and are no more than 256 different ones, an
    exact Gaussian process over them decides, whose kernel is fitted to the rewards (see ``DistinctRows``).

    >>> agent = Auto(dim=2, n_arms=2, seed=1)
    >>> rng = np.random.default_rng(5)
    >>> contexts = rng.normal(size=(2000, 2))
    >>> inside = (contexts**2).sum(axis=1) < 1.4                # no linear rule knows this
    >>> agent.play(contexts, np.stack([inside, ~inside], axis=1)).rewards[-500:].mean() > 0.9
    np.True_
    >>> agent.explain()["in_charge"]
    'smooth'
    """

    theory = Theory(
        section="beyond the survey",
        regret="none proved: optimism over the best of nested ridge models",
        comparator="the best arm of each round",
        assumes="rewards that a constant, a linear or a smooth function of the columns predicts",
        reference="Li et al. 2010 (optimism over ridge); Rahimi, Recht 2007 (random Fourier features)",
        infinite_policies=True,
        call="aw.Auto(dim={d}, n_arms={K})",
    )
    reward_range = (-np.inf, np.inf)
    not_exported = "the model in charge reads maps of the columns, and changes", "LinUCB or SquareCB"
    batches = AutoBatches()
    _learnt = ("_models", "_process", "_losses", "_leader", "_history")

    MEMORY: ClassVar[int] = 1024  # rewards that are kept to fit the maps
    MEMORIES: ClassVar[tuple[int, ...]] = (64, 256, 1024)  # with drift
    EACH: ClassVar[int] = 16  # rewards between two decisions on the memory
    FADE: ClassVar[float] = 0.9  # of the errors, per 16 rewards
    SLACK: ClassVar[float] = 1.05  # of the least error: what a shorter memory may cost
    SMOOTH: ClassVar[int] = 512  # features at most beside the columns, for the estimate of what the models need
    MAX_BYTES: ClassVar[int] = 2**31  # bytes of the models: a width by mistake must not take the machine's memory
    ROWS: ClassVar[int] = 256  # different rows that the process holds
    LAYOUT: ClassVar[int] = 4  # of what is saved; raised whenever a file of before would mean something else

    def __init__(
        self, dim: int, n_arms: int | None = None, *, floor: float = 0.0, drift: bool = False, seed: Seed = None
    ) -> None:
        super().__init__(seed=seed)
        self.dim = count("dim", dim)
        self.n_arms = None if n_arms is None else count("n_arms", n_arms)
        self.floor = fraction("floor", floor, zero=True)
        if not isinstance(drift, (bool, np.bool_)):
            raise ValueError(f"drift must be True or False, got {short(drift)}")
        self.drift = bool(drift)
        self.sees = "features" if n_arms is None else "shared"
        self.per_arm = n_arms is not None
        memories = self.MEMORIES if self.drift else (self.MEMORY,)
        self._refuse_large(8 * len(memories))
        self._models = [
            NestedModel(self.dim, self.n_arms, memory, forgets=self.drift, smooth=memory == self.MEMORY)
            for memory in memories
        ]
        self._losses, self._leader = np.zeros(len(memories)), len(memories) - 1
        self._process = DistinctRows(self.dim, self.ROWS) if n_arms is None and not self.drift else None
        self._history: list[dict[str, Any]] = []

    def _refuse_large(self, bytes_each: int) -> None:
        """A ValueError where the models need too much memory, which names what makes them large."""
        dim, arms = self.dim or 1, self.n_arms or 1
        alone, narrow, wanted = (
            bytes_each * k * (2 * d + self.SMOOTH) ** 2 for k, d in ((1, dim), (arms, 1), (arms, dim))
        )
        if wanted <= self.MAX_BYTES:
            return
        # One arm alone, or one column alone, may be too much already.
        named = "dim" if alone > self.MAX_BYTES else "n_arms" if narrow > self.MAX_BYTES else "n_arms or dim"
        remedies = {
            "dim": "hash the features into fewer columns (features.hashed_text, features.Encoder), or take "
            "LogisticThompson (linear in dim)",
            "n_arms": "describe the arms by features, which share one model (Auto without n_arms)",
        }
        raise ValueError(
            f"{named} must be smaller: the models of dim = {self.dim} and n_arms = {self.n_arms} may need "
            f"{wanted / 2**30:.3g} GiB, at most {self.MAX_BYTES / 2**30:.3g} are allowed; "
            + ", or ".join(remedies[name] for name in named.split(" or "))
        )

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"layout": self.LAYOUT, "version": __version__}

    def _restore(self, state: dict[str, Any]) -> None:
        version, layout = state.pop("version", "0.1.0 or earlier"), state.pop("layout", 1)
        if layout != self.LAYOUT:
            raise saving.LoadError(
                f"Auto was saved by armwise {version} (layout {layout}), and armwise {__version__} reads layout "
                f"{self.LAYOUT}: load it with that version, or let a new Auto learn from the log"
            )
        super()._restore(state)

    @property
    def _model(self) -> NestedModel:
        return self._models[self._leader]

    @property
    def _few(self) -> DistinctRows | None:
        """The process, while it is in charge."""
        return self._process if self._process is not None and self._process.returns else None

    # ------------------------------------------------------------------ choose and learn

    def _scores(self, context: Floats) -> Floats:
        process = self._few
        return self._model.scores(context) if process is None else process.scores(context)

    def _probabilities(self, context: Floats) -> Floats:
        p = tied_probabilities(self._scores(context))
        return (1.0 - self.floor) * p + self.floor / len(p) if self.floor else p

    def _choose(self, context: Floats) -> Choice:
        if self.floor:
            p = self._probabilities(context)
            arm = draw(p, self._rng.random())
            return make_choice((arm, float(p[arm]), None, None))
        arms = best_arms(self._scores(context))
        if arms.size == 1:
            return make_choice((int(arms[0]), 1.0, None, None))
        return make_choice((int(arms[int(self._rng.random() * arms.size)]), 1.0 / arms.size, None, None))

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        row, model = (context, choice.arm) if self.n_arms is not None else (context[choice.arm], 0)
        if self._few is None:
            for nested in self._models:
                nested.learn(row, model, reward, context)
        else:  # the nested model learns from its memory when it takes over
            self._model.keep(row[None], np.array([model]), np.array([reward]), context[None])
        if self._process is not None:
            was_in_charge = self._few is not None
            self._process.learn(context, choice.arm, reward)
            if was_in_charge and self._few is None:
                self._model.refit()
        self._look_back(self._n_learnt + 1)

    def _look_back(self, learnt: int) -> None:
        """Decide on the memory when it is time, and note who is in charge at 1, 2, 4, ... rewards."""
        if len(self._models) > 1 and learnt % self.EACH == 0:
            self._losses = self.FADE * self._losses + [model.take_loss() for model in self._models]
            self._leader = int(np.flatnonzero(self._losses <= self.SLACK * self._losses.min())[0])
        if learnt & (learnt - 1) == 0:
            self._history.append({"rewards": learnt, **self._weights()})

    def _until_look_back(self) -> int:
        n = self._n_learnt
        power = (1 << n.bit_length()) - n
        return power if len(self._models) == 1 else min(power, self.EACH - n % self.EACH)

    def _add_arm(self) -> None:
        for model in self._models:
            model.add_model()

    def _remove_arm(self, arm: int) -> None:
        for model in self._models:
            model.remove_model(arm)

    # ------------------------------------------------------------------ what it decided

    def explain(self) -> dict[str, Any]:
        """Show its decisions so far: which model is in charge, how often each was, the maps, and the noise.

        ``weights`` are those over time: at 1, 2, 4, ... rewards, who was in charge, of which memory, and how often each
        model had been since the maps were last fitted.

        >>> sorted(Auto(dim=1, n_arms=2).explain())
        ['features', 'in_charge', 'length_scale', 'memory', 'noise', 'reward_range', 'shares', 'since_refit', 'weights']
        """
        model, process = self._model, self._few
        return {
            **self._weights(),
            "since_refit": model.since_refit,
            "noise": model.noise if process is None else process.noise,
            "reward_range": model.reward_range,
            "features": model.features,
            "length_scale": model.length_scale,
            "weights": [dict(entry) for entry in self._history],
        }

    def _weights(self) -> dict[str, Any]:
        model, process = self._model, self._few
        if process is not None:
            name = f"process, {process.kernel}"
            return {"in_charge": name, "memory": None, "shares": {name: 1.0}}
        return {"in_charge": model.in_charge, "memory": model.memory if self.drift else None, "shares": model.shares}

    def _estimates(self, context: Floats) -> tuple[Floats, Floats]:
        process = self._few
        return self._model.estimates(context) if process is None else process.estimate(context)
