"""The data of the report's live charts: every run at every recorded round, bounds, certificates, arm shares."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

_SHOWN_ARMS = 7  # the others are put together
_STRETCHES = 24
_PARQUET_LIMIT = 4_000_000  # bytes; a page that is larger opens slowly


def chart_data(result: Result) -> dict[str, Any]:
    """What the live chart of one world reads.

    >>> import armwise as aw
    >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=50, seeds=2)
    >>> data = chart_data(result)
    >>> data["agents"][0]["name"], len(data["agents"][0]["runs"])
    ('Exp3', 2)
    """
    metrics = list(result.runs_of(result.finishers[0])[0].metrics) if result.finishers else []
    shown = _arms_shown(result)
    return {
        "label": result.label,
        "horizon": result.horizon,
        "comparator": result.world.comparator,
        "rounds": result.rounds.tolist(),
        "quantities": ["regret", "reward", "seconds", *metrics],
        "arms": [f"arm {arm}" for arm in shown] + (["others"] if result.world.n_arms > len(shown) else []),
        "agents": [_agent(result, name, shown, metrics) for name in result.finishers],
    }


def _agent(result: Result, name: str, shown: np.ndarray, metrics: list[str]) -> dict[str, Any]:
    curve, _ = result.bound(name)
    verdict, words = result.verdict(name)
    proved = result.certificate(name)
    runs = []
    for run in result.runs_of(name):
        values = {"regret": run.regret, "reward": run.reward, "seconds": run.seconds_at}
        values |= {metric: run.metrics[metric] for metric in metrics}
        runs.append({"seed": run.seed, "shares": _shares(run.counts, shown)}
                    | {key: _figures(column) for key, column in values.items()})  # fmt: skip
    return {
        "name": name,
        "look": list(result.agents).index(name),
        "runs": runs,
        "bound": None if curve is None else _figures([curve(int(t)) if t >= 2 else np.nan for t in result.rounds]),
        "bound_note": words if verdict != "none" else f"no bound: {words}",
        "certificate": None
        if isinstance(proved, str)
        else {"rounds": np.asarray(proved.rounds).tolist(), "values": _figures(proved.curve)},
        "certificate_note": f"no certificate: {proved}"
        if isinstance(proved, str)
        else f"certified (dash-dot) at most {proved.regret:.4g} with the first seed, probability 0.95",
    }


def _arms_shown(result: Result) -> np.ndarray:
    counts = [run.counts.sum(axis=0) for run in result.runs if not run.error]
    total = np.sum(counts, axis=0) if counts else np.zeros(result.world.n_arms)
    return np.sort(np.argsort(-total, kind="stable")[:_SHOWN_ARMS])


def _shares(counts: np.ndarray, shown: np.ndarray) -> list[list[float]]:
    """Stretches of the horizon, each with the share of the arms shown and of the others together."""
    step = max(1, len(counts) // _STRETCHES)
    merged = np.add.reduceat(counts, np.arange(0, len(counts), step), axis=0)
    merged = merged[merged.sum(axis=1) > 0]
    share = merged / merged.sum(axis=1, keepdims=True)
    table = np.column_stack([share[:, shown], 1.0 - share[:, shown].sum(axis=1)])
    return [[round(float(value), 3) for value in row[: None if counts.shape[1] > len(shown) else -1]] for row in table]


def _figures(values: Any) -> list[float | None]:
    """Six significant figures: a page for the eye; the files of a race have all of them."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, np.float64)]


def as_script(data: Any) -> str:
    """JSON that can stand in a page: nothing in it ends a script or begins a tag.

    >>> as_script({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def parquet(results: list[Result]) -> str:
    """All curves as a Parquet file in base64; empty where that would make the page too large."""
    with needs("race"):
        import pandas as pd

    buffer = io.BytesIO()
    pd.concat([result.curves() for result in results], ignore_index=True).to_parquet(buffer, index=False)
    data = buffer.getvalue()
    return base64.b64encode(data).decode() if len(data) <= _PARQUET_LIMIT else ""
