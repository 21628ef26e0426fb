"""The data of the report's live charts: every run at every recorded round, bounds, certificates, arm shares."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.core.tools.extras import needs

if TYPE_CHECKING:
    from armwise.racing.results.result import Result

MAX_ARMS = 7  # in a chart; the others are grouped
_STRETCHES = 24
MAX_PARQUET = 4_000_000  # bytes; a larger page opens slowly


def chart_data(result: Result) -> dict[str, Any]:
    """The data of the live chart of one world."""
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
    return np.sort(np.argsort(-total, kind="stable")[:MAX_ARMS])


def _shares(counts: np.ndarray, shown: np.ndarray) -> list[list[float]]:
    """Parts of the horizon with the share of each shown arm and of the others together."""
    step = max(1, len(counts) // _STRETCHES)
    merged = np.add.reduceat(counts, np.arange(0, len(counts), step), axis=0)
    merged = merged[merged.sum(axis=1) > 0]
    share = merged / merged.sum(axis=1, keepdims=True)
    table = np.column_stack([share[:, shown], 1.0 - share[:, shown].sum(axis=1)])
    return [[round(float(value), 3) for value in row[: None if counts.shape[1] > len(shown) else -1]] for row in table]


def _figures(values: Any) -> list[float | None]:
    """Round to six significant figures; the files of a race have all digits."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, np.float64)]


def as_script(data: Any) -> str:
    """Write JSON that is safe inside a page: it cannot close a script or open a tag."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def parquet(results: list[Result]) -> str:
    """Encode all curves as a Parquet file in base64; empty if that would make the page too large."""
    with needs("race"):
        import pandas as pd

    buffer = io.BytesIO()
    pd.concat([result.curves() for result in results], ignore_index=True).to_parquet(buffer, index=False)
    data = buffer.getvalue()
    return base64.b64encode(data).decode() if len(data) <= MAX_PARQUET else ""
