"""The one staging behind SupLinUCB, SupLinREL and SupKernelUCB (Auer 2003; Chu et al. 2011, Algorithm 2).

Stages keep separate statistics, so that within a stage the rewards are independent of which rounds it holds; that is
what lets a Hoeffding bound replace the self-normalised one and saves a factor sqrt(d) in the regret.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armwise.core.agent import Choice, Floats, Seed, count, fraction, positive
from armwise.core.capabilities.merging import Merging
from armwise.core.capabilities.noting import Noting
from armwise.native import staged
from armwise.native.choice import all_finite, best_arms


class StageModel(Protocol):
    """The model of a stage: it learns one row and its reward, and is a ``Saved``, so that the agent can be saved.

    How it is asked for estimates is the agent's ``_estimate``; ``estimate(X) -> means, widths`` is the usual form.
    """

    def update(self, x: Floats, reward: float, /) -> None: ...


M = TypeVar("M", bound=StageModel)


class Staged(Merging, Noting, Generic[M]):
    """Eliminate arms stage by stage, and learn only in the stage whose widths asked for the round.

    There are S = max(1, ceil(ln T)) stages, each with a model of its own from ``make_model()``. A subclass defines
    ``_estimate(model, X, n_arms)``: the means and the confidence widths w (multiplier included) of the rows of X,
    which are the arms still alive; ``n_arms`` is K, the number of all arms of the round. Each round starts with
    s = 1 and all arms alive:

    1. every alive w <= 1/sqrt(T): play the alive argmax of mean + w; the round joins no stage (note None);
    2. else every alive w <= 2^-s: keep the arms with mean + w >= max(mean + w) - 2^(1-s), and go to stage s + 1;
    3. else play the alive arm with the largest w; its reward joins stage s, whenever it comes (note s).

    Since 2^-S <= 1/sqrt(T), stage S never passes to another. Ties are broken uniformly.

    The proof needs stages that know nothing of each other; data does not. With ``pooled`` one model answers for all
    stages and learns every reward, also those of rule 1: a reward is then worth as much as in any other agent.
    """

    not_exported = "each round passes through stages, and the choice must remember which", "LinUCB"
    _learnt = ("_models",)

    def __init__(
        self,
        horizon: int,
        delta: float,
        make_model: Callable[[], M],
        scale: float = 1.0,
        *,
        pooled: bool = False,
        seed: Seed = None,
    ) -> None:
        super().__init__(seed=seed)
        self.scale = positive("scale", scale)  # of the widths that ``_estimate`` answers
        self.horizon, self.delta = count("horizon", horizon), fraction("delta", delta)
        self.n_stages = max(1, math.ceil(math.log(self.horizon)))
        self.pooled = bool(pooled)
        self._models = [make_model() for _ in range(1 if self.pooled else self.n_stages)]
        self.merges = hasattr(self._models[0], "merge")

    @abstractmethod
    def _estimate(self, model: M, X: Floats, n_arms: int) -> tuple[Floats, Floats]:
        """Means and widths of the alive rows X under the model of one stage; ``n_arms`` counts the dead ones too."""

    def _candidates(self, X: Floats) -> tuple[NDArray[np.int64], int | None]:
        """The arms that tie to be played, and the stage that will learn the reward (None: no stage)."""
        if self.pooled:
            means, widths = self._estimate(self._models[0], X, len(X))
            arms, stage = staged.pooled(means, widths, self.horizon, self.n_stages)
            return arms, stage or None
        alive = np.arange(len(X))
        for s in range(1, self.n_stages + 1):
            model = self._models[s - 1]
            means, widths = self._estimate(model, X[alive] if len(alive) < len(X) else X, len(X))
            widest, scores = widths.max(), means + widths
            if not all_finite(scores):
                raise ValueError("context must be finite (and its square must not overflow)")
            if widest <= 1.0 / math.sqrt(self.horizon):  # rule 1
                return alive[best_arms(scores)], None
            if widest > 2.0**-s:  # rule 3
                return alive[best_arms(widths)], s
            alive = alive[scores >= scores.max() - 2.0 ** (1 - s)]  # rule 2
        raise AssertionError("2^-S <= 1/sqrt(T), so stage S plays")

    def _choose(self, context: Floats) -> Choice:
        arms, stage = self._candidates(context)
        arm = arms[0] if arms.size == 1 else arms[int(self._rng.random() * arms.size)]
        return Choice(int(arm), 1.0 / arms.size, stage)

    def _probabilities(self, context: Floats) -> Floats:
        arms, _ = self._candidates(context)
        p = np.zeros(len(context))
        p[arms] = 1.0 / arms.size
        return p

    def _learn(self, context: Floats, choice: Choice, reward: float) -> None:
        model = self._learning(choice)
        if model is not None:
            model.update(context[choice.arm], reward)

    def _learning(self, choice: Choice) -> M | None:
        """The model that learns the reward of a choice."""
        if self.pooled:
            return self._models[0]
        return None if choice.note is None else self._models[choice.note - 1]

    def _merge(self, other: Self) -> None:
        for mine, theirs in zip(self._models, other._models):
            mine.merge(theirs)  # type: ignore[attr-defined]

    def _check_note(self, choice: Choice, n_arms: int) -> None:
        stage = choice.note
        if stage is not None and (type(stage) is not int or not 1 <= stage <= self.n_stages):
            raise ValueError(
                f"choice.note must be the stage that chose, 1 to {self.n_stages}, or None, got {stage!r}: "
                "learn with the Choice that choose returned"
            )


class StagedLinear(Staged[M]):
    """A staged agent over a linear model of rows with ``dim`` features, ``prior_mean`` (d,) in every stage.

    A subclass defines ``_stage_model(dim, prior_mean)``, the model of one stage.
    """

    reward_range = (-np.inf, np.inf)
    dim: int

    def __init__(
        self,
        dim: int,
        horizon: int,
        delta: float = 0.05,
        *,
        scale: float = 0.05,
        pooled: bool = True,
        prior_mean: ArrayLike | None = None,
        seed: Seed = None,
    ) -> None:
        self.dim = count("dim", dim)
        super().__init__(horizon, delta, lambda: self._stage_model(dim, prior_mean), scale, pooled=pooled, seed=seed)
        self.prior_mean: Floats | None = self._models[0].prior_mean  # type: ignore[attr-defined]

    @classmethod
    def theoretical(cls, dim: int, horizon: int, delta: float = 0.05, *, seed: Seed = None) -> Self:
        """With the theorem's widths and separate stages.

        >>> import armwise as aw
        >>> aw.SupLinUCB.theoretical(dim=2, horizon=100).scale, aw.SupLinREL.theoretical(dim=2, horizon=100).pooled
        (1.0, False)
        """
        return cls(dim, horizon, delta, scale=1.0, pooled=False, seed=seed)

    @abstractmethod
    def _stage_model(self, dim: int, prior_mean: ArrayLike | None) -> M:
        """A model that has learnt nothing."""
