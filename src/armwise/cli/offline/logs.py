"""Code shared by ``evaluate``, ``compare`` and ``replay``: the log and its columns, warnings, output files."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from armwise.cli.shared import BadInput, Parser, show

MIN_ROWS = 10  # of a log that can be evaluated


def add_log_options(parser: Parser) -> None:
    """Add the options of the log file and of the roles of its columns."""
    parser.add_argument("log", nargs="+",
                        help="a Parquet, CSV or VW dsjson file; also several, a pattern in quotes ('logs/*.parquet'), "
                        "a folder (with Hive keys, too), or a URL (s3://, gs://)")  # fmt: skip
    parser.add_argument("--format", choices=("parquet", "csv", "dsjson"), help="by default, from the file's name")
    parser.add_argument("--within", type=float, metavar="SECONDS",
                        help="of a service's log: take decisions at least this old, with what came within it (default: "
                        "the window, or the median age)")  # fmt: skip
    columns = parser.add_argument_group("columns (Parquet and CSV)")
    columns.add_argument("--contexts", metavar="A,B,...", help="context columns; by default every other column")
    columns.add_argument("--arm", default="arm", metavar="COLUMN", help="the arm that was played (default: arm)")
    columns.add_argument("--reward", default="reward", metavar="COLUMN", help="its reward (default: reward)")
    columns.add_argument("--probability", default="probability", metavar="COLUMN",
                         help="the probability it was drawn with (default: probability, if there is one); a number, as "
                         "in 1/3, is that of every row: a randomised trial")  # fmt: skip
    columns.add_argument("--delimiter", metavar="CHARACTER", help="of a CSV file; by default, found from its header")
    columns.add_argument("--decimal", metavar="CHARACTER", help="before the decimals in a CSV file (default: a point)")
    columns.add_argument("--skip-bad-rows", action="store_true",
                         help="leave out rows without a usable arm, reward, probability or context, and count them; "
                         "without it they are errors")  # fmt: skip
    columns.add_argument("--arm-features", metavar="PATTERN,...", help="one column per arm, as in price_{arm}")
    columns.add_argument("--n-arms", type=int,
                         help="how many arms there are; numbers in the arm column then count them from 0 (without it "
                         "they are ids, and the arms are those that the log shows)")  # fmt: skip


def open_log(args: argparse.Namespace) -> Any:
    """Open the log that the options describe; refuse output paths that cannot be written before reading anything."""
    for name in ("plot", "drift", "report", "save"):
        path = Path(getattr(args, name, None) or "-")
        if path.is_dir():
            raise BadInput(f"--{name} {path}: this is a folder, expected a file")
        if not path.parent.is_dir():
            raise BadInput(f"--{name} {path}: there is no folder {str(path.parent)!r}")
    for name in ("plot", "drift"):
        picture = getattr(args, name, None)
        if picture is None:
            continue
        from matplotlib.backend_bases import FigureCanvasBase

        kind = Path(picture).suffix.lstrip(".").lower()
        if kind not in FigureCanvasBase.filetypes:
            known = ", ".join(sorted(FigureCanvasBase.filetypes))
            raise BadInput(f"--{name} {picture}: not the name of a picture, expected one that ends in .png, .svg or "
                           f".pdf (any of {known})")  # fmt: skip
    log = _opened(args)
    rows = next(iter(log.batches(MIN_ROWS, contexts=False)), None)
    if rows is None or not len(rows):
        raise BadInput(f"{', '.join(args.log)} has no rows")
    if len(rows) < MIN_ROWS and sum(len(some) for some in log.batches(contexts=False)) < MIN_ROWS:
        raise BadInput(f"{', '.join(args.log)} has {len(rows)} rows, too few for an estimate: expected at least "
                       f"{MIN_ROWS}, and an interval needs about 30")  # fmt: skip
    return log


def _opened(args: argparse.Namespace) -> Any:
    from armwise import offline

    kind = kind_of_log(args)
    if kind == "dsjson":
        return offline.Log.from_dsjson(_path(args), skip=args.skip_bad_rows, horizon=args.within)
    reader = offline.Log.from_parquet if kind == "parquet" else offline.Log.from_csv
    try:
        if args.within is not None and kind != "parquet":
            raise BadInput("--within is for the logs of armwise, which say how old each decision is")
        horizon = {} if args.within is None else {"horizon": args.within}
        return reader(_path(args), **mapping(args), **horizon)
    except ValueError as wrong:
        if str(wrong).startswith("there is no column"):
            raise BadInput(f"{wrong} (name the columns with --arm, --reward, --probability, --contexts)") from None
        if type(wrong).__module__.startswith("pyarrow"):  # its message does not name the file
            raise BadInput(f"cannot read {', '.join(args.log)} as {kind}: {wrong}") from None
        raise


def _path(args: argparse.Namespace) -> Any:
    """The paths as the readers expect them: one, or a list."""
    return args.log[0] if len(args.log) == 1 else args.log


def kind_of_log(args: argparse.Namespace) -> str:
    """The format of the log, as given or by its name."""
    from armwise.offline.logs.sources import kind_of

    if args.format:
        return str(args.format)
    try:
        return kind_of(args.log)
    except ValueError:
        raise BadInput(
            f"cannot tell the format of {args.log[0]!r} from its name: give --format parquet, csv or dsjson"
        ) from None


def mapping(args: argparse.Namespace) -> dict[str, Any]:
    """The roles of the columns, as the readers expect them."""
    found: dict[str, Any] = {"arms": args.arm, "rewards": args.reward, "probabilities": _number(args.probability)}
    for option in ("delimiter", "decimal"):
        if getattr(args, option) is not None:
            found[option] = getattr(args, option)
    if args.skip_bad_rows:
        found["skip"] = True
    if args.contexts is not None:
        found["contexts"] = split_commas(args.contexts)
    if args.arm_features is not None:
        found["arm_features"] = split_commas(args.arm_features)
    if args.n_arms is not None:
        found["n_arms"] = args.n_arms
    return found


def _number(text: str) -> str | float:
    """Read the name of a column, or a number such as 0.25 or 1/4."""
    from fractions import Fraction

    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return text


def same_file(args: argparse.Namespace, log: Any, **changes: Any) -> Any:
    """Read the same file with other columns, and number its arms as in ``log``."""
    from armwise import offline
    from armwise.offline.logs.formats.dsjson import Events

    if kind_of_log(args) == "dsjson" or isinstance(log._source, Events):
        raise BadInput("a policy from columns needs a Parquet or CSV log")
    reader = offline.Log.from_parquet if kind_of_log(args) == "parquet" else offline.Log.from_csv
    # names and ids identify arms; with n_arms beside them, numbers would be positions
    numbering = {"n_arms": log.n_arms} if log.arm_names is None else {"n_arms": None, "arm_names": log.arm_names}
    return reader(_path(args), **(mapping(args) | numbering | changes))


def split_commas(text: str) -> list[str]:
    """Split a text at its commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def telling(args: argparse.Namespace, work: Callable[[], Any]) -> Any:
    """Run the work without printing warnings, which its result holds; if it fails, print those of the log first."""
    from armwise.offline import LogError, WeakLogWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return work()
        except Exception as error:
            texts = [str(each.message) for each in caught if issubclass(each.category, WeakLogWarning)]
            for text in dict.fromkeys(texts):
                print(f"armwise: warning: {text}", file=sys.stderr)
            if isinstance(error, LogError) and error.of_rows and not args.skip_bad_rows:
                error.add_remedy("to leave such rows out, give --skip-bad-rows")
            raise


def finish(args: argparse.Namespace, result: Any, text: str, data: Any) -> None:
    """Write the requested picture and page, and print the result."""
    if args.plot:
        result.plot(args.plot)
    if args.report:
        result.report(args.report)
    show_with(args, result.cautions, text, data)


def show_with(args: argparse.Namespace, cautions: Iterable[str], text: str, data: Any) -> None:
    """Print the text, which holds the warnings, or with ``--json`` the data.

    Whoever sees the text sees the warnings in it, once; they go to stderr where the output is not read as it comes:
    with ``--json``, or on a terminal whose output goes to a file.
    """
    if args.json or (sys.stderr.isatty() and not sys.stdout.isatty()):
        for caution in cautions:
            print(f"armwise: warning: {caution}", file=sys.stderr)
    show(args, text, data)
