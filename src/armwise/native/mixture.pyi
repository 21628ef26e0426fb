import numpy
import numpy.typing

def forms(
    kernel: numpy.typing.NDArray[numpy.float64],
    roots: numpy.typing.NDArray[numpy.float64],
    y: numpy.typing.NDArray[numpy.float64],
    noises: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def condition(
    kernel: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    sums: numpy.typing.NDArray[numpy.float64],
    noise: float,
    variance: float,
    asked: int,
    mean: numpy.typing.NDArray[numpy.float64],
    covariance: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def learn(
    means: numpy.typing.NDArray[numpy.float64],
    covariances: numpy.typing.NDArray[numpy.float64],
    noises: numpy.typing.NDArray[numpy.float64],
    i: int,
    reward: float,
) -> None: ...
def scores(
    means: numpy.typing.NDArray[numpy.float64],
    covariances: numpy.typing.NDArray[numpy.float64],
    rows: numpy.typing.NDArray[numpy.int64],
    behind: numpy.typing.NDArray[numpy.float64],
    ahead: float,
) -> numpy.typing.NDArray[numpy.float64]: ...
