import numpy
import numpy.random
import numpy.typing

class NotPositiveDefinite(ValueError):
    pass

def update(
    model: numpy.typing.NDArray[numpy.float64], x: numpy.typing.NDArray[numpy.float64], reward: float
) -> None: ...
def update_rows(
    model: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def log_det(model: numpy.typing.NDArray[numpy.float64], d: int) -> float: ...
def refit(
    model: numpy.typing.NDArray[numpy.float64],
    A: numpy.typing.NDArray[numpy.float64],
    b: numpy.typing.NDArray[numpy.float64],
    rows: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def revise(
    models: numpy.typing.NDArray[numpy.float64], m: int, X: numpy.typing.NDArray[numpy.float64], row: int, change: float
) -> None: ...
def learn(
    models: numpy.typing.NDArray[numpy.float64],
    grams: numpy.typing.NDArray[numpy.float64],
    moments: numpy.typing.NDArray[numpy.float64],
    m: int,
    X: numpy.typing.NDArray[numpy.float64],
    row: int,
    reward: float,
    lam: float,
    discount: float,
) -> None: ...
def estimate_into(
    model: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    widths: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def estimate_all(
    models: numpy.typing.NDArray[numpy.float64], x: numpy.typing.NDArray[numpy.float64]
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def optimistic(
    models: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    lam: float,
    alpha: float,
    noise: float,
    delta: float,
    extra: float = 0.0,
    beyond: float = 1.0,
) -> numpy.typing.NDArray[numpy.float64]: ...
def widen(
    means: numpy.typing.NDArray[numpy.float64],
    widths: numpy.typing.NDArray[numpy.float64],
    alpha: float,
    extra: float,
    beyond: float,
) -> numpy.typing.NDArray[numpy.float64]: ...

class Optimist:
    def __init__(
        self,
        models: object,
        d: int,
        per_arm: bool,
        learns: bool,
        centre: float,
        lam: float,
        alpha: float,
        noise: float,
        delta: float,
        extra: float = 0.0,
        beyond: float = 1.0,
    ) -> None: ...
    def choose(self, context: object) -> int: ...
    def learn(self, context: object, choice: tuple[object, ...], reward: object) -> bool: ...
    def __reduce__(self) -> tuple[object, ...]: ...

def play_optimistic(
    models: numpy.typing.NDArray[numpy.float64],
    grams: numpy.typing.NDArray[numpy.float64],
    moments: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    lam: float,
    discount: float,
    alpha: float,
    noise: float,
    delta: float,
    extra: float,
    beyond: float,
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def choose_many(
    models: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    lam: float,
    alpha: float,
    noise: float,
    delta: float,
    extra: float,
    beyond: float,
    rng: numpy.random.Generator,
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]: ...
def learn_many(
    models: numpy.typing.NDArray[numpy.float64],
    grams: numpy.typing.NDArray[numpy.float64],
    moments: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    arms: numpy.typing.NDArray[numpy.int64],
    rewards: numpy.typing.NDArray[numpy.float64],
    lam: float,
    discount: float,
) -> None: ...
