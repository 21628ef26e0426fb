"""How to run it again: objects written as the code that makes them, and the versions of everything."""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

import armwise
from armwise.environments.base import Environment
from armwise.persist import Saved

if TYPE_CHECKING:
    from armwise.racing.result import Result


def code(thing: Any) -> str:
    """The code that makes this object, as short as its defaults allow; ``...`` stands for data too long to print.

    >>> import armwise as aw
    >>> print(code(aw.LinUCB(dim=3, alpha=aw.Ellipsoid(noise=0.1, norm=1.0, delta=0.05))))
    aw.LinUCB(dim=3, alpha=aw.Ellipsoid(noise=0.1, norm=1.0, delta=0.05), lam=1.0)
    >>> print(code(aw.environments.Linear(n_arms=5)))
    aw.environments.Linear(n_arms=5)
    """
    if isinstance(thing, Saved):
        given = []
        signature = inspect.signature(type(thing).__init__).parameters
        for name, value in thing.params().items():
            default = signature[name].default if name in signature else inspect.Parameter.empty
            if not (default is value or (isinstance(value, (int, float, str, bool)) and default == value)):
                given.append(f"{name}={code(value)}")
        return f"{_public(type(thing))}({', '.join(given)})"
    if isinstance(thing, np.ndarray):
        text = np.array2string(thing, separator=", ", threshold=40).replace("\n", "")
        return f"np.array({text})" if thing.size <= 40 else f"... array{thing.shape}"
    if isinstance(thing, (list, tuple)):
        if len(thing) > 6:
            return f"[{code(thing[0])}, ... {len(thing)} in all]"
        return "[" + ", ".join(code(item) for item in thing) + "]"
    if inspect.isfunction(thing):
        return thing.__name__
    text = repr(thing)
    return text if len(text) <= 200 else text[:197] + "..."


def _public(cls: type) -> str:
    if issubclass(cls, Environment):
        return f"aw.environments.{cls.__name__}"
    if cls.__module__.startswith("armwise.kernel.kernels"):
        return f"aw.kernels.{cls.__name__}"
    return f"aw.{cls.__name__}" if cls.__module__.startswith("armwise.") else cls.__name__


def script(results: list[Result]) -> str:
    """The Python that repeats these results.

    >>> import armwise as aw
    >>> result = aw.race([aw.Exp3(n_arms=3)], aw.environments.Switching(n_arms=3), horizon=20, seeds=2)
    >>> print(script([result]))
    import armwise as aw
    <BLANKLINE>
    aw.race(
        {
            'Exp3': aw.Exp3(n_arms=3),
        },
        aw.environments.Switching(n_arms=3),
        horizon=20,
        seeds=2,
    )
    """
    lines = ["import armwise as aw"]
    for result in results:
        seeds: Any = result.seeds
        if seeds == list(range(len(seeds))):
            seeds = len(seeds)
        lines += ["", "aw.race(", "    {"]
        lines += [f"        {name!r}: {code(agent)}," for name, agent in result.agents.items()]
        lines += ["    },", f"    {code(result.world)},", f"    horizon={result.horizon},", f"    seeds={seeds},", ")"]
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """The versions that decide the numbers.

    >>> versions()["armwise"] == armwise.__version__
    True
    """
    found = {"armwise": armwise.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}
