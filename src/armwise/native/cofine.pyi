import numpy
import numpy.random
import numpy.typing

def estimate(
    fine: numpy.typing.NDArray[numpy.float64],
    coarse: numpy.typing.NDArray[numpy.float64],
    subspace: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    lam: float,
    X: numpy.typing.NDArray[numpy.float64],
) -> tuple[
    numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def learn(
    fine: numpy.typing.NDArray[numpy.float64],
    coarse: numpy.typing.NDArray[numpy.float64],
    subspace: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    x: numpy.typing.NDArray[numpy.float64],
    reward: float,
) -> None: ...
def play(
    fine: numpy.typing.NDArray[numpy.float64],
    coarse: numpy.typing.NDArray[numpy.float64],
    subspace: numpy.typing.NDArray[numpy.float64],
    prior_mean: numpy.typing.NDArray[numpy.float64],
    lam: float,
    scale: float,
    alpha: float,
    alpha_coarse: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
