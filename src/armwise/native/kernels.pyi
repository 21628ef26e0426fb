import numpy
import numpy.typing

CONSTANT: int = 0

LINEAR: int = 1

POLYNOMIAL: int = 2

RBF: int = 3

MATERN12: int = 4

MATERN32: int = 5

MATERN52: int = 6

ADD: int = 7

MULTIPLY: int = 8

def cross(
    program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    X: numpy.typing.NDArray[numpy.float64],
    Z: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def diagonal(
    program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    X: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
