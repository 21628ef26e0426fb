"""The interpreter lock is given away in long work, and kept in short work, of the same kernels."""

import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

from armwise import native

MODULES = {name: import_module(f"armwise.native._{name}") for name in native.VARIANTS}
NONE = (np.empty((0, 0, 0)), np.empty((0, 0)))  # no statistics beside the models
Call = Callable[[], object]


@pytest.fixture(autouse=True)
def _nobody_asks_for_the_lock():
    """A thread that waits for the lock asks for it after the interval: then only who gives it away loses it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(before)


def gives_it_away(call: Call) -> bool:
    """Whether another thread runs between the beginning of the call and its end."""
    began, ended = [], []

    def work() -> None:
        began.append(True)
        call()
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    while not began:
        time.sleep(1e-5)
    seen = not ended
    thread.join()
    return seen


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def fresh(d: int) -> np.ndarray:
    padded = -(-d // 8) * 8
    models = np.zeros((1, padded + 1, padded))
    models[0, range(d), range(d)] = 1.0
    return models


def optimistic(module, T, K, d) -> Call:
    models = fresh(d)
    X, rewards, rng = generator().normal(size=(T, K, d)), generator().random((T, K)), generator()
    return lambda: module.ridge.play_optimistic(models, *NONE, X, rewards, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, rng)


def exponential(module, T, K, d) -> Call:
    state, rewards, rng = np.zeros(K), generator().random((T, K)), generator()
    return lambda: module.kary.exp3_play(state, 0.1, rewards, rng)


def one_decision(module, T, K, d) -> Call:
    models = fresh(d)
    optimist, X = (
        module.ridge.Optimist(models, d, False, True, 0.0, 1.0, 1.0, 0.0, 1.0),
        generator().normal(size=(K, d)),
    )
    return lambda: optimist.choose(X)


def crossed(module, T, K, d) -> Call:
    rbf = np.array([[module.kernels.RBF, 0, -1]]), np.array([[1.0, 0.0]])
    X = generator().normal(size=(K, d))
    return lambda: module.kernels.cross(rbf, X, X)


# Each kernel at a size of microseconds, and at one of tens of milliseconds.
KERNELS = {
    "play of a ridge": (optimistic, (3, 5, 8), (3000, 50, 40)),
    "play of Exp3": (exponential, (10, 5, 0), (100_000, 20, 0)),
    "choose": (one_decision, (1, 10, 20), (1, 200_000, 20)),
    "kernel functions": (crossed, (0, 10, 5), (0, 2500, 5)),
}


@pytest.mark.parametrize("variant", MODULES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_short_work_keeps_the_lock(kernel, variant):
    """A failure means that a decision of microseconds may wait for the lock for as long as other threads please."""
    make, short, _ = KERNELS[kernel]
    call = make(MODULES[variant], *short)
    call()
    assert not any(gives_it_away(call) for _ in range(50))


@pytest.mark.parametrize("variant", MODULES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_long_work_gives_the_lock_away(kernel, variant):
    """A failure means that two threads that play take turns. On a busy machine the other thread may come too late to
    see it, so one time of twenty is enough: who keeps the lock is not seen once."""
    make, _, long = KERNELS[kernel]
    call = make(MODULES[variant], *long)
    assert any(gives_it_away(call) for _ in range(20))
