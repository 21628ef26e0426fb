import numpy
import numpy.typing

def explained(
    W: numpy.typing.NDArray[numpy.float64], theta: numpy.typing.NDArray[numpy.float64]
) -> tuple[float, float]: ...
