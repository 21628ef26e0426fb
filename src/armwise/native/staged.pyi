from collections.abc import Sequence

import numpy
import numpy.random
import numpy.typing

def pooled(
    means: numpy.typing.NDArray[numpy.float64], widths: numpy.typing.NDArray[numpy.float64], horizon: float, stages: int
) -> tuple[numpy.typing.NDArray[numpy.int64], int]: ...
def play(
    models: Sequence[numpy.typing.NDArray[numpy.float64]],
    multiplier: float,
    horizon: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
    pooled: int = 0,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
