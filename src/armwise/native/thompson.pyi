import numpy
import numpy.random
import numpy.typing

MAX_EXACT_ARMS: int = 512

def scale(t: int, v: float, coefficient: float, delta: float) -> float: ...
def posterior_scores(
    models: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    v: float,
    z: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def compete(
    models: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    v: float,
    extra: float,
    beyond: float,
    most: float,
    Z: numpy.typing.NDArray[numpy.float64],
    u: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def score_posterior(
    models: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    v: float,
    extra: float,
    beyond: float,
    most: float,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def play(
    models: numpy.typing.NDArray[numpy.float64],
    grams: numpy.typing.NDArray[numpy.float64],
    moments: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    lam: float,
    discount: float,
    first: int,
    v: float,
    coefficient: float,
    delta: float,
    extra: float,
    beyond: float,
    most: float,
    draws: int,
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def choose_many(
    models: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    v: float,
    extra: float,
    beyond: float,
    most: float,
    rng: numpy.random.Generator,
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]: ...
