"""The numbers of an experiment, unit by unit, and its verdict at any time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.core.agent import Floats, fraction
from armwise.core.arguments import positive, short
from armwise.core.seeds import stream
from armwise.offline.experiments.early import EarlyLooks
from armwise.offline.experiments.lifts import LiftSequence
from armwise.offline.experiments.metric import Metric, read_arm_names, read_metrics, read_split
from armwise.offline.experiments.mismatch import CAUSES, CAUSES_OF_MISSING, MISMATCH_RISK, MismatchTest
from armwise.offline.experiments.verdict import (
    Action,
    ArmResult,
    EarlyLook,
    ExperimentVerdict,
    show_ends,
    show_signed,
)
from armwise.offline.logs.cohorts import duration

PROVED = ("Howard, Ramdas, McAuliffe, Sekhon 2021, theorem 4 (empirical Bernstein, gamma-exponential mixture), on "
          "differences weighted by the chances that arms had when they were assigned")  # fmt: skip
ASYMPTOTIC = "Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas 2024 (asymptotic confidence sequence, normal mixture)"
MISMATCH = "Lindon, Malek 2022 (sequential multinomial test of the shares)"
MIN_EVENTS = 25  # events of each arm (and units without one) for a chance to be best: with fewer, 0.97 was 0.53
DRAWS = 20_000
FARTHEST = 1e8  # units ahead, beyond which nothing is promised
SNAPSHOTS = 1.05  # growth of the units between two points of the history


class ExperimentAnalysis:
    """Arms (control first), metrics, and all sums that the verdict needs; outcomes come in order, ``risk`` is for all.

    The risk of any wrong "better" or "worse", ever, is at most ``risk`` over all arms and goals together, that of any
    false harm at most ``risk`` over all arms and guardrails (Bonferroni in both). ``planned`` is at about how many
    units the intervals shall be narrowest, ``start`` the units per arm before which an amount without a cap decides
    nothing.

    >>> rng = np.random.default_rng(2)
    >>> analysis = ExperimentAnalysis(["control", "blue"])
    >>> arms = rng.integers(0, 2, 10_000)
    >>> analysis.add_units(arms, [0.5, 0.5])
    >>> analysis.add_outcomes("outcome", arms, [0.5, 0.5], rng.random(10_000) < np.where(arms == 1, 0.13, 0.1))
    >>> analysis.verdict().sentence
    'stop: blue is better than control (risk at most 5 %, however often you looked)'
    """

    def __init__(
        self, arms: Any, metrics: Any = "outcome", *, risk: float = 0.05, planned: float = 10_000, start: int = 500,
        shape: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        self.arms, self.metrics = read_arm_names(arms), read_metrics(metrics)
        self.risk, self.planned = fraction("risk", risk), positive("planned", planned)
        self.start = start
        self.mismatch = MismatchTest(len(self.arms), shape=shape)
        self.lifts: dict[str, LiftSequence] = {}
        self.early: dict[str, EarlyLooks] = {}  # of the metrics with a window
        self.reported: dict[str, MismatchTest] = {}  # units with outcomes, of the metrics without one
        self._least, self._most = np.full(len(self.arms), np.inf), np.zeros(len(self.arms))  # shares so far
        self.history: dict[str, list[tuple[int, list[tuple[float, float, float]]]]] = {}
        self._single = shape == ()
        others = len(self.arms) - 1
        for metric in self.metrics:
            alike = sum(each.guardrail == metric.guardrail for each in self.metrics)
            slack = (metric.tolerance, 0.0) if metric.direction == "up" else (0.0, metric.tolerance)
            self.lifts[metric.name] = LiftSequence(
                len(self.arms), alpha=self.risk / (2 * others * alike), cap=metric.limit, planned=self.planned,
                variance=metric.variance, start=start, tolerance=slack, shape=shape,
            )  # fmt: skip
            self.history[metric.name] = []
            if metric.window is None:
                self.reported[metric.name] = MismatchTest(len(self.arms), shape=shape)
            else:
                self.early[metric.name] = EarlyLooks(
                    metric, len(self.arms), alpha=self.risk / (2 * others * alike), planned=self.planned, start=start,
                    shape=shape,
                )  # fmt: skip

    # ------------------------------------------------------------------ data

    def add_units(self, arms: Any, shares: Any) -> None:
        """Take in units that were exposed, in order, for the test of the shares."""
        arms, shares = self._read(arms, shares)
        self.mismatch.update(arms, shares)
        if arms.shape[-1]:
            table = np.broadcast_to(shares, (*arms.shape, len(self.arms))).reshape(-1, len(self.arms))
            self._least, self._most = (
                np.minimum(self._least, table.min(axis=0)),
                np.maximum(self._most, table.max(axis=0)),
            )

    def add_outcomes(self, metric: str, arms: Any, shares: Any, values: Any) -> None:
        """Take in a metric's value of units whose window is over, in order of exposure."""
        if metric not in self.lifts:
            raise ValueError(f"metric must be one of {list(self.lifts)}, got {short(metric)}")
        arms, shares = self._read(arms, shares)
        values = np.asarray(values, float)
        if values.shape != arms.shape:
            raise ValueError(f"values must be one per unit, {arms.shape}, got shape {values.shape}")
        _refuse("values must be finite numbers", values, np.isfinite(values))
        if self._metric(metric).kind == "rate":
            _refuse(f"values of {metric!r}, a rate, must lie in [0, 1]", values, (values >= 0.0) & (values <= 1.0))
        lifts = self.lifts[metric]
        if metric in self.reported:
            self.reported[metric].update(arms, shares)
        if not self._single:
            lifts.update(arms, shares, values)
            return
        done, n = 0, len(values)
        while done < n:
            before = int(lifts.n)
            some = min(n - done, max(1, math.ceil(max(before, 20) * SNAPSHOTS) - before))
            part = slice(done, done + some)
            lifts.update(arms[part], shares if shares.ndim == 1 else shares[part], values[part])
            done += some
            self._remember(metric)

    def _remember(self, metric: str) -> None:
        lifts, kept = self.lifts[metric], self.history[metric]
        n = int(lifts.n)
        if kept and n < kept[-1][0] * SNAPSHOTS:
            kept.pop()  # the last point is always now
        points = []
        for a in range(1, len(self.arms)):
            low, high = lifts.interval(a)
            points.append((float(lifts.estimate(a)), float(low), float(high)))
        kept.append((n, points))

    def _read(self, arms: Any, shares: Any) -> tuple[Any, Floats]:
        arms, K = np.asarray(arms), len(self.arms)
        if arms.size == 0:
            return np.zeros(0, np.int64), np.full(K, 1.0 / K)
        if arms.dtype.kind not in "iu" or arms.min() < 0 or arms.max() >= K:
            raise ValueError(f"arms must be numbers of arms, 0 to {K - 1}, got {short(arms)}")
        shares = np.asarray(shares, float)
        if (
            shares.shape[-1:] != (K,)
            or shares.ndim not in (1, arms.ndim + 1)
            or not np.all((shares >= 0) & (shares <= 1))
        ):
            raise ValueError(
                f"shares must be a chance of each of the {K} arms, for all units or for each, got {short(shares)}"
            )
        if not np.all(np.abs(shares.sum(axis=-1) - 1.0) < 1e-6):
            raise ValueError(f"shares: the chances of all arms must sum to 1, got {short(shares)}")
        table = np.broadcast_to(shares, (*arms.shape, K))
        if not np.all(np.take_along_axis(table, arms[..., None], -1) > 0.0):
            raise ValueError("shares: a unit is in an arm that it had no chance of")
        return arms.astype(np.int64), shares

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)

    # ------------------------------------------------------------------ verdict

    def verdict(self, notes: Sequence[str] = (), closes: float | None = None) -> ExperimentVerdict:
        """The verdict on the numbers now; ``closes`` are the seconds until the first window of the goal is over."""
        results = tuple(self._result(metric, a) for metric in self.metrics for a in range(len(self.arms)))
        early = tuple(look for metric in self.metrics if (look := self._look(metric)) is not None)
        action, sentence, arm, more = self._say(results, early, closes)
        units = {name: int(n) for name, n in zip(self.arms, self.mismatch.counts, strict=True)}
        rests = []
        if any(metric.limit is not None for metric in self.metrics):
            rests.append(PROVED)
        if any(metric.limit is None for metric in self.metrics):
            rests.append(f"{ASYMPTOTIC}, from {self.start:,} units in an arm and in control")
        found = [*notes, *self._notes(), f"several arms and goals share the risk of {_percent(self.risk)} (Bonferroni)"]
        if any(metric.guardrail for metric in self.metrics):
            found[-1] += ", arms and guardrails another"
        missing = {name: float(test.p_now) for name, test in self.reported.items()}
        return ExperimentVerdict(action, sentence, arm, results, units, float(self.mismatch.p_value), tuple(found),
                                 (*rests, MISMATCH), more, early, missing)  # fmt: skip

    def _missing(self) -> str | None:
        """The first metric whose outcomes do not come from the arms as its units' shares say."""
        return next((n for n, test in self.reported.items() if test.p_now < MISMATCH_RISK / len(self.reported)), None)

    def _look(self, metric: Metric) -> EarlyLook | None:
        """The units' outcomes within an age, while the windows of more than half of them are open."""
        exposed = float(self.mismatch.counts.sum())
        if metric.name not in self.early or float(self.lifts[metric.name].n) >= 0.5 * exposed:
            return None
        looks = self.early[metric.name]
        k = looks.reached(exposed)
        if k is None:
            return None
        results = tuple(self._result(metric, a, looks.lifts[k]) for a in range(len(self.arms)))
        return EarlyLook(metric.name, looks.ages[k], metric.window or 0.0, results)

    def _result(self, metric: Metric, a: int, early: LiftSequence | None = None) -> ArmResult:
        lifts = self.lifts[metric.name] if early is None else early
        low, high = lifts.arm_interval(a)
        n = int(lifts.units[a])
        own: dict[str, Any] = {"best": float(self._chances(metric)[a])} if early is None else {}
        if a:
            ends = lifts.interval(a)
            relative = lifts.relative(a)
            above, below = int(lifts.above[a]), int(lifts.below[a])
            up = metric.direction == "up"
            own |= {
                "lift": float(np.clip(lifts.estimate(a), *ends)),
                "lift_low": float(ends[0]), "lift_high": float(ends[1]),
                "relative": relative[0], "relative_low": relative[1], "relative_high": relative[2],
                "better_after": above if up else below, "worse_after": below if up else above,
            }  # fmt: skip
        return ArmResult(self.arms[a], metric.name, n, float(lifts.means[a]), low, high, **own)

    def _chances(self, metric: Metric) -> Floats:
        """Chances to be best, where they are calibrated: the shares never moved, and every arm has enough events."""
        lifts, K = self.lifts[metric.name], len(self.arms)
        events = lifts.events
        if metric.kind == "rate":
            events = np.minimum(events, lifts.units * (1.0 - np.nan_to_num(lifts.means)))
        if np.any(self._most - self._least > 1e-9) or np.any(events < MIN_EVENTS):
            return np.full(K, np.nan)
        n = lifts.units[:, None]
        z = stream(0, "chance to be best")
        if metric.kind == "rate":
            yes = lifts.means[:, None] * n
            drawn = z.beta(1.0 + yes, 1.0 + n - yes, (K, DRAWS))
        else:
            error = lifts.standard_errors[:, None]
            drawn = lifts.means[:, None] + error * z.standard_normal((K, DRAWS))
        best = drawn.argmax(axis=0) if metric.direction == "up" else drawn.argmin(axis=0)
        return np.bincount(best, minlength=K) / DRAWS

    def _say(
        self, results: Sequence[ArmResult], early: Sequence[EarlyLook], closes: float | None
    ) -> tuple[Action, str, str | None, int | None]:
        risk = f"risk at most {_percent(self.risk)}, however often you looked"
        loose = {metric.name for metric in self.metrics if metric.limit is None}
        about = f"risk about {_percent(self.risk)}, asymptotic from {self.start:,} units in each arm"

        def said(metric: str) -> str:
            return about if metric in loose else risk

        if float(self.mismatch.alarm) > 0:
            found = f"{self._counts(self.mismatch)}; p = {float(self.mismatch.p_value):.1g}"
            strange = f"check: units do not arrive in the arms as the shares say ({found}): no lift can be trusted"
            return "check", strange, None, None
        if (metric := self._missing()) is not None:
            test = self.reported[metric]
            found = f"{self._counts(test)}; p = {float(test.p_now):.1g}"
            strange = f"check: outcomes of {metric} do not come from the arms as the shares say ({found}): those of one"
            return "check", f"{strange} arm are lost, or come later, and no lift can be trusted", None, None
        guards = {metric.name for metric in self.metrics if metric.guardrail}
        harmful = [r for r in results if r.metric in guards and r.worse_after]
        harmed = {r.arm for r in harmful}
        goals = [r for r in results if r.metric not in guards and r.arm != self.arms[0]]
        better = [r for r in goals if r.better_after and r.arm not in harmed]
        control, several = self.arms[0], len(self.metrics) > 1
        if better:
            top = max(better, key=lambda r: abs(r.relative) if math.isfinite(r.relative) else abs(r.lift))
            for_metric = f" for {top.metric}" if several else ""
            rest = sorted({r.arm for r in better} - {top.arm})
            also = f"; so is {' and '.join(rest)}, and which of them is best is not settled" if rest else ""
            lost = [r.metric for r in goals if r.arm == top.arm and r.worse_after]
            also += f"; but it is worse for {' and '.join(lost)}" if lost else ""
            return (
                "stop",
                f"stop: {top.arm} is better than {control}{for_metric} ({said(top.metric)}){also}",
                top.arm,
                None,
            )
        if harmful:
            worst = harmful[0]
            return "stop", f"stop: {worst.arm} harms {worst.metric} ({said(worst.metric)})", worst.arm, None
        if goals and all(any(r.worse_after for r in goals if r.arm == arm) for arm in self.arms[1:]):
            names = " and ".join(self.arms[1:])
            return "stop", f"stop: {control} is better than {names} ({said(goals[0].metric)})", control, None
        sizes = {metric.name: metric.smallest for metric in self.metrics if not metric.guardrail}
        if all(max(-r.lift_low, r.lift_high) <= (sizes[r.metric] or 0.0) for r in goals):
            d = " and ".join(f"{size:g} in {name}" if several else f"{size:g}" for name, size in sizes.items())
            return "stop", f"stop: no difference larger than {d} ({said(goals[0].metric)})", None, None
        more = self._more(goals, sizes)
        if more is None:
            return "go on", f"go on: {self._waits(results, early, closes)}", None, None
        return "go on", f"go on: about {_rounded(more):,} more units at this rate", None, more

    def _counts(self, test: MismatchTest) -> str:
        pairs = zip(self.arms, test.counts, test.expected, strict=True)
        return ", ".join(f"{name} {int(n):,} of {e:,.0f} expected" for name, n, e in pairs)

    def _waits(self, results: Sequence[ArmResult], early: Sequence[EarlyLook], closes: float | None) -> str:
        """The reason why the number of missing units is unknown."""
        goals = [metric for metric in self.metrics if not metric.guardrail]
        for metric in goals:
            units = {r.arm: r.units for r in results if r.metric == metric.name}
            of = f" for {metric.name}" if len(self.metrics) > 1 else ""
            if not any(units.values()):
                return "no unit's outcome is known yet" if closes is None else self._open(metric.name, early, closes)
            if without := [arm for arm, n in units.items() if not n]:
                return f"no unit's outcome is known yet{of} in {' and '.join(without)}"
            if metric.limit is None and min(units.values()) < self.start:
                return f"an amount without a cap says nothing{of} before {self.start:,} units in each arm"
        return "the difference so far is too small to say for how long"

    def _open(self, metric: str, early: Sequence[EarlyLook], closes: float) -> str:
        """The verdict while no window is over."""
        window = duration(self._metric(metric).window or 0.0)
        said = f"no unit's window of {window} is over yet, the first one's in {duration(closes)}"
        for look in early:
            if look.metric == metric:
                lifts = [
                    f"{r.arm} {show_signed(r.lift)} {show_ends(r.lift_low, r.lift_high, show_signed)}"
                    for r in look.results[1:]
                    if math.isfinite(r.lift)
                ]
                said += f"; lift within {look.within} of the exposure: {', '.join(lifts[:3])}" if lifts else ""
                said += f" and {len(lifts) - 3} more arms" if len(lifts) > 3 else ""
        return said

    def _more(self, goals: Sequence[ArmResult], sizes: dict[str, float | None]) -> int | None:
        """Units until the first verdict, if lifts and spreads stay as they are now."""
        decided, settled = [], []
        for r in goals:
            lifts, a = self.lifts[r.metric], self.arms.index(r.arm)
            if not math.isfinite(r.lift) or not lifts.ready(a):
                return None
            n = float(lifts.n)
            decided.append(n * (_times(lifts, a, abs(r.lift)) - 1.0))
            size = sizes[r.metric]
            settled.append(math.inf if size is None else n * (_times(lifts, a, size - abs(r.lift)) - 1.0))
        found = min([*decided, max(settled, default=math.inf)], default=math.inf)
        return None if not found < FARTHEST else max(1, round(found))

    def _notes(self) -> list[str]:
        found = []
        if float(self.mismatch.alarm) > 0:
            found += [f"what usually causes it: {cause}" for cause in CAUSES]
        elif self._missing() is not None:
            found += [f"what usually causes it: {cause}" for cause in CAUSES_OF_MISSING]
        if np.any(self._most - self._least > 1e-9):
            found.append("shares moved: a lift is a weighted mean over units, and arms' own means are not comparable")
        for metric in self.metrics:
            lifts = self.lifts[metric.name]
            if metric.kind == "amount" and metric.cap is None:
                found.append(f"{metric.name} has no cap: its intervals are asymptotic, and nothing is decided before "
                             f"{self.start:,} units in an arm and in control")  # fmt: skip
            elif int(lifts.clipped):
                n = int(lifts.clipped)
                values = "value" if n == 1 else "values"
                found.append(f"clipped to [0, {metric.limit:g}]: {n:,} {values} of {metric.name}")
        return found


def _times(lifts: LiftSequence, a: int, size: float) -> float:
    """The factor by which the units must grow for a half width of ``size``."""
    if not size > 0.0:
        return math.inf
    low, high = 1.0, 2.0
    while float(lifts.half_width(a, high)) > size:
        low, high = high, 2.0 * high
        if high > 1e9:
            return math.inf
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(lifts.half_width(a, middle)) > size else (low, middle)
    return high


def _refuse(wanted: str, values: Floats, good: Any) -> None:
    """Raise ValueError with the first value that is not good, and its place."""
    if not np.all(good):
        at = tuple(np.argwhere(~good)[0].tolist())
        raise ValueError(f"{wanted}, got {values[at]:g} in row {at[-1]}")


def _numbers(name: str, given: Any) -> Floats:
    try:
        found: Floats = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {short(given)}") from None
    return found


def _percent(risk: float) -> str:
    return f"{100.0 * risk:.3g} %"


def _rounded(n: int) -> int:
    """Two digits: more is not known."""
    digits = max(0, len(str(n)) - 2)
    return round(n, -digits)


def verdict(
    arm: Any, values: Any, *, unit: Any = None, names: Any = None, split: Any = None, shares: Any = None,
    metric: Any = "outcome", risk: float = 0.05, planned: float = 10_000,
) -> ExperimentVerdict:  # fmt: skip
    """The verdict on an A/B test from its rows, in order: the name of each one's ``arm`` and its value.

    The first of ``names`` is control. Rows of one ``unit`` count as one: their sum for an amount, the largest for a
    rate. ``split`` are the shares that units were
    assigned with (equal unless said), ``shares`` those of each row where they moved.

    >>> rng = np.random.default_rng(3)
    >>> arm = rng.choice(["old", "new"], 6000)
    >>> print(verdict(arm, rng.random(6000) < np.where(arm == "new", 0.3, 0.2), names=["old", "new"]).sentence)
    stop: new is better than old (risk at most 5 %, however often you looked)
    """
    given = np.asarray(arm)
    if given.ndim != 1:
        raise ValueError(f"arm must be a list of names, one for each value, got {short(arm)}")
    for row, each in enumerate(given.tolist()):
        if each is None or each != each:  # NaN
            raise ValueError(f"arm must be a name in each row, got {each} in row {row}")
    labels = [str(each) for each in given.tolist()]
    arms = read_arm_names(sorted(set(labels)) if names is None else [str(name) for name in names])
    strange = sorted(set(labels) - set(arms))
    if strange:
        raise ValueError(f"arm: {strange[0]!r} is not one of {list(arms)}")
    position = {name: i for i, name in enumerate(arms)}
    index = np.array([position[label] for label in labels], dtype=np.int64)
    y = _numbers("values", values)
    if y.shape != index.shape or not len(y):
        raise ValueError(f"values must be numbers, one for each arm, got {short(values)}")
    p = read_split(split, arms) if shares is None else _numbers("shares", shares)
    if p.shape not in ((len(arms),), (len(index), len(arms))):
        wanted = f"a chance of each of the {len(arms)} arms in each of the {len(index)} rows"
        raise ValueError(f"shares must be {wanted}, got shape {p.shape}")
    metrics = read_metrics(metric)
    if len(metrics) > 1:
        raise ValueError(
            f"metric must be one, got {len(metrics)}: call it for each, and divide the risk by their number"
        )
    read = metrics[0]
    if unit is not None:
        keys = np.asarray(unit)
        if keys.shape != index.shape:
            raise ValueError(f"unit must have one entry for each value, got {short(unit)}")
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        if np.any(index != index[first][inverse]):
            raise ValueError("unit: a unit is in two arms, so assignment was not by this unit")
        if read.kind == "rate":
            total = np.full(len(first), -np.inf)
            np.maximum.at(total, inverse, y)
        else:
            total = np.bincount(inverse, y, minlength=len(first))
        order = np.argsort(first)
        index, y = index[first][order], total[order]
        p = p if p.ndim == 1 else p[first][order]
    analysis = ExperimentAnalysis(arms, read, risk=risk, planned=planned)
    analysis.add_units(index, p)
    analysis.add_outcomes(read.name, index, p, y)
    return analysis.verdict()
