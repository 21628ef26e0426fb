"""An experiment's definition, as the settings of its application keep it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from armwise.core.arguments import count, fraction, positive, short
from armwise.features.encoding.arms import check_id
from armwise.offline.experiments.metric import Metric, read_arm_names, read_metrics, read_split
from armwise.service.engine.application import check_flag_variants
from armwise.service.experiments.arguments import read_unit

KEY = "experiment"  # in the settings' ``extra``
ASSIGNED = "assigned"  # of the application with assignments that are not exposed yet; no metric's name
YEAR = 365 * 86400.0
MODES = ("split", "adaptive", "bandit")
MAX_FORCED = 1000


class LogLine(msgspec.Struct, omit_defaults=True):
    """One line of the decision log: who did what, and why."""

    time: int  # milliseconds
    what: str
    by: str = ""
    why: str = ""


class Definition(msgspec.Struct, omit_defaults=True, frozen=True):
    """Settings of an experiment; the first arm is control, the first metric that is no guardrail the goal."""

    arms: tuple[str, ...]
    metrics: tuple[dict[str, Any], ...]
    split: tuple[float, ...]
    risk: float = 0.05
    planned: float = 10_000
    start: int = 500
    ramp: float = 1.0  # of the units that are eligible
    holdout: float = 0.0  # of all units, in no experiment of this journal that knows of it
    exposure: bool = False  # a unit counts when ``expose`` says so, not when it is assigned
    eligible: dict[str, list[Any]] = {}  # names of the context, and the values that are wanted
    forced: dict[str, str] = {}  # the arm of testers, by unit; in the journal by the hash of its name
    mode: str = "split"
    least: float = 0.1  # share of every arm in mode "adaptive"
    stopped: str = ""  # the arm that everybody gets
    log: tuple[LogLine, ...] = ()
    values: dict[str, Any] = {}  # as a feature flag: the value of each arm, where it is not its name

    @classmethod
    def read(
        cls, arms: Any, metrics: Any = "outcome", *, split: Any = None, risk: float = 0.05, planned: float = 10_000,
        start: int = 500, ramp: float = 1.0, holdout: float = 0.0, exposure: bool = False,
        eligible: Mapping[str, Any] | None = None, forced: Mapping[str, str] | None = None, mode: str = "split",
        least: float | None = None,
    ) -> Self:  # fmt: skip
        """From a user's arguments, checked; ValueError names the one that is wrong."""
        values = dict(arms) if isinstance(arms, Mapping) else {}
        check_flag_variants(values, "arms")
        arms = list(arms) if values else arms
        names, read = read_arm_names(arms), read_metrics(metrics)
        for name in names:
            check_id("arms: a name", name)
        if any(metric.name == ASSIGNED for metric in read):
            raise ValueError(f"metrics: {ASSIGNED!r} is no name for a metric here")
        if not isinstance(exposure, bool):
            raise ValueError(f"exposure must be True or False, got {short(exposure)}")
        floor = min(0.1, 0.5 / len(names)) if least is None else fraction("least", least)
        if floor * len(names) > 1.0:
            raise ValueError(f"least must be at most 1 / {len(names)}, the number of arms, got {floor}")
        made = cls(
            names, tuple(metric.to_dict() for metric in read), tuple(read_split(split, names).tolist()),
            fraction("risk", risk), positive("planned", planned), count("start", start), read_ramp(ramp),
            fraction("holdout", holdout, zero=True), exposure, read_eligible(eligible), read_forced(forced, names),
            read_mode(mode), floor, values=values,
        )  # fmt: skip
        for name, told in made.asked().items():
            try:
                msgspec.json.encode(told)
            except UnicodeEncodeError:
                raise ValueError(f"{name}: a text must be one that UTF-8 can hold, got {short(told)}") from None
        return made

    def asked(self) -> dict[str, Any]:
        """The arguments of ``read``, for JSON."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        arms = {"arms": self.values or self.arms}
        return {name: value for name, value in found.items() if name not in ("stopped", "log", "values")} | arms

    def plain(self) -> dict[str, Any]:
        """The definition in the settings: as it is read back from the journal, lists for tuples."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return found

    @property
    def state(self) -> str:
        """``running``, ``learning`` as a bandit, or ``stopped``."""
        return "stopped" if self.stopped else "learning" if self.mode == "bandit" else "running"

    @property
    def control(self) -> str:
        """The first arm."""
        return self.arms[0]

    @property
    def measured(self) -> tuple[Metric, ...]:
        """The metrics."""
        return tuple(Metric(**metric) for metric in self.metrics)

    @property
    def unnamed(self) -> bool:
        """Whether it was made without metrics: then the first name that an outcome has is the goal's."""
        return self.metrics == (Metric().to_dict(),)

    @property
    def metric_names(self) -> list[str]:
        """The metrics' names."""
        return [metric["name"] for metric in self.metrics]

    @property
    def goal(self) -> Metric:
        """The metric that the split, or the bandit, improves."""
        return next(metric for metric in self.measured if not metric.guardrail)

    def applications(self, name: str) -> dict[str, str]:
        """The application of each metric: the goal has that of the experiment."""
        goal = self.goal.name
        return {each.name: name if each.name == goal else f"{name}/{each.name}" for each in self.measured}

    def reward(self, metric: str, value: float) -> float:
        """Turn a value into the journal's reward, and back: its sign changes where less is better."""
        goal = self.goal
        return 0.0 - value if metric == goal.name and goal.direction == "down" else value

    def admits(self, context: Mapping[str, Any]) -> bool:
        """Return whether a unit with this context is eligible."""
        return all(context.get(name) in values for name, values in self.eligible.items())


def read_ramp(ramp: Any) -> float:
    """The share of the eligible units that take part."""
    return fraction("ramp", ramp, zero=True, one=True)


def read_mode(mode: Any) -> str:
    """One of ``MODES``."""
    if mode not in MODES:
        raise ValueError(f"mode must be {', '.join(map(repr, MODES[:-1]))} or {MODES[-1]!r}, got {short(mode)}")
    return str(mode)


def read_eligible(eligible: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    """Names with the values that are wanted, one or a list."""
    if eligible is None:
        return {}
    if not isinstance(eligible, Mapping) or not all(isinstance(name, str) for name in eligible):
        raise ValueError(f"eligible must be a dictionary of names and values of the context, got {short(eligible)}")
    found = {name: list(v) if isinstance(v, (list, tuple, set, frozenset)) else [v] for name, v in eligible.items()}
    for name, values in found.items():
        if not all(value is None or isinstance(value, (str, int)) or _is_finite(value) for value in values):
            wanted = f"the values of {name!r} must be texts, finite numbers or truths"
            raise ValueError(f"eligible: {wanted}, got {short(values)}")
    return found


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def read_forced(forced: Mapping[str, str] | None, arms: tuple[str, ...]) -> dict[str, str]:
    """The arms of testers."""
    if forced is None:
        return {}
    if not isinstance(forced, Mapping) or len(forced) > MAX_FORCED:
        raise ValueError(f"forced must be a dictionary of at most {MAX_FORCED} units and arms, got {short(forced)}")
    for unit, arm in forced.items():
        try:
            read_unit(unit)
        except ValueError as error:
            raise ValueError(f"forced: {error}") from None
        if arm not in arms:
            raise ValueError(f"forced: {unit!r} is to get {arm!r}, which is none of {list(arms)}")
    return dict(forced)
