"""Try a model before it is journaled, because the journal would keep one that cannot decide or learn.

A model from outside must moreover be like the application's own: the same agent with the same arguments (``epsilon``
apart, which is a setting), the same features, arms and rewards, and everything it has learnt of the same kind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import msgspec
import numpy as np

from armwise.core import saving
from armwise.core.agent import Agent
from armwise.features.encoding.arms import read_arms
from armwise.features.encoding.tokens import InvalidInput
from armwise.service.journal.events import Creation, Decision
from armwise.service.model.build import build_model
from armwise.service.model.model import DrawRequest, Model

MAX_ARMS = 1 << 17  # more do not fit into a request
NEW, ROUNDS = 4, 7  # requests invented: so many are new, and those after them the same one again and again


def rehearse(model: Model, k: int = 0) -> None:
    """Decide and learn an invented request, the k-th, as the service will; this changes the model."""
    # Two arms or three where any number will do, so that what has a place per arm is seen to vary.
    names = model.arms or [str(i) for i in range(model.agent.n_arms or 2 + k % 2)]
    arms = read_arms([msgspec.json.encode(name) for name in names[:MAX_ARMS]])
    # A number is scaled by those before it, so only what has none is seen to come again.
    context: dict[str, Any] = {"key": f"value {k}", "number": k} if k < NEW else {"key": "value"}
    if model.agent.sees == "advice":
        context["advice"] = np.full((model.agent.n_experts or 1, len(arms.ids)), 1.0 / len(arms.ids)).tolist()
    text = msgspec.json.encode(context)
    [drawn] = model.decide([DrawRequest(text, arms, (0.5 + 0.3 * k) % 1.0)])
    if not (np.all(drawn.p >= 0.0) and abs(drawn.p.sum() - 1.0) < 1e-6):  # False for NaN
        raise InvalidInput(f"its probabilities are {drawn.p.tolist()[:10]}")
    sent, p = list(arms.raws), drawn.p.tolist()
    decision = Decision(
        msgspec.Raw(text), sent, p, int(drawn.arm), 0, 1, 0.0, note=drawn.note, scaling=drawn.seen.scaling.packed
    )
    read = msgspec.json.decode(msgspec.json.encode(decision), type=Decision)
    model.observe_decision(read)
    free = [0.0] * model.agent.n_costs or None  # an agent with a budget counts costs
    model.learn_reward(read, model.settings.default, cost=free)


def trial(model: Model) -> None:
    """Raise InvalidInput if a model cannot decide, learn or be stored; the model does not change."""
    try:
        twin = saving.loads(saving.dumps(model))
        for k in range(ROUNDS):
            rehearse(twin, k)
        saving.loads(saving.dumps(twin))
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise InvalidInput(f"{type(model.agent).__name__} cannot be served: {reason}") from error


def check_creation(creation: Creation) -> None:
    """Raise InvalidInput if an application cannot be created from this description."""
    trial(build_model(creation))


# ---------------------------------------------------------------------- models from outside


def exported(model: Model) -> bytes:
    """A model without the versions beside it."""
    alone = model.copy()
    alone.versions = {}
    return saving.dumps(alone)


def check_import(data: bytes, current: Model) -> None:
    """Raise InvalidInput unless ``data`` holds a model that can replace ``current``."""
    try:
        model = saving.loads(data)
        same = saving.dumps(model) == data
    except saving.LoadError as error:
        raise InvalidInput(f"the model cannot be loaded: {error}") from None
    except Exception as error:
        raise InvalidInput(f"the model cannot be stored again: {error}") from error
    if not isinstance(model, Model):
        raise InvalidInput(f"expected a model that this service exported, got a {type(model).__name__}")
    if not same:
        raise InvalidInput("the model is not as it was exported: stored again, it would have other bytes")
    if model.versions:
        raise InvalidInput("the model has other versions beside it: export one alone")
    model.settings = current.settings  # they are the application's, not the model's
    try:
        _compare(model, _others(current), "", fixed=True)
    except ValueError as error:
        raise InvalidInput(f"the model's {error}") from None
    trial(model)


def _others(current: Model) -> list[Model]:
    """Models to compare with: the application's own, and new ones in their first rounds, which show what grows."""
    fresh = Model(current.agent.clone(0), current.encoder, current.arms, current.rewards)
    fresh.settings = current.settings
    stored = [saving.dumps(current), saving.dumps(fresh)]
    with contextlib.suppress(ValueError, ArithmeticError):  # wishes of its own for the context
        for k in range(ROUNDS):
            rehearse(fresh, k)
            stored.append(saving.dumps(fresh))
    return [saving.loads(each) for each in stored]


def _compare(value: Any, known: Sequence[Any], where: str, fixed: bool = False) -> None:
    """Raise ValueError unless ``value`` has the kind of a ``known`` one, or equals it where ``fixed``."""
    given = [other for other in known if other is not None]
    if (value is None and len(given) < len(known)) or (not given and not fixed):  # what None may become is not known
        return
    alike = [other for other in given if type(other) is type(value)]
    if not alike:
        raise _unlike(value, known, where)
    if isinstance(value, saving.Saved):
        params, states = [other.params() for other in alike], [other._state() for other in alike]
        for name, part in value.params().items():
            free = name == "epsilon" and isinstance(value, Agent)
            _compare(part, [each[name] for each in params], f"{where}.{name}".lstrip("."), fixed and not free)
        for name, part in value._state().items():
            _compare(part, [each[name] for each in states], f"{where}.{name}".lstrip("."))
    elif isinstance(value, np.ndarray):
        _compare_arrays(value, alike, where, fixed)
    elif isinstance(value, dict):
        for key, part in value.items():
            same = [other[key] for other in alike if key in other]
            _compare(part, same or [v for other in alike for v in other.values()], f"{where}[{key!r}]", fixed)
    elif isinstance(value, (list, tuple)):
        if fixed and len(value) != len(alike[0]):
            raise _unlike(value, alike, where)
        for i, part in enumerate(value):
            placed = fixed or (isinstance(value, tuple) and all(len(other) == len(value) for other in alike))
            others = [other[i] for other in alike] if placed else [v for other in alike for v in other]
            _compare(part, others, f"{where}[{i}]", fixed)
    elif isinstance(value, np.random.Generator):
        _compare(value.bit_generator, [other.bit_generator for other in alike], where)
    elif hasattr(value, "tocsr"):
        if all(other.shape != value.shape or (fixed and (other != value).nnz) for other in alike):
            raise _unlike(value, alike, where)
    elif (fixed and value != alike[0]) or (isinstance(value, float) and not _finite(value, alike)):
        raise _unlike(value, alike, where)


def _compare_arrays(value: np.ndarray, alike: Sequence[np.ndarray], where: str, fixed: bool) -> None:
    same = [other for other in alike if (other.dtype, other.ndim) == (value.dtype, value.ndim)]
    if not same or (fixed and not np.array_equal(value, same[0])) or not _finite(value, same):
        raise _unlike(value, alike, where)
    sizes = [{other.shape[axis] for other in same} for axis in range(value.ndim)]
    steady = all(len(known) > 1 or size in known or known == {0} for size, known in zip(value.shape, sizes))
    square = all(
        value.shape[a] == value.shape[b] or any(other.shape[a] != other.shape[b] for other in same)
        for a, b in combinations(range(value.ndim), 2)
    )
    if not (steady and square):
        raise _unlike(value, alike, where)


def _finite(value: Any, alike: Sequence[Any]) -> bool:
    if isinstance(value, np.ndarray) and value.dtype.kind != "f":
        return True
    return bool(np.isfinite(value).all()) or not all(np.isfinite(other).all() for other in alike)


def _unlike(value: Any, known: Sequence[Any], where: str) -> ValueError:
    def in_words(it: Any) -> str:
        if isinstance(it, np.ndarray):
            return f"an array of {it.dtype} with shape {it.shape}"
        return type(it).__name__ if isinstance(it, saving.Saved) else f"{it!r:.80}"

    ours = in_words(known[0]) if known else "nothing"
    if in_words(value) == ours:
        return ValueError(f"{where} has other values than this application's")
    return ValueError(f"{where} is {in_words(value)}, but this application's is {ours}")
