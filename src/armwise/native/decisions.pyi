import numpy
import numpy.typing

def numeric(context: bytes, arms: bytes, K: int) -> bytes: ...
def take_numbers(
    context: bytes,
    arms: bytes,
    K: int,
    names: numpy.typing.NDArray[numpy.uint64],
    counts: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
) -> bool: ...
def register_decisions(
    decisions: list[tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes]],
    first: int,
    names: numpy.typing.NDArray[numpy.uint64],
    counts: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    models: numpy.typing.NDArray[numpy.float64],
    dim: int,
) -> tuple[int, int, numpy.typing.NDArray[numpy.float64]]: ...
def decide_optimistic(
    context: bytes,
    arms: bytes,
    K: int,
    names: numpy.typing.NDArray[numpy.uint64],
    counts: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    interactions: bool,
    one: int,
    models: numpy.typing.NDArray[numpy.float64],
    dim: int,
    lam: float,
    alpha: float,
    noise: float,
    delta: float,
    extra: float,
    beyond: float,
    epsilon: float,
    u: float,
) -> tuple[int, numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], bytes]: ...
def learn_beside(
    decisions: list[tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes]],
    first: int,
    models: numpy.typing.NDArray[numpy.float64],
    crossed: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    due: float,
    one: int,
) -> int: ...
def revise_beside(
    decision: tuple[bytes, bytes, int, numpy.typing.NDArray[numpy.float64], float, int, bytes],
    squares: float,
    models: numpy.typing.NDArray[numpy.float64],
    crossed: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    one: int,
) -> None: ...
def surplus(
    models: numpy.typing.NDArray[numpy.float64],
    crossed: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
    variance: float,
) -> float: ...
def predicted(models: numpy.typing.NDArray[numpy.float64], row: numpy.typing.NDArray[numpy.float64]) -> float: ...
