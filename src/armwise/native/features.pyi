import numpy
import numpy.typing

SPAN: float = 3.0

def scan(text: bytes) -> tuple[int, int]: ...
def place(names: numpy.typing.NDArray[numpy.uint64], name: int) -> int: ...
def scaled(value: float, mean: float, deviation: float) -> float: ...
def varied(
    names: numpy.typing.NDArray[numpy.uint64],
    counts: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.uint64],
) -> tuple[
    numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def welford(
    names: numpy.typing.NDArray[numpy.uint64],
    counts: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    table: numpy.typing.NDArray[numpy.uint64],
    strangers: bool,
) -> bool: ...
def mix(c: int, a: int) -> int: ...
def cross(
    words: numpy.typing.NDArray[numpy.uint64],
    names: numpy.typing.NDArray[numpy.uint64],
    means: numpy.typing.NDArray[numpy.float64],
    deviations: numpy.typing.NDArray[numpy.float64],
    dim: int,
    interactions: bool,
    alone: bool,
    one: int,
) -> numpy.typing.NDArray[numpy.float64]: ...
