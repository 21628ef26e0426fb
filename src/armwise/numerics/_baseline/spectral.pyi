import numpy
import numpy.random
import numpy.typing

def node_widths(model: numpy.typing.NDArray[numpy.float64], widths: numpy.typing.NDArray[numpy.float64]) -> None: ...
def learn(
    model: numpy.typing.NDArray[numpy.float64], widths: numpy.typing.NDArray[numpy.float64], arm: int, reward: float
) -> None: ...
def scores(
    model: numpy.typing.NDArray[numpy.float64], widths: numpy.typing.NDArray[numpy.float64], c: float
) -> numpy.typing.NDArray[numpy.float64]: ...
def play(
    model: numpy.typing.NDArray[numpy.float64],
    widths: numpy.typing.NDArray[numpy.float64],
    c: float,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
