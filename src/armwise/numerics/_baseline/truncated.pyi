import numpy
import numpy.typing

def estimate(
    basis: numpy.typing.NDArray[numpy.float64],
    k: int,
    theta: numpy.typing.NDArray[numpy.float64],
    X: numpy.typing.NDArray[numpy.float64],
    scale: float,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
