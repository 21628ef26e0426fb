"""The traffic that an experiment needs: units and days until a verdict, before it begins."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.agent import Floats, fraction
from armwise.core.arguments import count, positive, short
from armwise.core.seeds import stream
from armwise.core.tools.extras import needs
from armwise.core.tools.text_tables import html_table, text_table
from armwise.offline.experiments.lifts import TYPICAL_VARIANCE
from armwise.offline.experiments.metric import read_split
from armwise.offline.experiments.mixtures import best_rho, gamma_bound, normal_bound

if TYPE_CHECKING:
    from armwise.core.tools.figure import Figure

RUNS, LOOKS = 4000, 300
FARTHEST = 6.0  # times the fixed size, up to which runs go


@dataclass(frozen=True)
class Traffic:
    """Units, over all arms, until a verdict; days where ``daily`` says how many come, the window after the last.

    ``fixed`` is a test of one look at the end; ``median`` and ``units`` are those of a sequential one, by which half of
    the runs, and a share ``power``, have stopped for the better arm. ``settled`` is by when half of them can say that
    there is no such difference, if there is none (None: not within six times ``fixed``). ``planned`` is what to give
    the experiment.

    >>> needed = traffic(rate=0.05, lift=0.2)
    >>> needed.fixed, needed.median
    (16310, 17190)
    """

    fixed: int
    median: int | None
    units: int | None
    settled: int | None
    power: float
    daily: float | None
    window: float
    planned: int
    what: str
    looks: tuple[int, ...] = field(repr=False)
    sequential: tuple[float, ...] = field(repr=False)  # power at each of the looks
    once: tuple[float, ...] = field(repr=False)  # of a test with one look, then

    def days(self, units: float | None) -> float | None:
        """Days until this many units have their outcomes; None where the units per day are unknown."""
        return None if self.daily is None or units is None else units / self.daily + self.window

    HEADINGS = ("design", "units", "days")

    def cells(self) -> list[list[str]]:
        """The table's rows."""
        rows = (
            (f"fixed size, one look, {100 * self.power:.3g} % power", self.fixed),
            ("sequential, half of the runs have stopped", self.median),
            (f"sequential, {100 * self.power:.3g} % have stopped", self.units),
            ("sequential, half can rule such a difference out, if there is none", self.settled),
        )
        shown = []
        for name, units in rows:
            days = self.days(units)
            shown.append(
                [name, "not within 6x" if units is None else f"{units:,}", "" if days is None else f"{days:,.1f}"]
            )
        return shown

    def __str__(self) -> str:
        return f"{self.what}\n\n{text_table(self.HEADINGS, self.cells())}\n\ngive the experiment planned={self.planned}"

    def _repr_html_(self) -> str:
        return html_table(self.HEADINGS, self.cells(), title=self.what, note=f"planned={self.planned}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        days = {name: self.days(getattr(self, name)) for name in ("fixed", "median", "units", "settled")}
        found = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}
        return found | {"days": days}

    def plot(self, path: Any = None) -> Figure:
        """Draw power over the units, of the sequential test at any time and of a fixed one that ends there.

        >>> type(traffic(rate=0.05, lift=0.2).plot()).__name__
        'Figure'
        """
        from armwise.core.tools.figure import Figure

        figure = Figure(figsize=(5.6, 3.4), layout="constrained")
        axes = figure.subplots()
        axes.plot(self.looks, self.sequential, color="#0072B2", label="sequential: stopped by then")
        axes.plot(self.looks, self.once, color="#767676", linestyle="--", label="fixed: one look, then")
        axes.axhline(self.power, color="#767676", linewidth=0.6)
        for units, colour in ((self.units or self.looks[-1], "#0072B2"), (self.fixed, "#767676")):
            axes.plot([units, units], [0.0, self.power], color=colour, linewidth=0.6)
        axes.set(xlabel="units", ylabel="power", ylim=(0.0, 1.02), xlim=(0, self.looks[-1]))
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axes.legend(frameon=False, loc="lower right")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if self.daily is not None:
            daily: Any = self.daily
            above = axes.secondary_xaxis(
                "top", functions=(lambda x: np.divide(x, daily), lambda x: np.multiply(x, daily))
            )
            above.set_xlabel("days until the last is assigned")
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def traffic(
    *, rate: float | None = None, mean: float | None = None, sd: float | None = None, cap: float | None = None,
    lift: float | None = None, effect: float | None = None, arms: int = 2, metrics: int = 1, split: Any = None,
    risk: float = 0.05, power: float = 0.8, daily: float | None = None, window: float = 0.0,
) -> Traffic:  # fmt: skip
    """Units and days until a verdict on a rate, or on an amount with this ``mean`` and ``sd``.

    The effect is a relative ``lift`` (0.1: one arm is 10 % better) or an absolute ``effect``. ``arms`` counts control,
    ``metrics`` the goals, which share the ``risk``; ``split`` are the arms' shares, control first. ``daily`` units come
    a day; outcomes take ``window`` days. An amount without a ``cap`` has asymptotic intervals.

    >>> print(traffic(rate=0.05, lift=0.2, daily=2000, window=1.0).cells()[0])
    ['fixed size, one look, 80 % power', '16,310', '9.2']
    """
    K, risk, power = count("arms", arms, least=2), fraction("risk", risk), fraction("power", power)
    base, first, limit = _base(rate, mean, sd, cap)
    if (lift is None) == (effect is None):
        raise ValueError(f"give either lift or effect, got lift={short(lift)} and effect={short(effect)}")
    for name, size in (("lift", lift), ("effect", effect)):
        if size is not None and not (isinstance(size, (int, float, np.number)) and math.isfinite(size)):
            raise ValueError(f"{name} must be a finite number, got {short(size)}")
    step = float(lift) * base if lift is not None else float(effect or 0.0)
    if step == 0.0:
        raise ValueError(f"the effect must be a finite number that is not 0, got {step}")
    if cap is not None and not max(base, base + step) < float(limit or 0.0):
        raise ValueError(f"cap must be above the means of both arms, {base:g} and {base + step:g}, got {short(cap)}")
    other = first
    if rate is not None:
        if not 0.0 < base + step < 1.0:
            raise ValueError(f"the effect makes the rate {base + step:g}, which must lie between 0 and 1")
        other = (base + step) * (1.0 - base - step)
    with needs():
        from scipy.special import ndtr, ndtri

    window = positive("window", window, zero=True)
    if daily is not None:
        daily = positive("daily", daily)
    shares = read_split(split, tuple(str(a) for a in range(K)))
    pair = float(shares[0] + shares[1])
    pi = float(shares[1]) / pair
    g, most = min(pi, 1.0 - pi), max(pi, 1.0 - pi)
    v = pi * ((1.0 - pi) / most) ** 2 * other + (1.0 - pi) * (pi / most) ** 2 * first  # per unit of the pair
    alpha = risk / (2.0 * (K - 1) * count("metrics", metrics))
    z = float(-ndtri(alpha)), float(ndtri(power))
    fixed = (z[0] + z[1]) ** 2 * v / (g * step) ** 2 / pair
    # as the experiment does with ``planned`` units: values in units of the cap
    unit = limit or 1.0
    n = np.linspace(0.0, FARTHEST, LOOKS + 1)[1:] * fixed
    squares = pair * n * v / unit**2
    expected = TYPICAL_VARIANCE if limit is not None else v
    planned = max(100, round(fixed * v / unit**2 / expected)) if limit is not None else max(100, round(fixed))
    rho = best_rho(2.0 * planned / K * expected, alpha)
    bound = gamma_bound(squares, alpha, rho) if limit is not None else normal_bound(squares, alpha, rho)
    drawn = stream(0, "traffic").standard_normal((RUNS, LOOKS)) * np.sqrt(np.diff(squares, prepend=0.0))
    sums = np.cumsum(drawn, axis=1) + pair * n * g * abs(step) / unit
    reached = np.maximum.accumulate(sums >= bound, axis=1).mean(axis=0)
    once = ndtr(np.sqrt(pair * n / v) * g * abs(step) - z[0])
    noise = np.cumsum(drawn, axis=1)
    settled = np.maximum.accumulate(np.abs(noise) + bound <= pair * n * g * abs(step) / unit, axis=1).mean(axis=0)
    what = (f"rate {base:g} against {base + step:g}" if rate is not None else
            f"mean {base:g} against {base + step:g}, standard deviation {math.sqrt(first):g}"
            + (f", cap {cap:g}" if cap is not None else ", no cap: asymptotic"))  # fmt: skip
    what += f"; {K} arms, {metrics} goal{'s' if metrics > 1 else ''}, risk {100 * risk:g} %"
    return Traffic(
        math.ceil(fixed), _when(n, reached, 0.5), _when(n, reached, power), _when(n, settled, 0.5), power, daily,
        window, planned, what, tuple(np.round(n).astype(int).tolist()), tuple(reached.tolist()),
        tuple(once.tolist()),
    )  # fmt: skip


def _base(rate: Any, mean: Any, sd: Any, cap: Any) -> tuple[float, float, float | None]:
    """Control's mean, the variance of a value, and its limit."""
    if (rate is None) == (mean is None):
        raise ValueError(f"give either rate, or mean and sd, got rate={short(rate)} and mean={short(mean)}")
    if rate is not None:
        p = fraction("rate", rate)
        if sd is not None or cap is not None:
            raise ValueError("sd and cap are those of an amount: give mean, not rate")
        return p, p * (1.0 - p), 1.0
    if sd is None:
        raise ValueError("an amount needs sd, its standard deviation over units, too")
    if not isinstance(mean, (int, float)) or not math.isfinite(mean):
        raise ValueError(f"mean must be a finite number, got {short(mean)}")
    return float(mean), positive("sd", sd) ** 2, None if cap is None else positive("cap", cap)


def _when(looks: Floats, reached: Floats, share: float) -> int | None:
    """The units by which this share of the runs is there; None if that is beyond the last look."""
    if reached[-1] < share:
        return None
    k = int(np.argmax(reached >= share))
    before = (0.0, 0.0) if k == 0 else (float(looks[k - 1]), float(reached[k - 1]))
    part = (share - before[1]) / max(float(reached[k]) - before[1], 1e-12)
    return math.ceil(before[0] + part * (float(looks[k]) - before[0]))
