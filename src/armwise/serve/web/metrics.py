"""What Prometheus reads: counters and a histogram, in its text format."""

from __future__ import annotations

import bisect
from collections import Counter

from armwise.serve.engine.engine import Engine
from armwise.serve.web.keys import ANYONE, Key

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Counts of responses and their times.

    >>> metrics = Metrics()
    >>> metrics.observe("POST", "v1/decisions", 201, 0.004)
    >>> "armwise_requests_total" in "".join(metrics.lines())
    True
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def observe(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one response.

        >>> Metrics().observe("GET", "healthz", 200, 0.1)
        """
        self.requests[method, path, status] += 1
        if path not in self._buckets:
            self._buckets[path] = [0] * (len(BUCKETS) + 1)
        self._buckets[path][bisect.bisect_left(BUCKETS, seconds)] += 1
        self._sums[path] += seconds  # type: ignore[assignment]

    def lines(self) -> list[str]:
        """The requests, in the text format.

        >>> Metrics().lines()[0]
        '# TYPE armwise_requests_total counter'
        """
        text = ["# TYPE armwise_requests_total counter"]
        for (method, path, status), n in sorted(self.requests.items()):
            text.append(f'armwise_requests_total{{method="{method}",path="{path}",status="{status}"}} {n}')
        text.append("# TYPE armwise_request_seconds histogram")
        for path, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, n in zip((*BUCKETS, "+Inf"), buckets):
                total += n
                text.append(f'armwise_request_seconds_bucket{{path="{path}",le="{bound}"}} {total}')
            text.append(f'armwise_request_seconds_sum{{path="{path}"}} {self._sums[path]:.6f}')
            text.append(f'armwise_request_seconds_count{{path="{path}"}} {total}')
        return text

    def render(self, engine: Engine, key: Key = ANYONE) -> bytes:
        """Everything, the state of the applications that ``key`` may read included.

        >>> from armwise.serve.journal.sqlite import SQLite
        >>> engine = Engine(SQLite.temporary(), {})
        >>> engine.start(); b"armwise_journal_lag 0" in Metrics().render(engine); engine.stop()
        True
        """
        text = self.lines()
        gauges = {
            "armwise_journal_lag": engine.lag(),
            "armwise_leader": int(engine.leader),
            "armwise_journal_healthy": int(engine.writer.healthy),
        }
        for name, value in gauges.items():
            text += [f"# TYPE {name} gauge", f"{name} {value}"]
        for name, count in {"commits": engine.writer.commits, "clock_jumps": engine.clock_jumps}.items():
            text += [f"# TYPE armwise_{name}_total counter", f"armwise_{name}_total {count}"]
        for name in ("version", "lessons", "refused"):
            text.append(f"# TYPE armwise_model_{name} gauge")
            for app, model in sorted(engine.models.items()):
                if not key.may("read", app):
                    continue
                text.append(f'armwise_model_{name}{{application="{_escape(app)}"}} {getattr(model, name)}')
        return ("\n".join(text) + "\n").encode()


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
