"""Sub-Gaussian weights: w becomes w / (1 - lam + lam w), a harmonic mean with 1 (Metelli, Russo & Restelli 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armwise.core.agent import Floats, fraction
from armwise.offline.estimators.estimators import Estimator, Facts


def shrunk(weights: Floats, lam: float) -> Floats:
    """w / (1 - lam + lam w): never above 1 / lam, and w itself for lam = 0."""
    return np.asarray(weights / (1.0 - lam + lam * weights))


@dataclass(frozen=True)
class SGIPS(Estimator):
    """IPS with sub-Gaussian weights; its interval does not know the bias of shrinking.

    >>> facts = Facts(rewards=np.array([1.0, 1.0]), weights=np.array([1.0, 9.0]))
    >>> SGIPS(lam=0.5).scores(facts)
    array([1. , 1.8])
    """

    lam: float = 0.1
    name: ClassVar[str] = "sg-ips"
    reference: ClassVar[str] = "Metelli, Russo, Restelli 2021"

    def __post_init__(self) -> None:
        fraction("lam", self.lam, zero=True, one=True)

    def columns(self, facts: Facts) -> list[Floats]:
        return [shrunk(facts.weights, self.lam) * facts.rewards]


@dataclass(frozen=True)
class SGDR(Estimator):
    """DR with sub-Gaussian weights; its interval does not know the bias of shrinking.

    >>> facts = Facts(np.array([1.0]), np.array([9.0]), q_logged=np.array([0.5]), q_target=np.array([0.4]))
    >>> SGDR(lam=0.5).scores(facts)
    array([1.3])
    """

    lam: float = 0.1
    name: ClassVar[str] = "sg-dr"
    needs_model: ClassVar[bool] = True
    reference: ClassVar[str] = "Metelli, Russo, Restelli 2021"

    def __post_init__(self) -> None:
        fraction("lam", self.lam, zero=True, one=True)

    def columns(self, facts: Facts) -> list[Floats]:
        assert facts.q_logged is not None and facts.q_target is not None
        return [facts.q_target + shrunk(facts.weights, self.lam) * (facts.rewards - facts.q_logged)]
