import numpy
import numpy.random
import numpy.typing

def estimates(
    factors: numpy.typing.NDArray[numpy.float64],
    thetas: numpy.typing.NDArray[numpy.float64],
    ends: numpy.typing.NDArray[numpy.int64],
    prior: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    level: int,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def scores(
    factors: numpy.typing.NDArray[numpy.float64],
    thetas: numpy.typing.NDArray[numpy.float64],
    ends: numpy.typing.NDArray[numpy.int64],
    prior: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def level(state: numpy.typing.NDArray[numpy.float64], prefixes: int, models: int) -> tuple[int, float, float]: ...
def learn_rows(
    factors: numpy.typing.NDArray[numpy.float64],
    thetas: numpy.typing.NDArray[numpy.float64],
    ends: numpy.typing.NDArray[numpy.int64],
    prior: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    models: numpy.typing.NDArray[numpy.int64],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def learn(
    factors: numpy.typing.NDArray[numpy.float64],
    thetas: numpy.typing.NDArray[numpy.float64],
    ends: numpy.typing.NDArray[numpy.int64],
    prior: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.float64],
    x: numpy.typing.NDArray[numpy.float64],
    model: int,
    reward: float,
) -> None: ...
def play(
    factors: numpy.typing.NDArray[numpy.float64],
    thetas: numpy.typing.NDArray[numpy.float64],
    ends: numpy.typing.NDArray[numpy.int64],
    prior: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    center: float,
    unit: float,
    floor: float,
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
