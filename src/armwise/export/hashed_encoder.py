"""The encoder of hashed rows, as a policy describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaler


def hashed_encoder(encoder: HashedRows, scaler: Scaler) -> dict[str, Any]:
    """Positions, crossing, and the mean and deviation of each number that has varied, by its name's hash."""
    deviations = np.sqrt(scaler.squares / np.maximum(scaler.counts, 1.0))
    scale = {
        f"{name:016x}": [mean, deviation]
        for name, mean, deviation in zip(scaler.names.tolist(), scaler.means.tolist(), deviations.tolist())
        if deviation > 0.0
    }
    return {"kind": "hashed", "dim": encoder.dim, "interactions": encoder.interactions, "scale": scale}
