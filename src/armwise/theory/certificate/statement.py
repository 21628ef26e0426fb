"""The statement of a certificate: a bound, its probability, its assumption, and a test of that assumption."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armwise.core.agent import Floats

MAX_P_REJECTED = 0.01  # a p-value below which the assumption is rejected


class RejectedCertificateWarning(UserWarning):
    """The rounds contradict what a certificate assumes, so that it proves nothing."""


@dataclass(frozen=True)
class Fit:
    """A lack-of-fit test: a small ``p_value`` means that the assumption of the certificate does not fit the rounds."""

    p_value: float
    finding: str

    @property
    def rejected(self) -> bool:
        """Whether the assumption of the certificate is rejected."""
        return self.p_value < MAX_P_REJECTED

    def __str__(self) -> str:
        if self.rejected:
            return f"{self.finding} (p <= {self.p_value:.1g}): the certificate does not apply"
        return f"no lack of fit was found (p = {self.p_value:.2g}), which does not prove it"


@dataclass(frozen=True)
class Certificate:
    """Regret so far is at most ``regret``, with probability 1 - ``delta``, if ``assumes`` holds; ``fit`` tests that.

    ``curve`` is the bound after each of ``rounds``; all of these bounds hold at once. Where ``fit`` rejects the
    assumption nothing is proved: ``regret`` and ``curve`` are infinite, and ``claimed`` is the bound it would imply.
    """

    regret: float
    delta: float
    assumes: str
    fit: Fit | None
    rounds: NDArray[np.int64]
    curve: Floats
    horizon: int
    claimed: float = math.inf  # what regret would be at most if the assumption held

    @property
    def applies(self) -> bool:
        """Whether the rounds do not contradict the assumption."""
        return self.fit is None or not self.fit.rejected

    def data(self) -> dict[str, Any]:
        """Plain numbers and words, for JSON."""
        return {
            "regret": self.regret if self.applies else None,
            "rounds": self.horizon,
            "delta": self.delta,
            "assumes": self.assumes,
            "applies": None if self.fit is None else not self.fit.rejected,
            "fit": None if self.fit is None else str(self.fit),
            "fit_p_value": None if self.fit is None else self.fit.p_value,
            "claimed": self.claimed,
            "curve": {"round": self.rounds.tolist(), "regret": self.curve.tolist() if self.applies else None},
        }

    def __str__(self) -> str:
        if not self.applies:
            held = f"at most {self.claimed:,.4g} if {self.assumes}"
            return f"The regret of these {self.horizon:,} rounds is not certified: {self.fit}. (It would be {held}.)"
        text = (
            f"Regret after {self.horizon:,} rounds is at most {self.regret:,.4g}, with probability "
            f"{1 - self.delta:g}, if {self.assumes}."
        )
        return text if self.fit is None else f"{text} Test of this assumption: {self.fit}."
