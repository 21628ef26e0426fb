"""``armwise survey``: the survey's claims, each beside a race that shows it, as HTML and LaTeX."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from armwise.cli.shared import BadInput, command_parser, show

_EXAMPLE = "armwise survey --out survey"


def add_parser(commands: Any) -> None:
    """Add the options of ``armwise survey``."""
    parser = command_parser(commands, "survey", "reproduce the survey, section by section, as a document", _EXAMPLE)
    parser.add_argument("--out", default="armwise-survey", metavar="FOLDER", help="default: armwise-survey")
    parser.add_argument("--seeds", type=int, default=20, help="worlds for each race (default: 20)")
    parser.add_argument("--scale", type=float, default=1.0, help="lengthen or shorten all races (default: 1)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="default: all cores")


def run(args: argparse.Namespace) -> int:
    if args.seeds < 3:
        raise BadInput(f"--seeds must be at least 3, for intervals, got {args.seeds}")
    if not 0.0 < args.scale <= 100.0:
        raise BadInput(f"--scale must be in (0, 100], got {args.scale}")
    from armwise.racing.report.document import walk_through, write_document
    from armwise.racing.run.checkpoints import Store

    unfinished = Path(args.out) / ".unfinished"  # checkpoints of an interrupted survey
    try:
        found, sections = walk_through(args.seeds, args.scale, args.workers, checkpoint=unfinished)
    except KeyboardInterrupt:
        print(f"\narmwise survey: stopped; the same command goes on from {unfinished}", file=sys.stderr)
        return 130
    written = write_document(found, sections, args.out)
    Store(unfinished).clear()
    lines, rows = [], []
    for section in sections:
        lines.append(f"\n{section.chapter.section} {section.chapter.title}")
        for row in section.rows:
            measured = row.measured if isinstance(row.measured, str) else str(row.measured)
            proved = "none" if row.proved is None else f"{row.proved:.3g}"
            lines.append(f"  {row.agent:32s} proved {proved:5s} measured {measured}")
            rows.append({"section": section.chapter.section, "agent": row.agent, "regret": row.regret,
                         "proved": row.proved, "why_none": row.why, "measured": measured,
                         "verdict": row.verdict})  # fmt: skip
    paths = {kind: str(path.resolve()) for kind, path in written.items()}
    show(args, "\n".join([*lines, "", *paths.values()]), {"files": paths, "rows": rows})
    return 0
