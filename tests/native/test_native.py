"""The compiled extension: what its docstrings promise, in every variant, and the same bytes in all of them."""

import doctest
import inspect
import os
import platform
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import tests.native.variants_more  # noqa: F401 - registers its recipes
from armwise import native
from armwise.native import _processor
from tests.native.variants import RECIPES

MODULES = {name: import_module(f"armwise.native._{name}") for name in native.VARIANTS}
ROOMS = sorted(name for name, value in vars(MODULES["baseline"]).items() if isinstance(value, ModuleType))


def kernels(room: ModuleType) -> dict[str, object]:
    """Functions and classes of a submodule, and the methods of its classes."""
    found = {
        name: value for name, value in vars(room).items()
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception))
    }  # fmt: skip
    for name, value in list(found.items()):
        if inspect.isclass(value):
            found |= {f"{name}.{m}": f for m, f in vars(value).items() if callable(f) and not m.startswith("_")}
    return found


def test_every_variant_of_the_architecture_is_here_to_be_compared():
    """make run builds one alone, make setup all of them: without both, nothing below would compare anything."""
    expected = ["baseline", "v3"] if platform.machine() in ("x86_64", "AMD64") else ["baseline"]
    taken = os.environ.get("ARMWISE_SIMD") or _processor.best_variant()
    assert list(native.VARIANTS) == expected and taken == native.VARIANT
    assert len(ROOMS) >= 16


@pytest.mark.parametrize("variant", MODULES)
@pytest.mark.parametrize("room", ROOMS)
def test_the_examples_of_the_docstrings(variant, room):
    module = getattr(MODULES[variant], room)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for name, kernel in kernels(module).items():
        globs = {**vars(module), "np": np}
        runner.run(doctest.DocTestParser().get_doctest(kernel.__doc__ or "", globs, f"{room}.{name}", None, None))
    assert runner.tries > 0 and runner.failures == 0


def test_every_kernel_has_a_recipe():
    missing = [
        f"{room}.{name}" for room in ROOMS for name in kernels(getattr(MODULES["baseline"], room))
        if f"{room}.{name}" not in RECIPES
    ]  # fmt: skip
    assert not missing, f"add recipes to variants.py: {missing}"


def as_bytes(result) -> bytes:
    if isinstance(result, tuple | list):
        return b"".join(as_bytes(part) for part in result)
    return np.ascontiguousarray(result).tobytes() + str(getattr(result, "shape", type(result))).encode()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_variant_gives_the_same_bytes(recipe):
    results = {name: as_bytes(RECIPES[recipe](module)) for name, module in MODULES.items()}
    assert len(results["baseline"]) > 0
    assert len(set(results.values())) == 1, f"{recipe} differs between {', '.join(results)}"


@pytest.mark.parametrize("variant", MODULES)
def test_the_environment_forces_a_variant(variant):
    code = "from armwise import native; from armwise.native.choice import draw; print(native.VARIANT, draw.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "ARMWISE_SIMD": variant}, capture_output=True, text=True
    )
    assert done.stdout.split() == [variant, f"armwise.native._{variant}.choice"], done.stderr


def test_an_unknown_variant_is_refused():
    done = subprocess.run(
        [sys.executable, "-c", "import armwise.native.choice"],
        env={**os.environ, "ARMWISE_SIMD": "v9"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and "ARMWISE_SIMD is 'v9'; this build of armwise has baseline" in done.stderr


ONLY = """
import importlib.util, sys, types
find = importlib.util.find_spec
def hidden(name, *package):
    return None if name == "armwise.native._{hidden}" else find(name, *package)
importlib.util.find_spec = hidden
_processor = types.ModuleType("_processor")
_processor.best_variant = lambda: "{best}"
sys.modules["armwise.native._processor"] = _processor
from armwise import native
assert "armwise.native._{hidden}" not in sys.modules
print(native.VARIANT, *native.VARIANTS)
"""


@pytest.mark.skipif(len(MODULES) < 2, reason="this architecture has one variant")
@pytest.mark.parametrize(
    ("hidden", "best", "asked", "answer"),
    [
        ("baseline", "v3", "", "v3 v3"),
        ("v3", "v3", "", "baseline baseline"),
        (
            "baseline",
            "baseline",
            "",
            "this processor runs 'baseline'; this build of armwise has v3 (in a clone, make native",
        ),
        (
            "baseline",
            "v3",
            "baseline",
            "ARMWISE_SIMD is 'baseline'; this build of armwise has v3 (in a clone, make native",
        ),
        ("v3", "v3", "v3", "ARMWISE_SIMD is 'v3'; this build of armwise has baseline (in a clone, make native"),
    ],
)
def test_where_one_variant_is_built(hidden, best, asked, answer):
    """After make run alone. What the processor runs is taken, or the message says what to do; no other is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", ONLY.format(hidden=hidden, best=best)],
        env={**os.environ, "ARMWISE_SIMD": asked}, capture_output=True, text=True,
    )  # fmt: skip
    assert answer in (done.stdout if done.returncode == 0 else done.stderr)


@pytest.mark.parametrize("variant", MODULES)
def test_a_nan_is_never_an_index(variant):
    module = MODULES[variant]
    for scores in ([np.nan, 1.0], [1.0, np.nan], [np.nan]):
        for kernel in (module.choice.first_best, module.choice.best_arms, module.choice.tied_probabilities):
            with pytest.raises(ValueError, match="NaN"):
                kernel(np.array(scores))
    assert module.choice.draw(np.array([np.nan, np.nan]), 0.5) == 0
    with pytest.raises(ValueError, match="empty"):
        module.choice.best_arms(np.empty(0))


@pytest.mark.parametrize("variant", MODULES)
def test_an_index_from_outside_is_checked(variant):
    ridge, kary = MODULES[variant].ridge, MODULES[variant].kary
    models = np.zeros((1, 9, 8))
    models[0, 0, 0] = 1.0
    one, many = models, np.tile(models, (2, 1, 1))
    for arm in (-1, 2, 10**30, True, 1.0, None):  # nothing is learnt; the agent's careful path says what is wrong
        assert not ridge.Optimist(one, 1, False, True, 0.0, 1.0, 0.1, 0.0, 1.0).learn(np.ones((2, 1)), (arm, 0.5), 1.0)
        assert not ridge.Optimist(many, 1, True, True, 0.0, 1.0, 0.1, 0.0, 1.0).learn(np.ones(1), (arm, 0.5), 1.0)
    for context, choice, reward in (
        (np.ones((2, 9)), (0, 0.5), 1.0), (np.ones((2, 1)), (0,), 1.0), (np.ones((2, 1)), (0, 1.5), 1.0),
        (np.ones((2, 1)), (0, np.nan), 1.0), (np.ones((2, 1)), (0, 0.5), np.nan), (np.ones((2, 1)), (0, 0.5), 10**400),
    ):  # fmt: skip
        assert not ridge.Optimist(one, 1, False, True, 0.0, 1.0, 0.1, 0.0, 1.0).learn(context, choice, reward)
    assert not one[0, 8].any() and not many[:, 8].any()
    for row in (-1, 2):
        with pytest.raises(IndexError):
            ridge.revise(models, 0, np.ones((2, 1)), row, 1.0)
    with pytest.raises(ValueError, match="dimension"):
        ridge.Optimist(models, 9, False, True, 0.0, 1.0, 0.1, 0.0, 1.0)
    with pytest.raises(IndexError):
        kary.exp3_learn(np.zeros(2), 0.1, 2, 0.5, 1.0)
    with pytest.raises(TypeError):
        ridge.update(models[0].astype(np.float32), np.ones(1), 1.0)  # a copy would lose what is learnt


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_a_block_that_is_refused_leaves_the_models_as_they_were(discount):
    """The row overflows only once the block has learnt from the rounds before it."""
    models, grams, moments = np.zeros((3, 9, 8)), np.tile(np.eye(2), (3, 1, 1)), np.zeros((9, 2))
    models[:, range(2), range(2)] = 1.0
    contexts = np.random.default_rng(1).normal(size=(50, 1, 2))
    contexts[40] = 1e200
    before = models.copy(), grams.copy(), moments.copy()
    with pytest.raises(ValueError, match="overflow"):
        native.ridge.play_optimistic(
            models,
            grams,
            moments,
            contexts,
            np.ones((50, 3)),
            1.0,
            discount,
            1.0,
            0.0,
            1.0,
            0.0,
            1.0,
            np.random.default_rng(1),
        )
    for now, then in zip((models, grams, moments), before):
        assert now.tobytes() == then.tobytes()
