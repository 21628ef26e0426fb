import numpy
import numpy.random
import numpy.typing

def inverse_gap(means: numpy.typing.NDArray[numpy.float64], gamma: float) -> numpy.typing.NDArray[numpy.float64]: ...
def untried(
    models: numpy.typing.NDArray[numpy.float64], d: int
) -> tuple[bool, numpy.typing.NDArray[numpy.float64]]: ...
def estimates(
    models: numpy.typing.NDArray[numpy.float64], X: numpy.typing.NDArray[numpy.float64]
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def squares(X: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]: ...

MIN_RIDGE_SHARE: float = 0.999999999

def cut(
    means: numpy.typing.NDArray[numpy.float64],
    widths: numpy.typing.NDArray[numpy.float64],
    radius: float,
    extra: float,
    beyond: float,
    squares: numpy.typing.NDArray[numpy.float64],
    lam: float,
    least: float,
    most: float,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def confident(
    low: numpy.typing.NDArray[numpy.float64], high: numpy.typing.NDArray[numpy.float64], elimination: bool
) -> numpy.typing.NDArray[numpy.float64]: ...
def gap_scale(t: int, scale: float, exponent: float) -> float: ...
def confidence(t: int, K: int, mellowness: float) -> float: ...
def squarecb_play(
    models: numpy.typing.NDArray[numpy.float64],
    extra: float,
    beyond: float,
    scale: float,
    exponent: float,
    t: int,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def regcb_play(
    models: numpy.typing.NDArray[numpy.float64],
    lam: float,
    mellowness: float,
    extra: float,
    beyond: float,
    least: float,
    most: float,
    elimination: bool,
    t: int,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def greedy_play(
    models: numpy.typing.NDArray[numpy.float64],
    grams: numpy.typing.NDArray[numpy.float64],
    moments: numpy.typing.NDArray[numpy.float64],
    lam: float,
    discount: float,
    epsilon: float,
    decay: float,
    n_learnt: int,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def squarecb_choose_many(
    models: numpy.typing.NDArray[numpy.float64],
    extra: float,
    beyond: float,
    gamma: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]: ...
def regcb_choose_many(
    models: numpy.typing.NDArray[numpy.float64],
    lam: float,
    mellowness: float,
    extra: float,
    beyond: float,
    least: float,
    most: float,
    elimination: bool,
    t: int,
    contexts: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]: ...
