import numpy
import numpy.random
import numpy.typing

MIN_NOVELTY: float = 1e-06

MIN_SWAP_RATIO: float = 2.0

def solve_upper(U: numpy.typing.NDArray[numpy.float64], n: int, V: numpy.typing.NDArray[numpy.float64]) -> None: ...
def features(
    L: numpy.typing.NDArray[numpy.float64],
    n: int,
    V: numpy.typing.NDArray[numpy.float64],
    prior: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def budget_estimate(
    L: numpy.typing.NDArray[numpy.float64],
    U: numpy.typing.NDArray[numpy.float64],
    c: numpy.typing.NDArray[numpy.float64],
    n: int,
    V: numpy.typing.NDArray[numpy.float64],
    prior: numpy.typing.NDArray[numpy.float64],
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def absorb(
    U: numpy.typing.NDArray[numpy.float64],
    c: numpy.typing.NDArray[numpy.float64],
    n: int,
    p: numpy.typing.NDArray[numpy.float64],
    rho: float,
) -> None: ...
def remove(
    Z: numpy.typing.NDArray[numpy.float64],
    L: numpy.typing.NDArray[numpy.float64],
    U: numpy.typing.NDArray[numpy.float64],
    c: numpy.typing.NDArray[numpy.float64],
    Q: numpy.typing.NDArray[numpy.float64],
    n: int,
    i: int,
) -> None: ...
def novelty(L: numpy.typing.NDArray[numpy.float64], n: int, i: int) -> float: ...
def budget_append(
    Z: numpy.typing.NDArray[numpy.float64],
    L: numpy.typing.NDArray[numpy.float64],
    U: numpy.typing.NDArray[numpy.float64],
    c: numpy.typing.NDArray[numpy.float64],
    Q: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.int64],
    x: numpy.typing.NDArray[numpy.float64],
    row: numpy.typing.NDArray[numpy.float64],
    prior: float,
    noise: float,
    reward: float,
) -> float: ...
def budget_play(
    program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    Z: numpy.typing.NDArray[numpy.float64],
    L: numpy.typing.NDArray[numpy.float64],
    U: numpy.typing.NDArray[numpy.float64],
    c: numpy.typing.NDArray[numpy.float64],
    Q: numpy.typing.NDArray[numpy.float64],
    state: numpy.typing.NDArray[numpy.int64],
    noise: float,
    width: tuple[int, float, float],
    t: int,
    gain: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
    arms: numpy.typing.NDArray[numpy.int64],
    probabilities: numpy.typing.NDArray[numpy.float64],
    got: numpy.typing.NDArray[numpy.float64],
) -> tuple[int, float]: ...
