"""Structured logs: one JSON object per line on standard error."""

from __future__ import annotations

import datetime
import json
import logging
import sys

LEVELS = ("debug", "info", "warning", "error")


class JsonLines(logging.Formatter):
    """Format a log record as one line of JSON; ``extra={"data": {...}}`` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().strip(),
            **getattr(record, "data", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def check_level(level: str) -> None:
    """Raise ValueError if the level is unknown."""
    if level not in LEVELS:
        raise ValueError(f"log_level must be {', '.join(LEVELS[:-1])} or {LEVELS[-1]}, got {level!r}")


def set_up(level: str) -> None:
    """Send the logs of the service and its server, and Python's warnings, to standard error as JSON lines."""
    check_level(level)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name in ("armwise", "uvicorn", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper() if name == "armwise" else "WARNING")
