"""Data frames to numbers: numeric, categorical, boolean, date and text columns become numeric columns."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from armwise.core.agent import Floats
from armwise.core.tools.extras import needs

MAX_CATEGORIES = 50  # a text column with at most this many values is categorical
N_HASHED = 64  # columns that the words of a text are hashed into
_LABELS = ("label", "class", "target")


def columns(name: str, frame: Any, *, scale: bool = False) -> Floats:
    """A data frame (of pandas, or one with ``to_pandas``) as numbers. Numbers stay; categories, booleans and short
    lists of texts become one indicator per value; dates and durations become days; longer texts become hashed
    words, each row of length 1; a missing value is an indicator of its own (and 0 where the number would stand). With
    ``scale`` numbers and days have mean 0 and deviation 1 over the rows.
    """
    with needs("race"):
        import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        if not hasattr(frame, "to_pandas"):
            raise ValueError(f"{name} must be an array or a data frame of pandas, got {type(frame).__name__}")
        frame = frame.to_pandas()
    parts: list[Floats] = []
    for position, label in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if pd.api.types.is_bool_dtype(column) or isinstance(column.dtype, pd.CategoricalDtype):
            parts.append(_indicators(column))
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
            parts += _with_missing(column.to_numpy(np.float64, na_value=np.nan), f"{name}[{label!r}]", scale)
        elif pd.api.types.is_datetime64_any_dtype(column):
            days = (column - column.min()).dt.total_seconds() / 86_400.0
            parts += _with_missing(days.to_numpy(np.float64), f"{name}[{label!r}]", scale)
        elif pd.api.types.is_timedelta64_dtype(column):
            days = column.dt.total_seconds() / 86_400.0
            parts += _with_missing(days.to_numpy(np.float64), f"{name}[{label!r}]", scale)
        elif not _texts(column):
            raise ValueError(
                f"{name}[{label!r}] must hold numbers, texts, dates or categories, got {column.iloc[0]!r:.60}"
            )
        elif column.nunique() <= MAX_CATEGORIES:
            parts.append(_indicators(column))
        else:
            parts.append(np.stack([_words(text) for text in column.fillna("").astype(str)]))
    if not parts:
        raise ValueError(f"{name} must have at least one column")
    return np.column_stack(parts)


def _texts(column: Any) -> bool:
    """Return whether a column of objects holds scalars (texts, numbers, missing values) and no lists."""
    return not any(isinstance(value, (list, tuple, set, dict, complex, np.ndarray)) for value in column)


def _indicators(column: Any) -> Floats:
    import pandas as pd

    table: Floats = pd.get_dummies(column.astype(object), dummy_na=bool(column.isna().any())).to_numpy(np.float64)
    return table


def _with_missing(values: Floats, where: str, scale: bool) -> list[Floats]:
    if np.isinf(values).any():
        raise ValueError(f"{where} must be finite, got infinity")
    missing = np.isnan(values)
    if scale and not missing.all():
        values = (values - np.nanmean(values)) / (np.nanstd(values) or 1.0)
    return [np.where(missing, 0.0, values), missing.astype(np.float64)] if missing.any() else [values]


def _words(text: str) -> Floats:
    row = np.zeros(N_HASHED)
    for word in re.findall(r"\w+", text.lower()):
        hashed = zlib.crc32(word.encode())
        row[hashed % N_HASHED] += 1.0 if hashed >> 31 else -1.0
    length = np.linalg.norm(row)
    return row / length if length > 0 else row


def is_frame(value: Any) -> bool:
    """Return whether an object is a pandas data frame, or looks like one."""
    return hasattr(value, "columns") and hasattr(value, "dtypes")


def read_frame(path: str | os.PathLike[str]) -> Any:
    """The data frame of a Parquet or CSV file."""
    with needs("race"):
        import pandas as pd

    file = Path(path)
    if not file.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        frame = pd.read_parquet(file) if file.suffix.lower() in (".parquet", ".pq") else pd.read_csv(file)
    except Exception as error:
        raise ValueError(f"{path}: cannot be read as Parquet or CSV: {str(error).splitlines()[0]}") from None
    if not len(frame):
        raise ValueError(f"{path}: no rows")
    return frame


def labelled_sets(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """The classification sets of a folder, by name: its Parquet and CSV files."""
    place = Path(folder)
    if not place.is_dir():
        raise ValueError(f"{folder}: no such folder")
    files = sorted(path for path in place.iterdir() if path.suffix.lower() in (".parquet", ".pq", ".csv"))
    if not files:
        raise ValueError(f"{folder}: no Parquet or CSV files in it")
    return {path.stem: path for path in files}


def read_labelled(path: str | os.PathLike[str], label: str | None = None) -> tuple[Floats, np.ndarray]:
    """X and y of one set: y is the column ``label``, or the one called label, class or target, or else the last."""
    frame = read_frame(path)
    if label is not None and label not in frame.columns:
        raise ValueError(f"{path}: no column {label!r}; it has {', '.join(map(str, frame.columns[:20]))}")
    name = label or next((each for each in _LABELS if each in frame.columns), frame.columns[-1])
    if frame[name].isna().any():
        raise ValueError(f"{path}: the label {name!r} has missing values: drop those rows first")
    return columns("X", frame.drop(columns=name)), frame[name].to_numpy()
