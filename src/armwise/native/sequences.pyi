import numpy
import numpy.typing

STATE: int = 7

def advance_lower(
    state: numpy.typing.NDArray[numpy.float64],
    x: numpy.typing.NDArray[numpy.float64],
    log_inverse_delta: float,
    scale: float,
    bounds: numpy.typing.NDArray[numpy.float64],
) -> None: ...
