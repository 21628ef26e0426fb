"""Sources of logs: frames and Arrow tables in memory; files, datasets, lazy frames and queries, streamed."""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from armwise.core.tools.extras import needs
from armwise.offline.logs.columns import Block, ColumnRoles, TableSource, check_column
from armwise.offline.logs.formats import dsjson, service_log
from armwise.offline.logs.formats.dsjson import Events
from armwise.offline.logs.formats.lines import Lines
from armwise.offline.logs.row_ranges import overlapping, pieces, within
from armwise.offline.logs.rows import LogError

_URL = re.compile(r"^[a-z][a-z0-9+]+://")
_DELIMITERS = (",", ";", "\t", "|")
_INFERRED = 1 << 23  # bytes of a CSV file from which the types of its columns are inferred


def opened(source: Any, **mapping: Any) -> TableSource | Events:
    """The rows of whatever holds them: see ``Log.read``."""
    if isinstance(source, (str, os.PathLike, list, tuple)):
        kind = kind_of(source)
        if kind == "dsjson":
            return dsjson.Events(source, **mapping)
        return from_csv(source, **mapping) if kind == "csv" else from_parquet(source, **mapping)
    module = type(source).__module__.partition(".")[0].lstrip("_")
    if module == "polars" or hasattr(source, "collect_batches"):
        return from_polars(source, **mapping)
    if module == "duckdb" and hasattr(source, "aggregate"):
        return from_duckdb(source, **mapping)
    if module == "pyarrow" or (hasattr(source, "__arrow_c_stream__") and not hasattr(source, "iloc")):
        return from_arrow(source, **mapping)
    if hasattr(source, "columns"):
        return from_frame(source, **mapping)
    raise ValueError(
        f"cannot read a log from {type(source).__name__}: expected a path, a pandas or Polars frame, an Arrow table, "
        "dataset or reader, or a DuckDB relation"
    )


def kind_of(path: Any) -> str:
    """The format of a file, a folder, a pattern or a URL, from its name: parquet, csv or dsjson."""
    if isinstance(path, (list, tuple)) and not path:
        raise ValueError("there is no file to read: expected a path, or several, got an empty list")
    name = os.fspath(path[0] if isinstance(path, (list, tuple)) else path)
    suffixes = {suffix.lower() for suffix in Path(name).suffixes}
    if suffixes & {".dsjson", ".json", ".jsonl"}:
        return "dsjson"
    if suffixes & {".csv", ".tsv", ".txt"}:
        return "csv"
    if suffixes & {".parquet", ".pq"} or not suffixes or Path(name).is_dir() or _URL.match(name):
        return "parquet"
    if ".gz" in suffixes:
        return "csv"
    raise ValueError(f"cannot tell the format of {name!r} from its name: expected .parquet, .csv or .dsjson")


def _table(
    blocks: Callable[..., Iterator[Block]], names: Sequence[str], n_rows: int | None, n_arms: int | None,
    arm_names: Sequence[Any] | None, mapping: dict[str, Any], *, ranged: bool = False, in_memory: bool = False,
    lines: Lines | None = None, batches: Callable[[list[str]], Iterator[Any]] | None = None,
) -> TableSource | Events:  # fmt: skip
    """The rows of blocks of columns; ``ranged`` if ``blocks`` can open some of the rows only.

    Where ``batches`` gives the rows as Arrow has them, the service's own log is known as such.
    """
    mapping = dict(mapping)
    skip, horizon = mapping.pop("skip", False), mapping.pop("horizon", None)
    ours = service_log.is_service_log(names)
    if ours and batches is not None and service_log.as_usual(mapping, n_arms, arm_names):
        return dsjson.EventTable(batches, names, horizon)
    if horizon is not None:
        raise ValueError("horizon is for the logs of armwise, which say how old each decision is")
    columns = ColumnRoles.read(names, **mapping)

    def checked(wanted: list[str], size: int, *rows: int) -> Iterator[Block]:
        for name in wanted:
            check_column(name, names)
        found = blocks(wanted, size, *rows)
        return map(service_log.without_open, found) if ours else found

    return TableSource(checked, columns, n_rows, n_arms, arm_names, ranged, in_memory, lines, names, skip)


# ---------------------------------------------------------------------- frames


def from_frame(
    frame: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any
) -> TableSource | Events:
    """A log in memory from anything with named columns that turn into arrays (pandas, Polars)."""

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        yield {name: _array(frame[name]) for name in wanted}

    def batches(wanted: list[str]) -> Iterator[Any]:
        with needs("offline"):
            import pyarrow as pa
        yield from pa.table(frame[wanted]).to_batches(max_chunksize=service_log.ROWS)

    names = list(frame.columns)
    return _table(blocks, names, len(frame), n_arms, arm_names, mapping, in_memory=True, batches=batches)


def _array(column: Any) -> np.ndarray:
    if type(column).__module__.startswith("pandas") and column.hasnans:  # pandas.NA is neither a number nor a text
        kind = getattr(column.dtype, "kind", "O")
        numbers = kind in "iuf"
        if numbers or kind == "O":
            return np.asarray(column.to_numpy(np.float64 if numbers else object, na_value=np.nan if numbers else None))
    array = np.asarray(column.to_numpy())
    # pandas' own types for strings, categories and missing values all turn into objects
    return array if array.dtype.kind in "biufMO" else array.astype(object)


def from_polars(
    frame: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any
) -> TableSource | Events:
    """A log in memory from a Polars frame; a lazy one is streamed, and computed again in each pass."""
    if not hasattr(frame, "collect_batches"):
        return from_frame(frame, n_arms=n_arms, arm_names=arm_names, **mapping)
    import polars as pl

    def blocks(wanted: list[str], size: int, first: int = 0, last: int | None = None) -> Iterator[Block]:
        part = frame.select(wanted) if last is None else frame.select(wanted).slice(first, last - first)
        for batch in part.collect_batches(chunk_size=size, maintain_order=True):
            for start in range(0, len(batch), size):  # a chunk may be larger than it was asked to be
                block = batch.slice(start, size)
                yield {name: _array(block[name]) for name in wanted}

    def batches(wanted: list[str]) -> Iterator[Any]:
        for batch in frame.select(wanted).collect_batches(chunk_size=service_log.ROWS, maintain_order=True):
            yield from batch.to_arrow().to_batches(max_chunksize=service_log.ROWS)

    names, n_rows = frame.collect_schema().names(), int(frame.select(pl.len()).collect().item())
    return _table(blocks, names, n_rows, n_arms, arm_names, mapping, ranged=True, batches=batches)


# ---------------------------------------------------------------------- Arrow, DuckDB


def from_arrow(
    table: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any
) -> TableSource | Events:
    """A log in memory from an Arrow table or anything that exports one; a dataset is streamed.

    A RecordBatchReader can be read once, and an evaluation passes over the rows more than once: it goes into memory.
    """
    with needs("offline"):
        import pyarrow as pa
        from pyarrow import dataset

    if isinstance(table, dataset.Dataset):
        return _from_dataset(table, n_arms, arm_names, mapping)
    if not isinstance(table, pa.Table):
        table = table.read_all() if isinstance(table, pa.RecordBatchReader) else pa.table(table)

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for batch in table.select(wanted).to_batches(max_chunksize=size):
            yield _block(batch)

    def batches(wanted: list[str]) -> Iterator[Any]:
        yield from table.select(wanted).to_batches(max_chunksize=service_log.ROWS)

    names, n_rows = table.column_names, table.num_rows
    return _table(blocks, names, n_rows, n_arms, arm_names, mapping, in_memory=True, batches=batches)


def _from_dataset(
    data: Any, n_arms: int | None, arm_names: Sequence[Any] | None, mapping: dict[str, Any]
) -> TableSource | Events:
    # Little is read ahead: memory stays flat whatever the files hold.
    def blocks(wanted: list[str], size: int, first: int = 0, last: int | None = None) -> Iterator[Block]:
        if last is None:
            for batch in data.to_batches(columns=wanted, batch_size=size, batch_readahead=2, fragment_readahead=1):
                yield _block(batch)
            return
        for piece, skip, end in overlapping(pieces(data), first, last):
            batches = piece.to_batches(schema=data.schema, columns=wanted, batch_size=size, batch_readahead=2)
            yield from map(_block, within(batches, skip, end))

    def every(wanted: list[str]) -> Iterator[Any]:
        return iter(
            data.to_batches(columns=wanted, batch_size=service_log.ROWS, batch_readahead=2, fragment_readahead=1)
        )

    names, n_rows = data.schema.names, data.count_rows()
    return _table(blocks, names, n_rows, n_arms, arm_names, mapping, ranged=True, batches=every)


def from_duckdb(
    relation: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, **mapping: Any
) -> TableSource | Events:
    """A streamed log from a DuckDB relation: the query runs again in each pass, for the columns that it needs."""

    def batches(wanted: list[str], size: int = service_log.ROWS) -> Iterator[Any]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in wanted)
        for batch in _reader(relation.project(quoted), size):
            for start in range(0, batch.num_rows, size):
                yield batch.slice(start, size)

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        return map(_block, batches(wanted, size))

    n_rows = int(relation.aggregate("count(*)").fetchall()[0][0])
    return _table(blocks, list(relation.columns), n_rows, n_arms, arm_names, mapping, batches=batches)


def _reader(relation: Any, size: int) -> Any:
    """The rows in batches; the method's name changed from DuckDB 1 to 2."""
    read = relation.to_arrow_reader if hasattr(type(relation), "to_arrow_reader") else relation.fetch_record_batch
    return read(size)


def _block(batch: Any) -> Block:
    with needs("offline"):
        import pyarrow as pa

    block = {}
    for i, name in enumerate(batch.schema.names):
        try:
            block[name] = _from_arrow(batch.column(i))
        except (pa.ArrowException, OverflowError) as error:  # such as a text that is not UTF-8
            raise ValueError(f"the column {name!r} cannot be read: {str(error)[:200]}") from None
    return block


def _from_arrow(column: Any) -> np.ndarray:
    with needs("offline"):
        import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if pa.types.is_fixed_size_list(kind) and not pa.types.is_nested(kind.value_type) and column.null_count == 0:
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat, np.float64).reshape(len(column), kind.list_size)
    if pa.types.is_nested(kind):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    plain = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if plain and isinstance(column, pa.Array) and len(column) and column.null_count == 0:
        # As they lie in memory: to_numpy would import pandas first, which takes longer than reading a million rows.
        dtype = np.dtype(str(kind) if pa.types.is_integer(kind) else f"f{kind.bit_width // 8}")
        return np.frombuffer(column.buffers()[1], dtype, len(column), column.offset * dtype.itemsize)
    return np.asarray(column.to_numpy(zero_copy_only=False))


# ---------------------------------------------------------------------- files


def from_parquet(
    path: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, filesystem: Any = None,
    **mapping: Any,
) -> TableSource | Events:  # fmt: skip
    """A streamed log from Parquet: a file, several, a pattern, a folder (with Hive keys, too), a URL.

    The service's own logs are known as such. s3:// and gs:// go through pyarrow's filesystems.
    """
    if filesystem is not None or _is_url(path) or _is_partitioned(path):
        return _from_dataset(_dataset(path, filesystem), n_arms, arm_names, mapping)
    with needs("offline"):
        import pyarrow.parquet as pq

    paths = _paths(path, "*.parquet")

    def open_file(one: str) -> Any:
        try:
            return pq.ParquetFile(one)
        except (OSError, NotImplementedError) as error:
            if getattr(error, "errno", None) is not None:  # the system's, who names the file
                raise
            raise ValueError(f"{one}: expected a Parquet file: {error}") from None

    opened = [open_file(one) for one in paths]
    names = opened[0].schema_arrow.names
    lengths = [f.metadata.num_rows for f in opened]
    for file in opened:
        file.close()

    def blocks(wanted: list[str], size: int, first: int = 0, last: int | None = None) -> Iterator[Block]:
        last = sum(lengths) if last is None else last
        for one, skip, end in overlapping(list(zip(paths, lengths, strict=True)), first, last):
            with pq.ParquetFile(one, pre_buffer=False) as file:
                sizes = [(i, file.metadata.row_group(i).num_rows) for i in range(file.metadata.num_row_groups)]
                groups = list(overlapping(sizes, skip, end))
                batches = file.iter_batches(batch_size=size, row_groups=[i for i, _, _ in groups], columns=wanted)
                yield from map(_block, within(batches, groups[0][1], groups[0][1] + end - skip))

    def read_ahead(wanted: list[str], size: int, *rows: int) -> Iterator[Block]:
        return ahead(blocks(wanted, size, *rows))

    every = functools.partial(service_log.parquet_batches, paths)
    return _table(read_ahead, names, sum(lengths), n_arms, arm_names, mapping, ranged=True, batches=every)


def _is_url(path: Any) -> bool:
    first = path[0] if isinstance(path, (list, tuple)) and path else path
    return isinstance(first, str) and bool(_URL.match(first))


def _is_partitioned(path: Any) -> bool:
    """A folder with files in folders such as day=2024-01-01."""
    return (
        isinstance(path, (str, os.PathLike))
        and Path(path).is_dir()
        and any("=" in one.parent.name for one in Path(path).glob("**/*.parquet"))
    )


def _dataset(path: Any, filesystem: Any = None) -> Any:
    with needs("offline"):
        from pyarrow import dataset, fs

    paths = [os.fspath(one) for one in (path if isinstance(path, (list, tuple)) else [path])]
    if filesystem is None and _is_url(paths[0]):
        filesystem, _ = fs.FileSystem.from_uri(paths[0].partition("*")[0])
        paths = [fs.FileSystem.from_uri(one.partition("*")[0])[1] + _from_star(one) for one in paths]
    if filesystem is not None and any("*" in one for one in paths):
        paths = [found for one in paths for found in _matching(one, filesystem)]
    return dataset.dataset(paths if len(paths) > 1 else paths[0], filesystem=filesystem, format="parquet",
                           partitioning="hive", exclude_invalid_files=False)  # fmt: skip


def _from_star(url: str) -> str:
    return url[url.index("*") :] if "*" in url else ""


def _matching(pattern: str, filesystem: Any) -> list[str]:
    """The files of a filesystem that a pattern with * and ** names."""
    with needs("offline"):
        from pyarrow import fs

    base = pattern.partition("*")[0].rpartition("/")[0]
    wanted = re.compile(re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*"))
    files = filesystem.get_file_info(fs.FileSelector(base, recursive=True))
    found = sorted(one.path for one in files if one.is_file and wanted.fullmatch(one.path))
    if not found:
        raise FileNotFoundError(f"there is no file {pattern!r}")
    return found


def from_csv(
    path: Any, *, n_arms: int | None = None, arm_names: Sequence[Any] | None = None, delimiter: str | None = None,
    decimal: str = ".", **mapping: Any,
) -> TableSource | Events:  # fmt: skip
    """A streamed log from one CSV file with a header line, or several; the delimiter is found from it if not given.

    ``decimal`` is the character before the decimals of a number.
    """
    with needs("offline"):
        import pyarrow as pa
        from pyarrow import csv

    paths = _paths(path, "*.csv")
    for name, character in (("delimiter", delimiter), ("decimal", decimal)):
        if character is not None and len(character) != 1:
            raise ValueError(f"{name} is {character!r}, expected one character, as in ';'")
    found = delimiter or _delimiter(paths[0])
    skip = bool(mapping.get("skip", False))
    lines = Lines(paths, found, skip=skip)

    def opened(one: str, read: Any = None, **options: Any) -> Iterator[Any]:
        """The schema and the batches of a file; what its parser refuses is told by line."""
        convert = csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal, **options)
        ragged = 0

        def pass_over(row: Any) -> str:
            nonlocal ragged
            ragged += 1
            return "skip"

        parse = csv.ParseOptions(delimiter=found, invalid_row_handler=pass_over if skip else None)
        try:
            with csv.open_csv(one, read, parse, convert) as reader:
                yield reader.schema
                yield from reader
            lines.left_out[one] = ragged
        except pa.ArrowInvalid as error:
            raise LogError(lines.problems(one, str(error))) from None

    schema = next(opened(paths[0], csv.ReadOptions(block_size=_INFERRED)))
    outcome = [mapping.get("rewards", "reward"), mapping.get("probabilities", "probability")]
    types = {name: _csv_type(kind, name in outcome) for name, kind in zip(schema.names, schema.types, strict=True)}

    def blocks(wanted: list[str], size: int) -> Iterator[Block]:
        for one in paths:
            batches = opened(one, include_columns=wanted, column_types=types)
            next(batches)
            for batch in batches:
                for start in range(0, batch.num_rows, size):
                    yield _block(batch.slice(start, size))

    return _table(
        lambda names, size: ahead(blocks(names, size)), schema.names, None, n_arms, arm_names, mapping, lines=lines
    )


def _csv_type(kind: Any, is_outcome: bool) -> Any:
    """The type of a column whose first cells are of this kind: others may follow whole outcomes and empty cells."""
    with needs("offline"):
        import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.string()
    return pa.float64() if is_outcome and pa.types.is_integer(kind) else kind


def _delimiter(path: str) -> str:
    """The one of , ; tab | that the header line has most of."""
    with needs("offline"):
        import pyarrow as pa

    with pa.input_stream(path) as file:  # it unpacks .gz and its like by their names
        header = file.read(1 << 16).decode("utf-8", errors="replace").partition("\n")[0]
    return max(_DELIMITERS, key=header.count)


def ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks; the next is read while the last is worked on."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = reader.submit(next, blocks, None)
            yield block


def _paths(path: Any, pattern: str) -> list[str]:
    if isinstance(path, (list, tuple)):
        return [one for each in path for one in _paths(each, pattern)]
    text = os.fspath(path)
    if Path(text).is_dir():
        found = sorted(str(p) for p in Path(text).glob(pattern))
    else:
        found = [text] if Path(text).exists() else sorted(glob.glob(text, recursive=True))
    if not found:
        raise FileNotFoundError(f"there is no file {text!r}" + (f" with {pattern}" if Path(text).is_dir() else ""))
    return found
