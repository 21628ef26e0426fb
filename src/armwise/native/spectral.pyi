import numpy
import numpy.random
import numpy.typing

def refresh(
    Q: numpy.typing.NDArray[numpy.float64],
    model: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def learn(
    Q: numpy.typing.NDArray[numpy.float64],
    model: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    age: int,
    arm: int,
    reward: float,
) -> int: ...
def scores(
    means: numpy.typing.NDArray[numpy.float64], squares: numpy.typing.NDArray[numpy.float64], c: float
) -> numpy.typing.NDArray[numpy.float64]: ...
def play(
    Q: numpy.typing.NDArray[numpy.float64],
    model: numpy.typing.NDArray[numpy.float64],
    means: numpy.typing.NDArray[numpy.float64],
    squares: numpy.typing.NDArray[numpy.float64],
    age: int,
    c: float,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], int
]: ...
