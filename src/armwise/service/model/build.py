"""Build agents and models from the description of an application."""

from __future__ import annotations

import difflib
import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import armwise
from armwise.core import saving
from armwise.core.agent import Agent
from armwise.features.encoding.hashed import MAX_DIM, HashedRows
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.events import Creation
from armwise.service.model.model import Model

MAX_MEMORY = 1 << 30  # bytes of an agent; there are about three copies of it at a time


def build_model(creation: Creation, agent: Agent | None = None) -> Model:
    """Build an untrained model of an application; ``agent`` replaces the one described."""
    try:
        encoder = HashedRows(**creation.features)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"features: {error}") from None
    if agent is None:
        if "class" not in creation.agent:
            raise InvalidInput(f"agent must say which one, such as class = 'LinUCB', got {creation.agent}")
        agent = build(creation.agent, encoder.dim, creation.seed)
    if not isinstance(agent, Agent):
        raise InvalidInput(f"agent: {creation.agent['class']} is not an agent")
    if (size := footprint(agent)) > MAX_MEMORY:
        raise InvalidInput(
            f"agent: it takes {size / 2**20:.0f} MB of memory, at most {MAX_MEMORY >> 20} are accepted: "
            f"lower the dim of the features, which is {encoder.dim}, or the number of arms"
        )
    model = Model(agent, encoder, creation.arms, creation.rewards)
    model.settings = creation.settings
    model.check_settings(creation.settings)
    try:
        model.check_reward(creation.settings.default)
    except InvalidInput as error:
        raise InvalidInput(f"default: {error}") from None
    return model


def build(spec: Any, dim: int, seed: int, where: str = "agent") -> Any:
    """Build an object from its description: a table whose ``class`` names it and whose other keys are arguments.

    ``dim`` is the features' unless said; every agent gets a seed of its own, derived from ``seed`` and its place.
    """
    if isinstance(spec, list):
        return [build(item, dim, seed, f"{where}[{i}]") for i, item in enumerate(spec)]
    if not isinstance(spec, dict):
        return spec
    if spec.get("class") in ("Mapped", "armwise.Mapped"):
        raise InvalidInput(
            f"{where}: Mapped needs a feature map that was fitted to rows, which no description holds: use its agent "
            "by itself (contexts and arms are crossed here anyway), or Decider(agent) in memory"
        )
    arguments = {key: build(value, dim, seed, f"{where}.{key}") for key, value in spec.items() if key != "class"}
    if "class" not in spec:
        return arguments
    space, _, name = str(spec["class"]).rpartition(".")
    if space not in ("", "kernels", "policies", "armwise") or name not in dir(_room(space)):
        near = difflib.get_close_matches(name, dir(armwise), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{where}: armwise has nothing called {spec['class']!r}{hint}")
    cls = getattr(_room(space), name)
    if not (inspect.isclass(cls) and issubclass(cls, saving.Saved)):
        raise InvalidInput(f"{where}: {spec['class']} is not something that can be saved")
    parameters = _parameters(cls.__init__)
    if "dim" in parameters and arguments.setdefault("dim", dim) not in range(MAX_DIM + 1):
        raise InvalidInput(f"{where}: dim must be a whole number up to {MAX_DIM}, got {arguments['dim']}")
    if "seed" in parameters and "seed" not in arguments:
        place = hashlib.blake2b(f"{seed}/{where}".encode(), digest_size=8).digest()
        arguments["seed"] = int.from_bytes(place, "little")
    try:
        return cls(**arguments)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{where}: {error}") from None
    except (MemoryError, OverflowError) as error:
        raise InvalidInput(f"{where}: it does not fit into memory: {error}") from None
    except Exception as error:  # arguments of a kind that nobody foresaw
        raise InvalidInput(f"{where}: {type(error).__name__}: {error}") from error


@functools.lru_cache(maxsize=1024)
def _parameters(make: Callable[..., object]) -> frozenset[str]:
    """The names of a constructor's arguments; cached, because finding them takes longer than building most agents."""
    return frozenset(inspect.signature(make).parameters)


def _room(space: str) -> Any:
    return armwise if space in ("", "armwise") else getattr(armwise, space)


def footprint(value: Any) -> int:
    """The bytes of all arrays in an agent, or in a part of one."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(footprint, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(footprint, value))
    return footprint(vars(value)) if isinstance(value, saving.Saved) else 0
