from collections.abc import Sequence

import numpy
import numpy.random
import numpy.typing

JITTER: float = 1e-12

MAX_ROUNDING: float = 0.0001

MAX_JOINT_ROWS: int = 1024

FIXED: int = 0

FINITE_ARMS: int = 1

AGNOSTIC: int = 2

STAGED: int = 3

class Factor:
    def __init__(self, dim: int, noise: float) -> None: ...
    @staticmethod
    def restored(
        noise: float,
        points: numpy.typing.NDArray[numpy.float64],
        L: numpy.typing.NDArray[numpy.float64],
        c: numpy.typing.NDArray[numpy.float64],
        sums: numpy.typing.NDArray[numpy.float64],
        prior: numpy.typing.NDArray[numpy.float64],
        counts: numpy.typing.NDArray[numpy.int64],
        offered: numpy.typing.NDArray[numpy.float64],
        gain: float,
        saved: float,
        age: int,
    ) -> Factor: ...
    def __len__(self) -> int: ...
    @property
    def gain(self) -> float: ...
    @gain.setter
    def gain(self, arg: float, /) -> None: ...
    @property
    def saved(self) -> float: ...
    @property
    def age(self) -> int: ...
    @property
    def points(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def offered(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def L(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def c(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def sums(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def prior(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def counts(self) -> numpy.typing.NDArray[numpy.int64]: ...
    @property
    def due(self) -> bool: ...
    @property
    def stale(self) -> bool: ...
    def cross(
        self,
        program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
        X: numpy.typing.NDArray[numpy.float64],
    ) -> numpy.typing.NDArray[numpy.float64]: ...
    def estimate(
        self, V: numpy.typing.NDArray[numpy.float64], prior: numpy.typing.NDArray[numpy.float64]
    ) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]: ...
    def learn(
        self,
        x: numpy.typing.NDArray[numpy.float64],
        row: numpy.typing.NDArray[numpy.float64],
        prior: float,
        reward: float,
        count: int = 1,
    ) -> float: ...
    def refresh(self, gram: numpy.typing.NDArray[numpy.float64]) -> None: ...
    def offer(self, X: numpy.typing.NDArray[numpy.float64]) -> None: ...
    def play(
        self,
        program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
        width: tuple[int, float, float],
        t: int,
        contexts: numpy.typing.NDArray[numpy.float64],
        rewards: numpy.typing.NDArray[numpy.float64],
        rng: numpy.random.Generator,
        arms: numpy.typing.NDArray[numpy.int64],
        probabilities: numpy.typing.NDArray[numpy.float64],
        got: numpy.typing.NDArray[numpy.float64],
    ) -> int: ...

class Joint:
    def __init__(
        self, points: numpy.typing.NDArray[numpy.float64], gram: numpy.typing.NDArray[numpy.float64], noise: float
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def gain(self) -> float: ...
    @gain.setter
    def gain(self, arg: float, /) -> None: ...
    @property
    def age(self) -> int: ...
    @property
    def points(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def prior(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def cov(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def mean(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def sums(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def noises(self) -> numpy.typing.NDArray[numpy.float64]: ...
    @property
    def counts(self) -> numpy.typing.NDArray[numpy.int64]: ...
    def restore(
        self,
        counts: numpy.typing.NDArray[numpy.int64],
        sums: numpy.typing.NDArray[numpy.float64],
        mean: numpy.typing.NDArray[numpy.float64],
        cov: numpy.typing.NDArray[numpy.float64],
        gain: float,
        age: int,
    ) -> None: ...
    def recall(self, counts: numpy.typing.NDArray[numpy.int64], sums: numpy.typing.NDArray[numpy.float64]) -> None: ...
    def find(self, X: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.int64]: ...
    def estimate(
        self, X: numpy.typing.NDArray[numpy.float64]
    ) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]] | None: ...
    def learn(self, X: numpy.typing.NDArray[numpy.float64], arm: int, reward: float) -> bool: ...
    def play(
        self,
        width: tuple[int, float, float],
        t: int,
        contexts: numpy.typing.NDArray[numpy.float64],
        rewards: numpy.typing.NDArray[numpy.float64],
        rng: numpy.random.Generator,
        arms: numpy.typing.NDArray[numpy.int64],
        probabilities: numpy.typing.NDArray[numpy.float64],
        got: numpy.typing.NDArray[numpy.float64],
    ) -> int: ...

def joint_work(n: float, m: float) -> float: ...
def multiplier(width: tuple[int, float, float], K: int, t: int, gain: float) -> float: ...
def solve_lower(L: numpy.typing.NDArray[numpy.float64], n: int, V: numpy.typing.NDArray[numpy.float64]) -> None: ...
def play_stages(
    stages: Sequence[Joint],
    program: tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]],
    scale: float,
    horizon: float,
    contexts: numpy.typing.NDArray[numpy.float64],
    rewards: numpy.typing.NDArray[numpy.float64],
    rng: numpy.random.Generator,
    arms: numpy.typing.NDArray[numpy.int64],
    probabilities: numpy.typing.NDArray[numpy.float64],
    got: numpy.typing.NDArray[numpy.float64],
    learnt: numpy.typing.NDArray[numpy.int64],
) -> int: ...
