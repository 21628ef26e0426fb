import numpy
import numpy.typing

def largest(
    u: numpy.typing.NDArray[numpy.float64],
    t: float,
    s: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    enough: float,
) -> float: ...
