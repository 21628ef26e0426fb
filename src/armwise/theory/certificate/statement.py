"""What a certificate says: a number, with what probability, if what holds; and a test of that if."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats

_DOUBT = 0.01  # a p-value below which the class is called wrong


@dataclass(frozen=True)
class Fit:
    """Lack of fit: a small ``p_value`` means that the class of the certificate does not explain the rounds.

    >>> Fit(1e-6, "rewards are not linear in these features").rejected
    True
    """

    p_value: float
    finding: str

    @property
    def rejected(self) -> bool:
        """True where the certificate should not be believed."""
        return self.p_value < _DOUBT

    def __str__(self) -> str:
        if self.rejected:
            return f"{self.finding} (p <= {self.p_value:.1g}): the certificate does not apply"
        return f"no lack of fit was found (p = {self.p_value:.2g}), which proves nothing"


@dataclass(frozen=True)
class Certificate:
    """Regret so far is at most ``regret``, with probability 1 - ``delta``, if ``assumes`` holds; ``fit`` tests that.

    ``rounds`` and ``curve`` are the same after fewer rounds: all of them hold at once.

    >>> import armwise as aw
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 3, 2)) / 3
    >>> arms, theta = rng.integers(3, size=500), np.array([0.5, -0.5])
    >>> rewards = X[np.arange(500), arms] @ theta + 0.1 * rng.normal(size=500)
    >>> print(aw.certificate(X, arms, rewards, noise=0.1, norm=1.0))
    Regret after 500 rounds is at most 112.9, with probability 0.95, if rewards are linear in these features, ...
    """

    regret: float
    delta: float
    assumes: str
    fit: Fit | None
    rounds: NDArray[np.int64]
    curve: Floats
    horizon: int

    def data(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON.

        >>> import armwise as aw
        >>> aw.certificate(np.ones((3, 2, 1)), [0, 0, 1], [0.0, 1.0, 1.0], norm=1.0).data()["delta"]
        0.05
        """
        return {
            "regret": self.regret,
            "rounds": self.horizon,
            "delta": self.delta,
            "assumes": self.assumes,
            "applies": None if self.fit is None else not self.fit.rejected,
            "fit": None if self.fit is None else str(self.fit),
            "fit_p_value": None if self.fit is None else self.fit.p_value,
            "curve": {"round": self.rounds.tolist(), "regret": self.curve.tolist()},
        }

    def __str__(self) -> str:
        text = (
            f"Regret after {self.horizon:,} rounds is at most {self.regret:,.4g}, with probability "
            f"{1 - self.delta:g}, if {self.assumes}."
        )
        return text if self.fit is None else f"{text} Of this if: {self.fit}."
