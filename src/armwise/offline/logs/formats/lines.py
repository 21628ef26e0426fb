"""Line numbers of CSV files as an editor shows them, and ragged lines."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from armwise.core.tools.extras import needs


class Lines:
    """The line of each row of CSV files, counted from 1 with the header; the files are read when it is asked for."""

    def __init__(self, paths: Sequence[str], delimiter: str, *, skip: bool = False) -> None:
        self._paths, self._delimiter, self._skip = list(paths), delimiter, skip
        self.left_out: dict[str, int] = {}  # ragged lines of each file, where they are skipped; known after a pass
        self._firsts: list[int] | None = None  # of each file, its first row
        self._lines = array("q")

    def place(self, row: int) -> str:
        """Return a row's line, with the file's name if there are several."""
        if self._firsts is None:
            self._find()
        assert self._firsts is not None
        file = max(i for i, first in enumerate(self._firsts) if first <= row)
        line = f"line {self._lines[row]}" if row < len(self._lines) else f"row {row}"
        return line if len(self._paths) == 1 else f"{Path(self._paths[file]).name}, {line}"

    def _find(self) -> None:
        self._firsts = []
        for path in self._paths:
            self._firsts.append(len(self._lines))
            records = _records(path, self._delimiter, header=True)
            width = len(next(records, (1, []))[1])
            self._lines.extend(line for line, cells in records if not self._skip or len(cells) == width)

    def problems(self, path: str, error: str) -> list[str]:
        """Return what prevents a file from being read, by line; the parser's message if no line explains it."""
        prefix = "" if len(self._paths) == 1 else f"{Path(path).name}, "
        records = _records(path, self._delimiter, header=True)
        _, header = next(records, (1, []))
        ragged = [(line, len(cells)) for line, cells in records if len(cells) != len(header)]
        if ragged:
            return [f"{prefix}line {line}: {n} cells, expected {len(header)} as in the header" for line, n in ragged]
        column, _, value = error.partition("CSV conversion error to ")
        number, value = column.partition("column #")[2].partition(":")[0], value.partition("invalid value '")[2][:-1]
        if number.isdigit() and int(number) < len(header):
            place = int(number)
            for line, cells in _records(path, self._delimiter, header=False):
                if cells[place] == value:
                    return [f"{prefix}line {line}: {header[place]} is {value!r}, expected a number as in the rows "
                            "before: correct it, or leave the column out of contexts"]  # fmt: skip
        return [f"{path}: {error}"]


def _records(path: str, delimiter: str, *, header: bool) -> Iterator[tuple[int, list[str]]]:
    """The records of a file that are not blank, each with the line where it begins."""
    with needs("offline"):
        import pyarrow as pa

    with pa.input_stream(path) as packed:  # it unpacks .gz and its like by their names
        text: Any = io.TextIOWrapper(packed, encoding="utf-8-sig", errors="replace", newline="")
        records = csv.reader(text, delimiter=delimiter)
        line, found = 1, False
        for cells in records:
            if cells and (header or found):
                yield line, cells
            found = found or bool(cells)
            line = records.line_num + 1
