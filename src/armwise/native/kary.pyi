import numpy
import numpy.random
import numpy.typing

def exp3_learn(
    log_weights: numpy.typing.NDArray[numpy.float64], gamma: float, arm: int, probability: float, reward: float
) -> None: ...
def exp3_play(
    log_weights: numpy.typing.NDArray[numpy.float64],
    gamma: float,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def ucb1_scores(
    totals: numpy.typing.NDArray[numpy.float64], counts: numpy.typing.NDArray[numpy.float64], alpha: float
) -> numpy.typing.NDArray[numpy.float64]: ...
def ucb1_play(
    totals: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    alpha: float,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def greedy_mixed(
    totals: numpy.typing.NDArray[numpy.float64], counts: numpy.typing.NDArray[numpy.float64], epsilon: float
) -> numpy.typing.NDArray[numpy.float64]: ...
def decayed(epsilon: float, decay: float, n_learnt: int) -> float: ...
def greedy_play(
    totals: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    epsilon: float,
    decay: float,
    n_learnt: int,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def beta_winner(
    successes: numpy.typing.NDArray[numpy.float64],
    failures: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> int: ...
def beta_play(
    successes: numpy.typing.NDArray[numpy.float64],
    failures: numpy.typing.NDArray[numpy.float64],
    exact: bool,
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def arm_probability(
    q: numpy.typing.NDArray[numpy.float64], table: numpy.typing.NDArray[numpy.float64], arm: int
) -> float: ...
def exp3_policies(
    log_weights: numpy.typing.NDArray[numpy.float64],
    gamma: float,
    rng: numpy.random.Generator,
    tables: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    outer: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def ucb1_policies(
    totals: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    alpha: float,
    rng: numpy.random.Generator,
    tables: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    outer: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def greedy_policies(
    totals: numpy.typing.NDArray[numpy.float64],
    counts: numpy.typing.NDArray[numpy.float64],
    epsilon: float,
    decay: float,
    n_learnt: int,
    rng: numpy.random.Generator,
    tables: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    outer: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
def beta_policies(
    successes: numpy.typing.NDArray[numpy.float64],
    failures: numpy.typing.NDArray[numpy.float64],
    exact: bool,
    rng: numpy.random.Generator,
    tables: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    outer: numpy.random.Generator,
) -> tuple[
    numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]
]: ...
