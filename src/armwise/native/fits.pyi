import numpy
import numpy.typing

def explained(models: numpy.typing.NDArray[numpy.float64], d: int) -> tuple[float, float, float, float, int]: ...
