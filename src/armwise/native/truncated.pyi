from collections.abc import Sequence

import numpy
import numpy.random
import numpy.typing

def decompose(
    gram: numpy.typing.NDArray[numpy.float64], b: numpy.typing.NDArray[numpy.float64]
) -> tuple[numpy.typing.NDArray[numpy.float64], int, numpy.typing.NDArray[numpy.float64]]: ...
def estimate(
    basis: numpy.typing.NDArray[numpy.float64],
    k: int,
    theta: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    scale: float,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def learn(
    gram: numpy.typing.NDArray[numpy.float64],
    b: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    x: numpy.typing.NDArray[numpy.float64],
    reward: float,
) -> None: ...
def play(
    gram: numpy.typing.NDArray[numpy.float64],
    b: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    scale: float,
    multiplier: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def play_stages(
    grams: Sequence[numpy.typing.NDArray[numpy.float64]],
    bs: Sequence[numpy.typing.NDArray[numpy.float64]],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    scale: float,
    multiplier: float,
    horizon: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
    pooled: int = 0,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
