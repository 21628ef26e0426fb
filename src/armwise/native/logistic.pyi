import numpy
import numpy.random
import numpy.typing

def sparse_rows(
    X: numpy.typing.NDArray[numpy.float64],
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]
]: ...
def compete(
    posterior: numpy.typing.NDArray[numpy.float64],
    indptr: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
    place: numpy.typing.NDArray[numpy.int64],
    data: numpy.typing.NDArray[numpy.float64],
    Z: numpy.typing.NDArray[numpy.float64],
    u: numpy.typing.NDArray[numpy.float64],
) -> numpy.typing.NDArray[numpy.float64]: ...
def score_posterior(
    posterior: numpy.typing.NDArray[numpy.float64],
    indptr: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
    place: numpy.typing.NDArray[numpy.int64],
    data: numpy.typing.NDArray[numpy.float64],
    scale: float,
) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
def fit(
    posterior: numpy.typing.NDArray[numpy.float64],
    indptr: numpy.typing.NDArray[numpy.int64],
    found: numpy.typing.NDArray[numpy.int64],
    place: numpy.typing.NDArray[numpy.int64],
    data: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
def play(
    posterior: numpy.typing.NDArray[numpy.float64],
    indptr: numpy.typing.NDArray[numpy.int64],
    indices: numpy.typing.NDArray[numpy.int64],
    data: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    scale: float,
    draws: int,
    learns: bool,
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def play_dense(
    posterior: numpy.typing.NDArray[numpy.float64],
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    scale: float,
    draws: int,
    learns: bool,
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
