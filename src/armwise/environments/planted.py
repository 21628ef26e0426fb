"""A planted policy class: one policy of a known class is right about which arm is good (survey 4.3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from armwise.core.agent import Floats, Seed, count, fraction
from armwise.core.seeds import stream
from armwise.environments.environment import (
    BEST_ARM_EACH_ROUND,
    BEST_EXPERT,
    BEST_OF_POLICIES,
    BEST_POLICY,
    Block,
    Blocks,
    Environment,
    block_sizes,
)
from armwise.policies import Linear, Policy, Stump, distributions


class Planted(Environment):
    """Contexts are uniform in [-1, 1]^d; the arm of the planted policy pays 1 with chance 1/2 + gap/2, others less.

    The class (``policies``: what agents know) is fixed by ``class_seed``: ``kind="linear"`` or ``"stumps"``, or give
    your own list; the seed of a run only draws which one is planted. Advice is the class and a uniform expert.

    >>> world = Planted(n_policies=8, n_arms=3, dim=2)
    >>> block = next(world.blocks(horizon=100, seed=1))
    >>> len(world.policies), block.view("shared").shape, block.view("advice").shape
    (8, (100, 2), (100, 9, 3))
    >>> Planted(n_policies=4, kind="stumps", n_arms=2).policies[0]
    Stump(feature=..., threshold=..., low=..., high=...)
    """

    comparator = BEST_POLICY
    same_as = (BEST_OF_POLICIES, BEST_ARM_EACH_ROUND, BEST_EXPERT)

    def __init__(
        self,
        n_policies: int = 20,
        n_arms: int = 3,
        dim: int = 4,
        *,
        gap: float = 0.4,
        kind: Literal["linear", "stumps"] = "linear",
        class_seed: int = 0,
        policies: list[Any] | None = None,
    ) -> None:
        self.n_arms = count("n_arms", n_arms, least=2)
        self.dim = count("dim", dim)
        self.gap = fraction("gap", gap, one=True)
        if kind not in ("linear", "stumps"):
            raise ValueError(f'kind must be "linear" or "stumps", got {kind!r}')
        self.kind, self.class_seed = kind, count("class_seed", class_seed, least=0)
        self._own_policies = policies
        if policies is None:
            policies = [self._policy(i) for i in range(count("n_policies", n_policies, least=2))]
        self.policies = list(policies)
        self.n_policies = len(self.policies)

    def params(self) -> dict[str, Any]:
        return super().params() | {"policies": self._own_policies}  # a class that was drawn is drawn again

    def _policy(self, index: int) -> Policy:
        rng = stream(self.class_seed, f"policy {index}")
        if self.kind == "linear":
            return Linear(rng.standard_normal((self.n_arms, self.dim)), rng.standard_normal(self.n_arms) / 4)
        low, high = rng.permutation(self.n_arms)[:2].tolist()
        return Stump(int(rng.integers(self.dim)), float(rng.uniform(-0.8, 0.8)), low, high)

    def contexts(self, n: int, seed: Seed = None) -> Floats:
        """A sample of contexts, for agents that must know their distribution.

        >>> Planted(dim=4).contexts(10, seed=1).shape
        (10, 4)
        """
        return stream(seed, "contexts").uniform(-1.0, 1.0, (count("n", n), self.dim))

    def _blocks(self, horizon: int, rng: np.random.Generator) -> Blocks:
        policies, K = self.policies, self.n_arms
        planted = policies[int(rng.integers(len(policies)))]
        for T in block_sizes(horizon, (len(policies) + 1) * K):
            contexts = rng.uniform(-1.0, 1.0, (T, self.dim))
            good = distributions(planted, contexts, K)
            expected = 0.5 - self.gap / 2 + self.gap * good
            rewards = (rng.random((T, K)) < expected).astype(np.float64)
            value = np.einsum("tk,tk->t", good, expected)[:, None]
            yield _PlantedBlock(policies, {"shared": contexts}, rewards, expected, value)

    def constants(self) -> dict[str, Any]:
        return {"K": self.n_arms, "N": self.n_policies, "policies": self.policies}


class _PlantedBlock(Block):
    """Advice is asked of the policies only if an agent wants it: most do not."""

    def __init__(self, policies: list[Any], *args: Any) -> None:
        super().__init__(*args)
        self._policies = policies

    def _derive_advice(self) -> Floats:
        T, K = self.rewards.shape
        contexts = self.view("shared")
        advice = np.full((T, len(self._policies) + 1, K), 1.0 / K)
        for i, policy in enumerate(self._policies):
            advice[:, i] = distributions(policy, contexts, K)
        return advice
