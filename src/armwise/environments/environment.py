"""The contract of a world: blocks of rounds that any agent can play, with the expected reward of every arm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats, Seed, Sees, count
from armwise.core.arguments import as_floats, refuse_masked, short
from armwise.core.saving import Saved
from armwise.core.seeds import stream

Arms = NDArray[np.int64]
Blocks = Generator["Block", "Arms | None", None]

BEST_ARM_EACH_ROUND = "the best arm of each round"
BEST_ARM_IN_HINDSIGHT = "the best arm in hindsight"
BEST_ARM_IN_EXPECTATION = "the best arm in expectation"
BEST_MAP = "the best map from contexts to arms"
BEST_POLICY = "the best policy of the class"
BEST_OF_POLICIES = "the best of N policies"
BEST_EXPERT = "the best expert in hindsight"
BEST_NODE = "the best node"

_VIEWS = ("shared", "features", "key", "advice")
_BLOCK_NUMBERS = 2**19  # a block of contexts is about 4 MB: large enough to be fast, small enough for the cache


class Block:
    """Consecutive rounds: their views, the reward of each arm, and the competitors that regret is measured against.

    ``expected`` is the reward of each arm without noise. Regret up to round t is the largest column of the cumulative
    sums of ``competitors`` (one column: the best arm of each round) minus the agent's cumulative reward. ``costs`` is
    the cost of each arm, (T, K) or (T, K, m), in worlds with costs.

    >>> block = Block({"shared": np.ones((5, 3))}, rewards=np.eye(2)[[0, 1, 0, 0, 1]])
    >>> block.view("shared").shape, block.view("features").shape, block.view("advice").shape
    ((5, 3), (5, 2, 6), (5, 3, 2))
    """

    def __init__(
        self,
        views: dict[str, Any],
        rewards: Floats,
        expected: Floats | None = None,
        competitors: Floats | None = None,
        costs: Floats | None = None,
    ) -> None:
        self.rewards = as_floats("rewards", rewards)
        if self.rewards.ndim != 2 or 0 in self.rewards.shape:
            raise ValueError(f"rewards must have a row per round and a column per arm, got shape {self.rewards.shape}")
        self.expected = self.rewards if expected is None else as_floats("expected", expected)
        if self.expected.shape != self.rewards.shape:
            raise ValueError(
                f"expected must have the shape of rewards, {self.rewards.shape}, got shape {self.expected.shape}"
            )
        if expected is not None and not np.isfinite(self.expected).all():
            raise ValueError("expected must be finite, got NaN or infinity")
        if competitors is None:
            competitors = self.expected.max(axis=1, keepdims=True)
        self.competitors = as_floats("competitors", competitors)
        self.costs = None if costs is None else as_floats("costs", costs)
        self._views = dict(views)
        for name, rounds in (("competitors", self.competitors), ("costs", self.costs), *self._views.items()):
            if rounds is not None and name != "n_keys":
                self._check_rounds(name, rounds)

    def _check_rounds(self, name: str, rounds: Any) -> None:
        """One entry per round; features also one row per arm, advice one column."""
        if name in self._views and name not in _VIEWS:
            raise ValueError(f"a block's views are {', '.join(_VIEWS)}, got {name!r}")
        refuse_masked(name, rounds)
        (T, K), shape = self.rewards.shape, np.shape(rounds) if isinstance(rounds, np.ndarray) else (len(rounds),)
        axis = {"features": 1, "advice": 2}.get(name)
        if shape[0] != T or (axis is not None and len(shape) == 3 and shape[axis] != K):
            raise ValueError(f"{name} must be of the same {T} rounds and {K} arms as rewards, got shape {shape}")

    def __len__(self) -> int:
        return len(self.rewards)

    def view(self, sees: Sees) -> Any:
        """The rounds as an agent with this ``sees`` reads them; views that the world does not have are derived.

        A shared context becomes per-arm features by one block of coordinates for each arm, and features become
        a shared context side by side; a key becomes an indicator vector, and a vector the signs of its first
        coordinates; advice is one expert for each arm and one that is uniform.

        >>> Block({"key": [0, 2, 1]}, rewards=np.ones((3, 2))).view("shared")
        array([[1., 0., 0.],
               [0., 0., 1.],
               [0., 1., 0.]])
        """
        if sees == "nothing":
            return None
        if sees not in self._views:
            self._views[sees] = getattr(self, f"_derive_{sees}")()
        return self._views[sees]

    def play(self, agent: Any) -> Any:
        """Let an agent choose and learn in these rounds; what it played.

        >>> import armwise as aw
        >>> Block({}, rewards=np.eye(2)[[0, 0]]).play(aw.UCB1(n_arms=2)).rewards.shape
        (2,)
        """
        return agent.play(self.view(agent.sees), self.rewards, self.costs)

    def expected_of(self, played: Any) -> Floats:
        """The reward without noise of the arm played in each round."""
        return np.asarray(self.expected[np.arange(len(self)), played.arms])

    def measures(self, played: Any) -> dict[str, Floats]:
        """The records of each round beside its reward: the costs, by name."""
        if played.costs is None:
            return {}
        table = played.costs.reshape(len(self), -1)
        names = ["cost"] if table.shape[1] == 1 else [f"cost {i}" for i in range(table.shape[1])]
        return dict(zip(names, table.T))

    def _derive_shared(self) -> Floats:
        if "features" in self._views:
            return np.ascontiguousarray(self._views["features"].reshape(len(self), -1))
        if "key" in self._views:
            keys = np.asarray(self._views["key"])
            indicators: Floats = np.eye(int(self._views.get("n_keys", keys.max() + 1)))[keys]
            return indicators
        return np.ones((len(self), 1))

    def _derive_features(self) -> Floats:
        T, K = self.rewards.shape
        shared = self.view("shared")
        features = np.zeros((T, K, K, shared.shape[1]))
        features[:, np.arange(K), np.arange(K)] = shared[:, None]
        return features.reshape(T, K, -1)

    def _derive_key(self) -> list[int]:
        signs = self.view("shared")[:, :4] > 0
        codes: list[int] = (signs @ (1 << np.arange(signs.shape[1]))).tolist()
        return codes

    def _derive_advice(self) -> Floats:
        T, K = self.rewards.shape
        return np.ascontiguousarray(np.broadcast_to(constant_experts(K), (T, K + 1, K)))


def constant_experts(n_arms: int) -> Floats:
    """One expert for each arm, and a uniform one, which the bound of Exp4 requires."""
    return np.vstack([np.eye(n_arms), np.full((1, n_arms), 1.0 / n_arms)])


class Environment(Saved, ABC):
    """A world. Its constructor fixes what agents may know; the seed draws what they have to learn.

    >>> import armwise as aw
    >>> world = aw.environments.Linear(n_arms=3, dim=4)
    >>> sum(len(block) for block in world.blocks(horizon=100, seed=1))
    100
    """

    _namespace = "environments."

    comparator: ClassVar[str] = BEST_ARM_EACH_ROUND
    same_as: ClassVar[tuple[str, ...]] = ()  # comparators with the same value in this world
    adaptive: ClassVar[bool] = False  # True: each block is one round, made after the arms before it are known
    n_arms: int
    n_slots: int | None = None  # how many arms a round shows, in a world of lists
    span: float = 1.0  # the largest regret of one round: T span is the trivial bound

    def blocks(self, horizon: int, seed: Seed = None) -> Blocks:
        """The rounds of one world, in blocks; the same seed gives the same rounds to every agent.

        >>> import armwise as aw
        >>> block = next(aw.environments.Tabular(n_contexts=5, n_arms=3).blocks(horizon=50, seed=2))
        >>> block.rewards.shape, block.expected.shape
        ((50, 3), (50, 3))
        """
        horizon = count("horizon", horizon)
        return self._whole(horizon, self._blocks(horizon, stream(seed, "world")))

    def _whole(self, horizon: int, made: Blocks) -> Blocks:
        """Check that blocks belong to this world and end at the horizon, and pass them on."""
        name = type(self).__name__
        if not hasattr(made, "send"):
            raise ValueError(f"{name}._blocks must yield blocks, got {short(made)}")
        left, arms = horizon, None
        try:
            while left:
                try:
                    block = made.send(arms if self.adaptive else None)
                except StopIteration:
                    raise ValueError(f"{name}._blocks ended {left} rounds before the horizon, {horizon}") from None
                if not isinstance(block, Block):
                    raise ValueError(f"{name}._blocks must yield blocks, got {short(block)}")
                if block.rewards.shape[1] != self.n_arms:
                    raise ValueError(f"{name}.n_arms is {self.n_arms}, and its rewards have {block.rewards.shape[1]}")
                if len(block) > left:
                    raise ValueError(f"{name}._blocks must yield {horizon} rounds in all, got {len(block) - left} more")
                left -= len(block)
                arms = yield block
        finally:
            made.close()

    @abstractmethod
    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        """Yield blocks until ``horizon`` rounds are out; an adaptive world is sent the arms of each block."""

    def width(self, sees: Sees) -> int:
        """The width of a context in this view: the ``dim`` (or ``n_experts``) of an agent that reads it.

        >>> import armwise as aw
        >>> world = aw.environments.Linear(n_arms=3, dim=4)
        >>> world.width("features"), world.width("shared"), world.width("advice")
        (4, 12, 4)
        """
        view = next(self.blocks(1, seed=0)).view(sees)
        return int(view.shape[1 if sees == "advice" else -1])

    def constants(self) -> dict[str, Any]:
        """The constants that theorems need, by the survey's letters; a letter that is missing is unknown.

        Besides the letters: ``linear`` is the view in which rewards are linear ("features" or "shared", with S and L
        in that view), ``policies`` the class that regret is measured against (see ``armwise.theory.hypotheses``).

        >>> import armwise as aw
        >>> aw.environments.Linear(n_arms=3, dim=4, noise=0.1).constants()["R"]
        0.1
        """
        return {"K": self.n_arms}

    def reward_class(self) -> dict[str, Any] | None:
        """The reward model that ``aw.certificate`` may assume, and the ``view`` in which it holds; or None.

        >>> import armwise as aw
        >>> aw.environments.Linear(n_arms=3, dim=4, noise=0.1).reward_class()["view"]
        'features'
        """
        return None

    @cached_property
    def native(self) -> str:
        """The view that the world generates, "features" or "shared" if it has one: the others are derived.

        >>> import armwise as aw
        >>> aw.environments.Linear(n_arms=3, dim=4).native
        'features'
        """
        views = next(self.blocks(1, seed=0))._views
        return next((name for name in ("features", "shared", "advice", "key") if name in views), "nothing")

    @property
    def comparators(self) -> tuple[str, ...]:
        """The comparator and those with the same value in this world.

        >>> import armwise as aw
        >>> aw.environments.Linear(n_arms=3, dim=4).comparators
        ('the best arm of each round',)
        """
        return (self.comparator, *self.same_as)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_short(value)}" for name, value in self.params().items() if value is not None)
        return f"{type(self).__name__}({shown})"


def block_sizes(horizon: int, numbers_a_round: int) -> list[int]:
    """The number of rounds of each block, if the context of a round holds this many numbers."""
    size = max(1, min(8192, _BLOCK_NUMBERS // max(1, numbers_a_round)))
    return [min(size, horizon - start) for start in range(0, horizon, size)]


def bounded_noise(rng: np.random.Generator, shape: tuple[int, ...], deviation: float) -> Floats:
    """Uniform noise of this standard deviation: bounded, and sub-Gaussian with exactly that constant R."""
    noise: Floats = deviation * 3.0**0.5 * (2.0 * rng.random(shape) - 1.0)
    return noise


def unit_rows(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Directions: the last axis is uniform on the unit sphere."""
    rows = rng.standard_normal(shape)
    rows /= np.sqrt(np.einsum("...d,...d->...", rows, rows))[..., None]
    return rows


def reach(noise: float) -> float:
    """The largest distance of expected rewards from 1/2 at which rewards stay in [0, 1], rounding included."""
    return float((0.5 - 3.0**0.5 * noise) * (1.0 - 1e-12))


def noise_level(noise: Any) -> float:
    """Check a standard deviation: rewards must fit in [0, 1]."""
    if isinstance(noise, bool) or not isinstance(noise, (int, float)) or not 0.0 <= noise <= 0.28:
        raise ValueError(f"noise must be a number in [0, 0.28]: rewards stay in [0, 1], got {noise!r}")
    return float(noise)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
