"""A script that repeats a race: objects as the code that makes them, and the versions of all packages."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

import armwise
from armwise.agents.oracle.oracles.sklearn_oracles import SklearnEstimator
from armwise.core.saving import Saved
from armwise.environments.environment import Environment

if TYPE_CHECKING:
    from armwise.racing.results.result import Result


def code(thing: Any) -> str:
    """Write an object as the code that makes it, without default arguments; ``...`` replaces data too long to print."""
    return _Writer().code(thing)


class _Writer:
    """Write objects as code; with ``variables``, data that cannot be printed get a name instead of ``...``."""

    def __init__(self, variables: bool = False) -> None:
        self.variables = variables
        self.unprinted: list[tuple[Any, str]] = []  # the object, and its description
        self.imports: set[str] = set()

    def code(self, thing: Any) -> str:
        if isinstance(thing, SklearnEstimator):
            return self.code(thing.thing)
        if isinstance(thing, Saved):
            arguments = []
            signature = inspect.signature(type(thing).__init__).parameters
            for name, value in thing.params().items():
                default = signature[name].default if name in signature else inspect.Parameter.empty
                if not (default is value or (isinstance(value, (int, float, str, bool)) and default == value)):
                    arguments.append(f"{name}={self.code(value)}")
            return f"{self._public(type(thing))}({', '.join(arguments)})"
        if isinstance(thing, np.ndarray):
            if thing.size > 40 or not _printable(thing.tolist()):
                return self._unprinted(thing, f"an array of {thing.dtype}, shape {thing.shape}")
            self.imports.add("import numpy as np")
            plain = np.array(thing.tolist()).dtype == thing.dtype
            return f"np.array({thing.tolist()!r}" + (")" if plain else f", dtype={str(thing.dtype)!r})")
        if isinstance(thing, (list, tuple)):
            if len(thing) > 6 and not self.variables:
                return f"[{self.code(thing[0])}, ... {len(thing)} in all]"
            if len(thing) > 40:
                return self._unprinted(thing, f"a list of {len(thing)}, the first {self.code(thing[0])}")
            inside = ", ".join(self.code(item) for item in thing)
            return f"[{inside}]" if isinstance(thing, list) else f"({inside}{',' * (len(thing) == 1)})"
        if inspect.isfunction(thing) or isinstance(thing, type):
            if "<" in thing.__qualname__:
                return self._unprinted(thing, f"the function {thing.__qualname__} of {thing.__module__}")
            self._import(thing)
            return thing.__name__
        text = repr(thing)
        if not self.variables:
            return text if len(text) <= 200 else text[:197] + "..."
        if (not _printable(thing) and not text.startswith(type(thing).__name__ + "(")) or not _parses(text):
            return self._unprinted(thing, f"{type(thing).__name__}: {' '.join(text.split())[:80]}")
        if not _printable(thing):
            self._import(type(thing))
        return text

    def _unprinted(self, thing: Any, words: str) -> str:
        if not self.variables:
            return f"... {words}"
        for number, (known, _) in enumerate(self.unprinted, 1):
            if known is thing:
                return f"data_{number}"
        self.unprinted.append((thing, words))
        return f"data_{len(self.unprinted)}"

    def _public(self, cls: type) -> str:
        if not cls.__module__.startswith("armwise."):
            self._import(cls)
            return cls.__name__
        if issubclass(cls, Environment):
            return f"aw.environments.{cls.__name__}"
        if cls.__module__.startswith("armwise.models.kernels"):
            return f"aw.kernels.{cls.__name__}"
        return f"aw.{cls.__name__}"

    def _import(self, thing: Any) -> None:
        if thing.__module__ not in ("__main__", "builtins"):
            self.imports.add(f"from {thing.__module__} import {thing.__qualname__.partition('.')[0]}")


def _printable(thing: Any) -> bool:
    """Return whether ``repr`` is a literal that evaluates to the value."""
    try:
        return bool(ast.literal_eval(repr(thing)) == thing)
    except (ValueError, SyntaxError):
        return False


def _parses(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def script(results: list[Result]) -> str:
    """Write the script that repeats these results; data too long to print become variables for the reader to fill."""
    writer, lines = _Writer(variables=True), []
    for result in results:
        seeds: Any = result.seeds
        if seeds == list(range(len(seeds))):
            seeds = len(seeds)
        lines += ["", "aw.race(", "    {"]
        lines += [f"        {name!r}: {writer.code(agent)}," for name, agent in result.agents.items()]
        lines += [
            "    },",
            f"    {writer.code(result.world)},",
            f"    horizon={result.horizon},",
            f"    seeds={seeds},",
            ")",
        ]
    data = [f"data_{number} = ...  # put here {words}" for number, (_, words) in enumerate(writer.unprinted, 1)]
    return "\n".join(["import armwise as aw", *sorted(writer.imports), *([""] if data else []), *data, *lines])


def versions() -> dict[str, str]:
    """The versions that decide the numbers."""
    found = {"armwise": armwise.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}
