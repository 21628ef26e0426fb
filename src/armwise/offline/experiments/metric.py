"""The metrics of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np

from armwise.core.agent import Floats
from armwise.core.arguments import fraction, positive, short

DAY = 86400.0
Kind = Literal["rate", "amount"]
Direction = Literal["up", "down"]


@dataclass(frozen=True)
class Metric:
    """One value per unit: whether something happened (``rate``), or a sum of values (``amount``).

    Values count that come within ``window`` seconds of the unit's exposure; a unit counts once its window is over, and
    silence is a zero. ``window=None`` is the promise that every unit's outcome is reported, zeros too: then a unit
    counts with its first outcome. ``direction`` says which values are better. An amount with a ``cap`` (a unit's sum
    counts as at most so much, and below 0 as 0) has proved intervals; without one they are asymptotic. A ``guardrail``
    stops an arm that moves it in the wrong direction by more than ``tolerance``. ``smallest`` is the
    largest difference of no interest: an experiment may stop because none is larger. ``expected`` is control's
    mean as far as is known before (of an amount, its standard deviation): a good guess makes intervals narrower, a
    bad one never invalid.

    >>> Metric("purchase", smallest=0.01).kind
    'rate'
    >>> Metric("revenue", kind="amount", cap=-1)
    Traceback (most recent call last):
    ...
    ValueError: cap of metric 'revenue' must be a finite number > 0, got int -1
    """

    name: str = "outcome"
    kind: Kind = "rate"
    direction: Direction = "up"
    window: float | None = DAY
    cap: float | None = None
    guardrail: bool = False
    tolerance: float = 0.0
    smallest: float | None = None
    expected: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "/" in self.name:
            raise ValueError(f"name of a metric must be a text without '/', got {short(self.name)}")
        of = f"of metric {self.name!r}"
        for what, value, known in (
            ("kind", self.kind, get_args(Kind)),
            ("direction", self.direction, get_args(Direction)),
        ):
            if value not in known:
                raise ValueError(f"{what} {of} must be {' or '.join(map(repr, known))}, got {short(value)}")
        for what, number in (("window", self.window), ("cap", self.cap), ("smallest", self.smallest)):
            if number is not None:
                positive(f"{what} {of}", number)
        positive(f"tolerance {of}", self.tolerance, zero=True)
        if not isinstance(self.guardrail, bool):
            raise ValueError(f"guardrail {of} must be True or False, got {short(self.guardrail)}")
        if self.kind == "rate" and self.cap is not None:
            raise ValueError(f"cap {of} is for amounts: a rate's values are 0 or 1")
        if self.expected is not None:
            (fraction if self.kind == "rate" else positive)(f"expected {of}", self.expected)
        if self.tolerance and not self.guardrail:
            raise ValueError(f"tolerance {of} is for guardrails: add guardrail=True, or give smallest=")

    @property
    def limit(self) -> float | None:
        """The largest value of a unit, if there is one."""
        return 1.0 if self.kind == "rate" else self.cap

    @property
    def variance(self) -> float | None:
        """The expected variance of a value, in units of the squared limit."""
        if self.expected is None or self.limit is None:
            return None
        return self.expected * (1.0 - self.expected) if self.kind == "rate" else (self.expected / self.limit) ** 2

    def to_dict(self) -> dict[str, Any]:
        """The settings that differ from the defaults, for JSON.

        >>> Metric("revenue", kind="amount").to_dict()
        {'name': 'revenue', 'kind': 'amount'}
        """
        default = {f.name: f.default for f in fields(self)}
        return {name: value for name, value in asdict(self).items() if name == "name" or value != default[name]}


def read_metrics(metrics: Any) -> tuple[Metric, ...]:
    """Metrics from themselves, names or dictionaries; at least one goal, and no name twice."""
    given = [metrics] if isinstance(metrics, (str, Mapping, Metric)) else metrics
    if not isinstance(given, Iterable):
        raise ValueError(f"metrics must be a list of metrics, got {short(metrics)}")
    found = []
    for each in given:
        if isinstance(each, Mapping):
            strange = set(each) - {f.name for f in fields(Metric)}
            if strange:
                known = ", ".join(f.name for f in fields(Metric))
                raise ValueError(f"metrics: a metric has no {sorted(strange, key=str)[0]!r}; it has {known}")
            each = Metric(**each)
        elif isinstance(each, str):
            each = Metric(each)
        if not isinstance(each, Metric):
            raise ValueError(f"metrics must be Metric, names or dictionaries, got {short(each)}")
        found.append(each)
    names = [metric.name for metric in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"metrics: {twice!r} is there twice")
    if all(metric.guardrail for metric in found):
        raise ValueError("metrics must have at least one that is no guardrail: the goal")
    return tuple(found)


def read_arm_names(arms: Any) -> tuple[str, ...]:
    """Two or more different names, control first."""
    names = tuple(arms) if isinstance(arms, Iterable) and not isinstance(arms, (str, bytes, Mapping)) else ()
    if len(names) < 2 or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"arms must be two or more names, control first, got {short(arms)}")
    if len(set(names)) < len(names):
        raise ValueError(f"arms must have different names, got {short(list(names))}")
    return tuple(map(str, names))


def read_split(split: Any, arms: tuple[str, ...]) -> Floats:
    """Each arm's share: equal ones unless said, as a dictionary or in the order of the arms."""
    if split is None:
        return np.full(len(arms), 1.0 / len(arms))
    if isinstance(split, Mapping):
        if set(split) != set(arms):
            raise ValueError(f"split must have a share of each of {list(arms)}, got {short(dict(split))}")
        split = [split[arm] for arm in arms]
    try:
        shares = np.asarray(split, float)
    except (TypeError, ValueError):
        shares = np.zeros(0)
    if shares.shape != (len(arms),) or not np.all(shares > 0) or not abs(shares.sum() - 1.0) < 1e-9:
        raise ValueError(f"split must be {len(arms)} shares above 0 that sum to 1, got {short(split)}")
    return shares
