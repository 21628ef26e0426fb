import numpy
import numpy.random
import numpy.typing

def advised(
    log_weights: numpy.typing.NDArray[numpy.float64], advice: numpy.typing.NDArray[numpy.float64], floor: float
) -> numpy.typing.NDArray[numpy.float64]: ...
def recentre(log_weights: numpy.typing.NDArray[numpy.float64]) -> None: ...
def exp4_learn(
    log_weights: numpy.typing.NDArray[numpy.float64],
    advice: numpy.typing.NDArray[numpy.float64],
    gamma: float,
    arm: int,
    probability: float,
    reward: float,
) -> None: ...
def exp4p_learn(
    log_weights: numpy.typing.NDArray[numpy.float64],
    advice: numpy.typing.NDArray[numpy.float64],
    p_min: float,
    bonus: float,
    p: numpy.typing.NDArray[numpy.float64],
    arm: int,
    probability: float,
    reward: float,
) -> None: ...
def exp4_play(
    log_weights: numpy.typing.NDArray[numpy.float64],
    gamma: float,
    advice: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def exp4p_play(
    log_weights: numpy.typing.NDArray[numpy.float64],
    p_min: float,
    bonus: float,
    advice: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def voted(
    log_weights: numpy.typing.NDArray[numpy.float64], votes: numpy.typing.NDArray[numpy.int64], p_min: float, K: int
) -> numpy.typing.NDArray[numpy.float64]: ...
def voted_learn(
    log_weights: numpy.typing.NDArray[numpy.float64],
    votes: numpy.typing.NDArray[numpy.int64],
    p_min: float,
    bonus: float,
    p: numpy.typing.NDArray[numpy.float64],
    arm: int,
    probability: float,
    reward: float,
) -> None: ...
def voted_play(
    log_weights: numpy.typing.NDArray[numpy.float64],
    p_min: float,
    bonus: float,
    votes: numpy.typing.NDArray[numpy.int64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
