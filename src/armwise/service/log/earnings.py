"""Rewards of the newest decisions, in cohorts by age, never by outcome: for the page, metrics and versions.

Every number rests on a cohort: all decisions at least as old as a horizon, clicked or not, with what came within it
(``offline.logs.cohorts``). Beside it stands the mean cumulative reward by age (Nelson 1995), estimated from decisions
of every age: at each age the rewards that came, divided by the number of decisions that have reached that age. It says
what open decisions will probably bring, and nothing about ages that no decision has reached.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from armwise.core.agent import Floats
from armwise.features.encoding.arms import read_arm
from armwise.offline.logs.cohorts import CLOSED, OPEN, Cohort, Record, cohort
from armwise.service.engine.requests.slots import slot_of
from armwise.service.journal.events import ARRIVAL, EARLIEST, Activation, Decision, Reward, Row, Share
from armwise.service.model.uplift import Weights, running_means, uplift_interval

MAX_DECISIONS = 50_000  # that are remembered, the newest; at times twice as many
MAX_ARMS = 50  # with a row of their own, those that were shown most
MAX_POINTS = 120  # of a curve
MIN_DECISIONS = 100  # decisions at least that a rate at the time is the mean of
MAX_RECENT = 2_000  # decisions of which an arm's share is told
OTHER = "other"  # the arms beyond
Z = 1.96
MIN_COVERED = 0.99  # of what comes, that a recommended window covers

_TABLE = np.dtype(
    [
        ("journal", "i8"), ("time", "i8"), ("seq", "i8"), ("window", "i8"), ("default", "f8"), ("arm", "i8"),
        ("p", "f8"), ("n_arms", "f8"),
        ("least", "f8"),  # the smallest of the arms' probabilities that is not 0
        ("drawable", "f8"),  # how many these are
        ("first", "f8"),  # 1 where the caller's first arm was drawn
        ("slot", "i4"),  # of a list, from 1; 0: a decision of its own
        ("p_first", "f8"), ("earliest", "?"), ("promised", "?"), ("active", "?"), ("final", "?"),
        ("in_time", "i4"),  # rewards before it was closed
    ]
)  # fmt: skip


class Interval(NamedTuple):
    """A number with the ends of its 95 % confidence sequence, and how many decisions it rests on."""

    value: float | None
    low: float
    high: float
    n: int


class Delays(NamedTuple):
    """The mean cumulative reward by age, at the ages at which something came."""

    ages: Floats
    means: Floats  # just after each
    errors: Floats  # standard errors of these
    begins: float  # before anything came: the default reward
    oldest: float  # the age up to which it is known

    def points(self) -> list[list[float]]:
        """At most ``MAX_POINTS`` of age, mean, low and high."""
        if not self.oldest:
            return []
        at = np.linspace(0.0, self.oldest, MAX_POINTS)
        place = np.searchsorted(self.ages, at, side="right")
        means = np.concatenate([[self.begins], self.means])[place]
        errors = np.concatenate([[0.0], self.errors])[place]
        table: list[list[float]] = np.stack([at, means, means - Z * errors, means + Z * errors], 1).tolist()
        return table

    @property
    def enough(self) -> float | None:
        """The age by which nearly all has come that did; None where nothing came."""
        if not len(self.means):
            return None
        steps = np.abs(np.diff(self.means, prepend=self.begins)).cumsum()
        return float(self.ages[int(np.searchsorted(steps, MIN_COVERED * steps[-1]))])

    @property
    def window(self) -> float | None:
        """The age by which nearly all has come; None where more may come than was seen."""
        enough = self.enough
        return None if enough is None or 2.0 * enough > self.oldest else enough


class Judgement:
    """The rewards of the remembered decisions, judged at one time."""

    def __init__(self, earnings: Earnings, now: int, ends: list[float], horizon: float | None) -> None:
        self.now, table = now, earnings.table()
        shown = np.flatnonzero(table["active"])
        self._arms, self._all = earnings.arms, table[shown]
        self._age, self._window = (now - self._all["time"]) / 1000.0, self._all["window"] / 1000.0
        self._closed = self._all["final"] | (self._age > self._window)
        self._rewarded = self._all["in_time"] > 0
        self._closed |= self._rewarded & self._all["promised"] & self._all["earliest"]
        self._horizon = horizon
        self._records = {
            int(k): earnings.record(int(at)) for k, at in enumerate(shown) if earnings.has_rewards(int(at))
        }
        self._among = {int(k): earnings.among[int(at)] for k, at in enumerate(shown) if int(at) in earnings.among}
        self.cohort, self._rows, self.values = self._judge(np.arange(len(self._all)))
        self._judged = self._all[self._rows]
        low, high = ends
        if len(self.values):
            low, high = min(low, float(self.values.min())), max(high, float(self.values.max()))
        self.ends = [low, high]

    def _judge(self, which: np.ndarray) -> tuple[Cohort, np.ndarray, Floats]:
        """Select the judged decisions, and what each earned."""
        some, age = self._all[which], self._age[which]
        known = self._closed[which] | (self._rewarded[which] & some["earliest"])
        kept = some["promised"] & (self.silent == 0)
        chosen = cohort(age, self._window[which], known, kept, self._horizon)
        rows = which[chosen.rows]
        values: Floats = self._all["default"][rows].copy()
        rewarded = np.flatnonzero(np.isin(rows, list(self._records)))
        for place, k in zip(rewarded.tolist(), rows[rewarded].tolist()):
            values[place] = self._records[k].worth(chosen.horizon)
        return chosen, rows, values

    @property
    def n(self) -> int:
        """The number of judged decisions."""
        return len(self.values)

    @property
    def silent(self) -> int:
        """The number of decisions whose promised outcome did not come within their window."""
        return int((self._all["promised"] & (self._age > self._window) & ~self._rewarded).sum())

    @property
    def late(self) -> tuple[int, float]:
        """The number of judged decisions rewarded after they were closed, and what that adds per decision."""
        horizon = self.cohort.horizon
        late = [each for k, each in self._records.items() if self.cohort.rows[k] and each.late(horizon)]
        added = sum(each.worth(horizon) - _in_time(each).worth(horizon) for each in late)
        return len(late), added / max(self.n, 1)

    def judged(self) -> list[tuple[int, int, float]]:
        """The judged decisions, by journal and seq, with what each earned."""
        return list(zip(self._judged["journal"].tolist(), self._judged["seq"].tolist(), self.values.tolist()))

    def mean(self) -> Interval:
        """The mean reward of a decision within the horizon."""
        return _interval(self.values, self.ends)

    def lately(self, n: int) -> tuple[int, float | None]:
        """The mean of the newest judged decisions."""
        newest = self.values[-n:]
        return len(newest), float(newest.mean()) if len(newest) else None

    def at_random(self) -> Weights:
        """The uniform policy."""
        share = 1.0 / self._judged["n_arms"]
        return Weights(share / self._judged["p"], share / self._judged["least"], self._judged["drawable"] * share)

    def the_first(self) -> Weights:
        """The policy that plays the caller's first arm: what was done before there was a service."""
        chance = self._judged["p_first"]
        offered = chance > 0.0
        most = np.divide(1.0, chance, out=np.zeros_like(chance), where=offered)
        return Weights(self._judged["first"] / self._judged["p"], most, offered.astype(np.float64))

    def over(self, other: Weights) -> Interval:
        """The uplift of the live policy over another."""
        if not self.n:
            width = self.ends[1] - self.ends[0]
            return Interval(None, -width, width, 0)
        live = Weights(*np.ones((3, self.n)))
        return Interval(*uplift_interval(live, other, self.values, *self.ends), self.n)

    def version(self, name: str, leader: str, since: int) -> tuple[Interval, int, Cohort]:
        """The uplift of a version over the leading one, and the judged decisions without its answer.

        Judged are the decisions since it began, as old as *they* allow: a young version has no number otherwise."""
        asked = np.array([k for k in self._among if self._all["seq"][k] > since], np.int64)
        found, rows, earned = self._judge(asked)
        both, values, unanswered = [], [], 0
        for k, value in zip(rows.tolist(), earned.tolist()):
            mine, theirs = self._among[k].get(name), self._among[k].get(leader)
            if mine is None or theirs is None:
                unanswered += 1
                continue
            p = float(self._all["p"][k])
            both.append([number for one in (mine, theirs) for number in (one.p / p, one.weight, one.covered)])
            values.append(value)
        if not values:
            width = self.ends[1] - self.ends[0]
            return Interval(0.0, -width, width, 0), unanswered, found
        table, ends = np.array(both), [min(self.ends[0], *values), max(self.ends[1], *values)]
        uplift = uplift_interval(Weights(*table[:, :3].T), Weights(*table[:, 3:].T), np.array(values), *ends)
        return Interval(*uplift, len(values)), unanswered, found

    def arms(self) -> list[dict[str, Any]]:
        """A row per arm: how often it was shown, its share of the newest decisions, what it earned."""
        shown = np.bincount(self._all["arm"], minlength=len(self._arms))
        newest = self._all["arm"][-MAX_RECENT:]
        lately = np.bincount(newest, minlength=len(self._arms)) / max(1, len(newest))
        order = [int(k) for k in np.argsort(-shown, kind="stable") if shown[k]]
        named = order if len(order) <= MAX_ARMS else order[: MAX_ARMS - 1]
        groups = [(self._arms[k], [k]) for k in named]
        if len(named) < len(order):
            groups.append((OTHER, order[len(named) :]))
        rows = []
        for arm, codes in groups:
            earned = _interval(self.values[np.isin(self._judged["arm"], codes)], self.ends)
            rows.append({"arm": arm, "arms": len(codes), "shown": int(shown[codes].sum()),
                         "share": float(lately[codes].sum()), **earned._asdict()})  # fmt: skip
        return rows

    def positions(self) -> list[dict[str, Any]]:
        """A row per position of lists, from the top: how often it was filled, what it earned."""
        filled, slots = np.bincount(self._all["slot"]), self._judged["slot"]
        return [
            {"position": slot, "shown": int(filled[slot]), **_interval(self.values[slots == slot], self.ends)._asdict()}
            for slot in np.flatnonzero(filled).tolist() if slot
        ]  # fmt: skip

    def _steps(self) -> tuple[np.ndarray, Floats, Floats]:
        """The changes of each decision's value within its window, sorted by age."""
        found = [(came, k, step) for k, record in self._records.items() for came, step in _steps(record)]
        table = np.array(sorted(found)).reshape(-1, 3)
        return table[:, 1].astype(np.int64), table[:, 0], table[:, 2]

    def delays(self) -> Delays:
        """The mean reward of a decision by age."""
        _, came, steps = self._steps()
        ages = np.sort(np.minimum(self._age, self._window))
        begins = float(self._all["default"].mean()) if len(ages) else 0.0
        shares = steps / np.maximum(len(ages) - np.searchsorted(ages, came, side="left"), 1)
        oldest = float(ages[-1]) if len(ages) else 0.0
        return Delays(came, begins + shares.cumsum(), np.sqrt((shares**2).cumsum()), begins, oldest)

    def open(self) -> dict[str, Any]:
        """The rewards of decisions with open windows, and those to expect within the ages seen so far."""
        unit, came, steps = self._steps()
        ages, waiting = np.sort(self._age), np.sort(self._age[~self._closed])
        at_risk = len(ages) - np.searchsorted(ages, came, side="left")
        weight = np.searchsorted(waiting, came, side="left") / np.maximum(at_risk, 1)
        per_decision = np.bincount(unit, steps * weight, minlength=len(ages)) if len(unit) else np.zeros(1)
        expected, variance = float((steps * weight).sum()), float((per_decision**2).sum() + (steps**2 * weight).sum())
        begins = float(self._all["default"].mean()) if len(ages) else 0.0
        ratio = min(len(waiting) / max(len(ages) - len(waiting), 1), 1.0)
        low, high = (
            expected + side * _reach(variance, side * steps, weight, side * (end - begins), ratio, len(waiting))
            for side, end in zip((-1.0, 1.0), self.ends)
        )
        oldest = float(ages[-1]) if len(ages) else 0.0
        rewarded = [each for k, each in self._records.items() if not self._closed[k]]
        return {
            "n": len(waiting), "rewarded": len(rewarded), "so_far": sum(each.worth() for each in rewarded),
            "brings": expected, "low": max(low, 0.0) if (steps >= 0.0).all() else low, "high": high,
            "known_until": oldest, "unknown_beyond": bool((self._window[~self._closed] > oldest).any()),
        }  # fmt: skip

    def over_time(self) -> list[list[float]]:
        """Per piece of time: its end; the mean of all so far with its ends; the mean at the time; its n."""
        if not self.n:
            return []
        order = np.argsort(self._judged["time"], kind="stable")
        times, values = self._judged["time"][order], self.values[order]
        width = max(1000, -(-int(times[-1] - times[0] + 1) // MAX_POINTS))
        ends = np.flatnonzero(np.diff((times - times[0]) // width, append=-1))
        sums, counts = np.diff(values.cumsum()[ends], prepend=0.0), np.diff(ends, prepend=-1)
        means, rates = zip(*running_means(values, ends, *self.ends)), _rates(sums, counts)
        return [
            [int(time), *map(float, each), rate, int(n)]
            for time, each, rate, n in zip(times[ends], means, rates, counts.tolist())
        ]


def _interval(values: Floats, ends: list[float]) -> Interval:
    if not len(values):
        return Interval(None, ends[0], ends[1], 0)
    mean, low, high = (float(each[0]) for each in running_means(values, np.array([len(values) - 1]), *ends))
    return Interval(mean, low, high, len(values))


def _rates(sums: Floats, counts: np.ndarray) -> list[float]:
    """The mean of each piece of time, together with those after it where it has too few decisions."""
    rates: list[float] = []
    total = n = together = 0.0
    for k, (earned, count) in enumerate(zip(sums.tolist(), counts.tolist())):
        total, n, together = total + earned, n + count, together + 1
        if n >= MIN_DECISIONS or k == len(sums) - 1:
            rates += [total / n] * int(together)
            total = n = together = 0.0
    return rates


def _in_time(record: Record) -> Record:
    return record._replace(rewards=record.rewards[: record.in_time])


def _reach(variance: float, steps: Floats, weight: Floats, most: float, ratio: float, waiting: int) -> float:
    """How far one end of what open decisions bring is from what is expected, as Wilson's interval is from a rate.

    Few steps have a variance that is known badly: one more step of the mean size is reckoned with. Where none was seen
    that may still come, it is as large as rewards may be, ``most``, and weighs as ``ratio`` says: open decisions per
    closed one.
    """
    up = steps > 0.0
    brings = float((steps * weight)[up].sum())
    if not brings and not variance:
        return max(most, 0.0) * min(Z**2 * (1.0 + ratio), waiting)
    size = float((steps**2 * weight * (1.0 + weight))[up].sum()) / brings if brings else 0.0
    return Z**2 * size / 2.0 + Z * math.sqrt(variance + Z**2 * size**2 / 4.0)


def _steps(record: Record) -> list[tuple[float, float]]:
    found, before = [], record.default
    for k, (came, _) in enumerate(record.rewards[: record.in_time]):
        after = record._replace(rewards=record.rewards[: k + 1]).worth()
        if after != before:
            found.append((came, after - before))
        before = after
    return found


class Earnings:
    """The newest decisions of an application, from one or several journals, read in the order of their time."""

    def __init__(self) -> None:
        self.arms: list[str] = []
        self._codes: dict[str, int] = {}
        self._begin()

    def _begin(self) -> None:
        self._table, self._n = np.zeros(1024, _TABLE), 0
        self._at: dict[tuple[int, int], int] = {}  # by journal and seq
        self._rewards: dict[int, tuple[str, list[tuple[float, float]]]] = {}  # the rule, and (age in seconds, value)
        self._rules: dict[int, str] = {}  # of decisions whose rule is not the earliest
        self.among: dict[int, dict[str, Share]] = {}

    def __len__(self) -> int:
        return self._n

    def remembers(self, journal: int, seq: int) -> bool:
        """Return whether a decision is one of the newest."""
        return (journal, seq) in self._at

    def table(self) -> np.ndarray:
        """The decisions, a row each."""
        return self._table[: self._n]

    def has_rewards(self, at: int) -> bool:
        """Return whether a decision has a reward."""
        return at in self._rewards

    def record(self, at: int) -> Record:
        """Take in a decision with its outcome."""
        rule, rewards = self._rewards[at]
        row = self._table[at]
        status = CLOSED if row["final"] else OPEN
        default, promised, in_time = float(row["default"]), bool(row["promised"]), int(row["in_time"])
        return Record(0.0, row["window"] / 1000.0, default, rule, status, promised, rewards, in_time)

    def so_far(self, journal: int, seq: int, now: int) -> float | None:
        """Return what a decision has earned; None while its window runs and nothing came, or if it was never shown."""
        at = self._at[journal, seq]
        row = self._table[at]
        if at in self._rewards:
            return self.record(at).worth()
        return float(row["default"]) if row["active"] and now > row["time"] + row["window"] else None

    def take(self, journal: int, row: Row) -> None:
        """Take an event in."""
        match row.event:
            case Decision() as decision:
                self._add(journal, row, decision)
            case Reward() as reward if (at := self._at.get((journal, reward.decision))) is not None:
                age = (row.time - int(self._table["time"][at])) / 1000.0
                rule = self._rules.get(at, EARLIEST)
                self._rewards.setdefault(at, (rule, []))[1].append((age, reward.value))
                self._table["in_time"][at] += not reward.late
                self._table["final"][at] |= reward.final and not reward.late
            case Activation(shown=True) as shown if (at := self._at.get((journal, shown.decision))) is not None:
                self._table["active"][at] = True

    def _add(self, journal: int, row: Row, decision: Decision) -> None:
        if self._n == len(self._table):
            self._make_room()
        arm = read_arm(bytes(decision.arms[decision.arm])).id
        if arm not in self._codes:
            self._codes[arm] = len(self.arms)
            self.arms.append(arm)
        chances = [p for p in decision.p if p > 0.0]
        at = self._n
        self._table[at] = (
            journal, row.time, row.seq, decision.window, decision.default, self._codes[arm], decision.p[decision.arm],
            len(decision.p), min(chances), len(chances), float(decision.arm == 0), slot_of(row.id), decision.p[0],
            decision.rule == EARLIEST, decision.learn == ARRIVAL, not decision.deferred, False, 0,
        )  # fmt: skip
        self._n += 1
        self._at[journal, row.seq] = at
        if decision.rule != EARLIEST:
            self._rules[at] = decision.rule
        if decision.among:
            self.among[at] = decision.among

    def _make_room(self) -> None:
        """Double the table, or drop the older half at its largest size."""
        if self._n < 2 * MAX_DECISIONS:
            self._table = np.concatenate([self._table, np.zeros(len(self._table), _TABLE)])
            return
        gone = self._n - MAX_DECISIONS
        self._table[: self._n - gone] = self._table[gone : self._n].copy()
        self._n -= gone
        self._at = {key: at - gone for key, at in self._at.items() if at >= gone}
        self._rewards = {at - gone: each for at, each in self._rewards.items() if at >= gone}
        self._rules = {at - gone: each for at, each in self._rules.items() if at >= gone}
        self.among = {at - gone: each for at, each in self.among.items() if at >= gone}

    def judge(self, now: int, ends: list[float], horizon: float | None = None) -> Judgement:
        """Judge the decisions now; ``ends`` bound the rewards, where they are known."""
        return Judgement(self, now, ends, horizon)
