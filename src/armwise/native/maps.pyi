import numpy
import numpy.typing

def columns(
    rows: numpy.typing.NDArray[numpy.float64],
    numbers: numpy.typing.NDArray[numpy.int64],
    means: numpy.typing.NDArray[numpy.float64],
    inverses: numpy.typing.NDArray[numpy.float64],
    knots: numpy.typing.NDArray[numpy.float64],
    categories: numpy.typing.NDArray[numpy.int64],
    values: numpy.typing.NDArray[numpy.float64],
    limit: float,
) -> numpy.typing.NDArray[numpy.float64]: ...
def fourier(
    rows: numpy.typing.NDArray[numpy.float64],
    frequencies: numpy.typing.NDArray[numpy.float64],
    phases: numpy.typing.NDArray[numpy.float64],
    amplitude: float,
) -> numpy.typing.NDArray[numpy.float64]: ...
