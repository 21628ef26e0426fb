"""What a proxy is told: its configuration and its models, each field checked and named where it is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import urllib.parse
from collections.abc import Callable
from typing import Any

from backends import LIMITS, Model

PRICE = "dollars per million tokens, from 0 on"


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def is_above_zero(value: Any) -> bool:
    return is_number(value) and value > 0


def is_share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def is_whole(value: Any) -> bool:
    return type(value) is int and value >= 1


def is_address(value: Any) -> bool:
    """Whether this is an address with http:// or https://, a host, and a port that there is."""
    try:
        parts = urllib.parse.urlsplit(value if is_text(value) else "")
        port, host = parts.port, (parts.hostname or "").encode("idna")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and port != 0 and " " not in value


Check = tuple[Callable[[Any], bool], str]
TEXT: Check = is_text, "a text that can be printed"
FIELDS: dict[str, Check] = {
    "name": TEXT, "model": TEXT, "key_from": TEXT,
    "url": (is_address, "an address with http:// or https:// and a host"),
    "input": (lambda value: is_number(value) and value >= 0, PRICE),
    "output": (lambda value: is_number(value) and value >= 0, PRICE),
    "max_tokens": (is_whole, "a whole number from 1 on"),
    "timeout": (is_above_zero, "seconds above 0"),
    "limit": (lambda value: value in LIMITS, f"{LIMITS[0]!r} or {LIMITS[1]!r}"),
}  # fmt: skip
NUMBER: Check = is_above_zero, "a number above 0"
OPTIONS: dict[str, Check] = {
    "dollars_per_thousand": NUMBER, "dollars": NUMBER, "request_dollars": NUMBER, "patience": NUMBER,
    "default": (is_share, "a number from 0 to 1"), "explore": (is_share, "a number from 0 to 1"),
    "prompts": (is_whole, "a whole number from 1 on"),
    "port": (lambda value: is_whole(value) and value < 65536, "a whole number from 1 to 65535"),
    "service": (is_address, "an address with http:// or https:// and a host"),
    "journal": TEXT, "ledger": TEXT, "key": TEXT, "host": TEXT, "service_key": TEXT, "application": TEXT,
    "budget": TEXT,
}  # fmt: skip


def read_model(given: Any) -> Model:
    """A model of the configuration; ValueError names the field.

    >>> read_model({"name": "a", "url": "http://127.0.0.1/v1", "model": "m", "input": 1, "output": -1})
    Traceback (most recent call last):
    ...
    ValueError: output of the model 'a' must be dollars per million tokens, from 0 on, got -1
    """
    if not isinstance(given, dict):
        raise ValueError(f"a model is an object with name, url, model, input and output, got {given!r:.80}")
    fields = {field.name: field for field in dataclasses.fields(Model)}
    called = f"the model {given.get('name')!r:.80}"
    if strange := sorted(set(given) - set(fields)):
        raise ValueError(f"{called} has {strange[0]!r}, and a model has only {', '.join(fields)}")
    for name, field in fields.items():
        if name not in given:
            if field.default is dataclasses.MISSING:
                raise ValueError(f"{called} needs {name}, and has none")
            continue
        fits, says = FIELDS[name]
        if not fits(given[name]):
            raise ValueError(f"{name} of {called} must be {says}, got {given[name]!r:.80}")
    if given.get("key_from") and given["key_from"] not in os.environ:
        raise ValueError(f"{called}: its key is not in the environment as {given['key_from']}")
    return Model(**given)


def read_config(path: str) -> dict[str, Any]:
    """The configuration, its models read; SystemExit says what is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        if not isinstance(config, dict) or not isinstance(config.get("models", []), list):
            raise ValueError(f"a configuration is an object with a list of models, got {config!r:.80}")
        if strange := sorted(set(config) - {"models", *OPTIONS}):
            raise ValueError(f"{strange[0]!r} is unknown; known are models, {', '.join(OPTIONS)}")
        models = [read_model(each) for each in config.get("models", [])]
        names = [model.name for model in models]
        if not names or len(set(names)) < len(names) or "auto" in names:
            raise ValueError(f"models must have names, at least one, each once and none 'auto', got {names}")
        if config.get("budget") is not None and not config.get("service"):
            raise ValueError("budget is the application of a service that holds it, and no service is given")
        needed = ["dollars_per_thousand", *(["request_dollars"] if config.get("budget") else [])]
        for name, (fits, says) in OPTIONS.items():
            value = config.get(name)
            if (name in needed or value is not None) and not fits(value):
                raise ValueError(f"{name} must be {says}, got {value!r:.80}")
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}; see docs/router.md") from None
    return config | {"models": models}
