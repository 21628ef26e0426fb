"""A transformer of scikit-learn in front of the service's encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from armwise.features.encoding.encoder import Encoder
from armwise.features.encoding.from_python import to_plain


def read_encoder(encoder: Any, dim: int | None) -> tuple[Callable[[Any], Any] | None, dict[str, Any]]:
    """Return the transformation of contexts (None: none) and the settings of the features."""
    features: dict[str, Any] = {} if dim is None else {"dim": dim}
    if encoder is None:
        return None, features
    if isinstance(encoder, Encoder):
        return None, {"dim": encoder.dim, "interactions": encoder.interactions} | features
    if not callable(getattr(encoder, "transform", None)):
        raise ValueError(
            f"encoder must be a features.Encoder, or have a method transform like scikit-learn's, got "
            f"{type(encoder).__name__}"
        )
    return Transformed(encoder), features


class Transformed:
    """Transform contexts: the output columns by name; of a sparse row those that are not zero."""

    def __init__(self, transformer: Any) -> None:
        self._transformer = transformer
        named = getattr(transformer, "get_feature_names_out", None)
        self._names = [str(name) for name in named()] if callable(named) else None
        columns = getattr(transformer, "feature_names_in_", None)
        self._columns = None if columns is None else [str(name) for name in columns]

    def __call__(self, context: Any) -> dict[str, float]:
        row = self._transformer.transform(self._rows(context))
        if hasattr(row, "tocoo"):
            found = row.tocoo()
            pairs = sorted(zip(found.col.tolist(), found.data.tolist()))
        else:
            values = np.asarray(row, np.float64)
            if values.ndim != 2 or len(values) != 1:
                raise ValueError(f"encoder.transform must give one row per context, got shape {values.shape}")
            pairs = list(enumerate(values[0].tolist()))
        return {f"x{i}" if self._names is None else self._names[i]: float(value) for i, value in pairs}

    def _rows(self, context: Any) -> Any:
        names = to_plain("context", context)
        if not isinstance(names, dict):
            raise ValueError(f"context must have names, got {type(context).__name__} {context!r:.60}")
        if self._columns is None:
            return [names]
        import pandas as pd

        return pd.DataFrame([{column: names.get(column, np.nan) for column in self._columns}])
