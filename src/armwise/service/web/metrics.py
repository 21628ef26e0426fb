"""Prometheus metrics in the text format."""

from __future__ import annotations

import bisect
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from armwise.service.engine.commit_counts import BUCKETS as COMMITS
from armwise.service.engine.interface import ServedEngine
from armwise.service.journal.errors import Unavailable, Unknown
from armwise.service.web.keys import ANYONE, Key

HELP = {
    "requests_total": "Responses, by method, path and status.",
    "request_seconds": "From a request's first byte to its answer.",
    "journal_lag": "Events that are durable and not yet learnt by the models that decide here.",
    "queue_depth": "Groups of writes that wait for a commit.",
    "leader": "1 if this process learns, for all that share its journal, or one of several.",
    "journal_healthy": "1 if the journal can be written.",
    "commits_total": "Commits of this process.",
    "clock_jumps_total": "How often the clock jumped since the start.",
    "refused_keys_total": "Requests without a valid key.",
    "commit_seconds": "How long commits took.",
    "model_version": "The last event that the model knows.",
    "model_lessons": "Outcomes that were learnt.",
    "model_refused": "Outcomes that the agent could not learn.",
    "open_decisions": "Decisions whose reward window is open.",
    "late_rewards_total": "Rewards that came after their window or a final one, to this process.",
    "expired_total": "Windows that closed without a reward having been learnt, closed by this process.",
    "drift_alarms": "Alarms of drift that are remembered, the newest 16 at most.",
    "drift_last_alarm": "The event of the newest alarm of drift; 0: there was none.",
    "drift_evidence": "Evidence that decisions earn less than expected; at 1 there is an alarm.",
    "refusals_total": "Requests that were answered with an error, by its code.",
    "decisions_total": "Decisions of this process, by the arm that was drawn.",
    "rewards_total": "Rewards that came to this process, by the arm they were for.",
    "reward_value": "The sum of these rewards.",
    "model_merges_total": "How often the models of several databases were merged.",
    "model_merge_seconds_total": "How long that took.",
    "database_up": "1 if this database can be written, by its place in the configuration.",
    "database_queue_depth": "Groups of writes that wait for a commit of this database.",
    "database_leader": "1 if this process learns for this database.",
    "database_commits_total": "Commits of this process to this database.",
    "database_decisions_total": "Decisions of this process in this database.",
    "database_rewards_total": "Rewards that came to this process for this database.",
    "database_lag": "Events of this database that are durable and not yet learnt by the models here.",
    "version_share": "The share of the decisions that a version of the model makes.",
    "version_uplift": "What a version earns per decision beyond the one that leads: estimate, and the interval's ends.",
    "reward_horizon_seconds": "The age at which decisions are judged, clicked or not.",
    "reward_per_decision": "What a decision earned within the horizon: mean, and its interval's ends.",
    "judged_decisions": "Decisions that are as old as the horizon, of the newest that are remembered.",
    "arm_reward_per_decision": "What decisions for an arm earned within the horizon; the arms beyond 50 as other.",
    "arm_judged_decisions": "Decisions for an arm that are as old as the horizon.",
    "position_reward_per_decision": "What a position of lists, from 1 at the top, earned within the horizon.",
    "position_judged_decisions": "Lists that filled a position and are as old as the horizon.",
}
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Count responses and their durations."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()
        self.refusals: Counter[tuple[str, str]] = Counter()  # by application and error code
        self.refused_keys = 0

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one response."""
        self.requests[method, path, status] += 1
        if path not in self._buckets:
            self._buckets[path] = [0] * (len(BUCKETS) + 1)
        self._buckets[path][bisect.bisect_left(BUCKETS, seconds)] += 1
        self._sums[path] += seconds  # type: ignore[assignment]

    def lines(self) -> list[str]:
        """Return the request metrics in the text format."""
        text = ["# TYPE armwise_requests_total counter"]
        for (method, path, status), n in sorted(self.requests.items()):
            text.append(f'armwise_requests_total{{method="{method}",path="{path}",status="{status}"}} {n}')
        text.append("# TYPE armwise_request_seconds histogram")
        for path, buckets in sorted(self._buckets.items()):
            text += _histogram("armwise_request_seconds", f'path="{path}"', BUCKETS, buckets, self._sums[path])
        return text

    def render(
        self, engine: ServedEngine, key: Key = ANYONE, look: Callable[[str], dict[str, Any]] | None = None
    ) -> bytes:
        """Return all metrics, including the applications that ``key`` may read; ``look`` returns what one earns."""
        writer, counts = engine.writer, engine.counts
        text = self.lines()
        gauges = {
            "armwise_journal_lag": engine.lag(),
            "armwise_queue_depth": writer.depth,
            "armwise_leader": int(any(each.leader for each in engine.started)),
            "armwise_journal_healthy": int(writer.healthy),
        }
        for name, value in gauges.items():
            text += [f"# TYPE {name} gauge", f"{name} {value}"]
        text += _databases(engine.parts())
        totals: dict[str, float] = {"commits": writer.commits, "clock_jumps": engine.clock_jumps}
        totals |= {"refused_keys": self.refused_keys} | engine.totals()
        for name, count in totals.items():
            text += [f"# TYPE armwise_{name}_total counter", f"armwise_{name}_total {count}"]
        text.append("# TYPE armwise_commit_seconds histogram")
        text += _histogram("armwise_commit_seconds", "", COMMITS, writer.commit_times, writer.commit_seconds)
        models = {app: model for app, model in sorted(engine.models.items()) if key.may("read", app)}
        for name in ("version", "lessons", "refused"):
            text += _by_application(f"model_{name}", "gauge", {app: getattr(m, name) for app, m in models.items()})
        waiting = engine.open_decisions()
        text += _by_application("open_decisions", "gauge", {app: waiting.get(app, 0) for app in models})
        text += _by_application("late_rewards_total", "counter", {app: counts.late[app] for app in models})
        text += _by_application("expired_total", "counter", {app: counts.expired[app] for app in models})
        text += _by_application("drift_alarms", "gauge", {app: len(m.drift.alarms) for app, m in models.items()})
        last = {app: int(m.drift.alarms[-1][0]) if m.drift.alarms else 0 for app, m in models.items()}
        text += _by_application("drift_last_alarm", "gauge", last)
        evidence = {app: round(m.drift.evidence, 6) for app, m in models.items()}
        text += _by_application("drift_evidence", "gauge", evidence)
        text.append("# TYPE armwise_refusals_total counter")
        for (app, code), n in sorted(self.refusals.items()):
            if app in models:
                text.append(f'armwise_refusals_total{{application="{_escape(app)}",code="{code}"}} {n}')
        by_arm: dict[str, dict[tuple[str, str], Any]]
        by_arm = {"decisions_total": counts.decisions, "rewards_total": counts.rewards, "reward_value": counts.values}
        for name, found in by_arm.items():
            text.append(f"# TYPE armwise_{name} {'gauge' if name == 'reward_value' else 'counter'}")
            for (app, arm), number in sorted(found.copy().items()):
                if app in models:
                    text.append(f'armwise_{name}{{application="{_escape(app)}",arm="{_escape(arm)}"}} {number}')
        text += _earned({} if look is None else {app: seen for app in models if (seen := _looked(look, app))})
        shares = {app: {name: one.share for name, one in m.versions.items()} for app, m in models.items()}
        text.append("# TYPE armwise_version_share gauge")
        for app, each in shares.items():
            for name, share in each.items():
                text.append(f'armwise_version_share{{application="{_escape(app)}",version="{_escape(name)}"}} {share}')
        return ("\n".join(_explained(text)) + "\n").encode()


def _explained(text: Sequence[str]) -> Iterator[str]:
    """Add a HELP line before each TYPE line."""
    for line in text:
        name = line.split(" ")[2] if line.startswith("# TYPE armwise_") else ""
        if told := HELP.get(name.removeprefix("armwise_")):
            yield f"# HELP {name} {told}"
        yield line


def _databases(parts: Mapping[str, Mapping[str, float]]) -> list[str]:
    text: list[str] = []
    for name in {name: None for shown in parts.values() for name in shown}:
        text.append(f"# TYPE armwise_database_{name} {'counter' if name.endswith('_total') else 'gauge'}")
        values = {place: shown[name] for place, shown in parts.items() if name in shown}
        text += [f'armwise_database_{name}{{database="{_escape(place)}"}} {value}' for place, value in values.items()]
    return text


def _looked(look: Callable[[str], dict[str, Any]], app: str) -> dict[str, Any] | None:
    with contextlib.suppress(Unavailable, Unknown):  # its journal cannot be read now, or it was deleted
        return look(app)
    return None


def _earned(seen: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return rewards per decision, in total and per arm, by age, and the uplift of versions over the leading one."""
    text = ["# TYPE armwise_reward_horizon_seconds gauge"]
    for app, each in seen.items():
        horizon = each["cohort"]["horizon"]
        seconds = each["delays"]["window"] if horizon is None else horizon
        text.append(f'armwise_reward_horizon_seconds{{application="{_escape(app)}"}} {seconds:.6g}')
    text.append("# TYPE armwise_reward_per_decision gauge")
    for app, each in seen.items():
        text += _ends("reward_per_decision", f'application="{_escape(app)}"', each["rewards"], each["rewards"]["mean"])
    text.append("# TYPE armwise_judged_decisions gauge")
    judged = {app: each["cohort"]["n"] for app, each in seen.items()}
    text += [f'armwise_judged_decisions{{application="{_escape(app)}"}} {n}' for app, n in judged.items()]
    for kind in ("arm", "position"):
        rows = [(f'application="{_escape(app)}",{kind}="{_escape(str(row[kind]))}"', row)
                for app, each in seen.items() for row in each[f"{kind}s"]]  # fmt: skip
        text.append(f"# TYPE armwise_{kind}_reward_per_decision gauge")
        for labels, row in rows:
            text += _ends(f"{kind}_reward_per_decision", labels, row, row["value"])
        text.append(f"# TYPE armwise_{kind}_judged_decisions gauge")
        text += [f"armwise_{kind}_judged_decisions{{{labels}}} {row['n']}" for labels, row in rows]
    text.append("# TYPE armwise_version_uplift gauge")
    for app, each in seen.items():
        for one in each["versions"][1:]:
            labels = f'application="{_escape(app)}",version="{_escape(one["name"])}"'
            text += _ends("version_uplift", labels, one["uplift"], one["uplift"]["value"])
    return text


def _ends(name: str, labels: str, interval: Mapping[str, Any], value: float | None) -> list[str]:
    ends = {"value": value, "low": interval["low"], "high": interval["high"]}
    return [f'armwise_{name}{{{labels},end="{end}"}} {x:.6g}' for end, x in ends.items() if x is not None]


def _by_application(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    lines = [f'armwise_{name}{{application="{_escape(app)}"}} {value}' for app, value in values.items()]
    return [f"# TYPE armwise_{name} {kind}", *lines]


def _histogram(name: str, labels: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> list[str]:
    """Return the lines of a histogram from its counts per bucket."""
    lines, n, inside = [], 0, f"{labels}," if labels else ""
    for bound, count in zip((*bounds, "+Inf"), counts):
        n += count
        lines.append(f'{name}_bucket{{{inside}le="{bound}"}} {n}')
    around = f"{{{labels}}}" if labels else ""
    return [*lines, f"{name}_sum{around} {total:.6f}", f"{name}_count{around} {n}"]


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
