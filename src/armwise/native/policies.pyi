from typing import overload

import numpy
import numpy.typing

@overload
def policy_totals(
    table: numpy.typing.NDArray[numpy.uint8], rewards: numpy.typing.NDArray[numpy.float64]
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def policy_totals(
    table: numpy.typing.NDArray[numpy.uint16], rewards: numpy.typing.NDArray[numpy.float64]
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def policy_totals(
    table: numpy.typing.NDArray[numpy.uint32], rewards: numpy.typing.NDArray[numpy.float64]
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def policy_totals(
    table: numpy.typing.NDArray[numpy.int64], rewards: numpy.typing.NDArray[numpy.float64]
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def add_rewards(
    totals: numpy.typing.NDArray[numpy.float64],
    row: numpy.typing.NDArray[numpy.uint8],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
@overload
def add_rewards(
    totals: numpy.typing.NDArray[numpy.float64],
    row: numpy.typing.NDArray[numpy.uint16],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
@overload
def add_rewards(
    totals: numpy.typing.NDArray[numpy.float64],
    row: numpy.typing.NDArray[numpy.uint32],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
@overload
def add_rewards(
    totals: numpy.typing.NDArray[numpy.float64],
    row: numpy.typing.NDArray[numpy.int64],
    rewards: numpy.typing.NDArray[numpy.float64],
) -> None: ...
@overload
def arm_masses(
    table: numpy.typing.NDArray[numpy.uint8], weights: numpy.typing.NDArray[numpy.float64], n_arms: int
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def arm_masses(
    table: numpy.typing.NDArray[numpy.uint16], weights: numpy.typing.NDArray[numpy.float64], n_arms: int
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def arm_masses(
    table: numpy.typing.NDArray[numpy.uint32], weights: numpy.typing.NDArray[numpy.float64], n_arms: int
) -> numpy.typing.NDArray[numpy.float64]: ...
@overload
def arm_masses(
    table: numpy.typing.NDArray[numpy.int64], weights: numpy.typing.NDArray[numpy.float64], n_arms: int
) -> numpy.typing.NDArray[numpy.float64]: ...
