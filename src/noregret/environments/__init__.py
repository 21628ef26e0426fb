"""The worlds: what an agent meets in simulation.

>>> from noregret import environments
>>> world = environments.Linear(n_arms=10, dim=20, noise=0.1)
>>> world.comparator
'the best arm of each round'
"""

from noregret.environments.adversarial import Adaptive, Experts, Switching
from noregret.environments.base import Block, Environment
from noregret.environments.data import Classification, Regression, Rows
from noregret.environments.graph import Graph
from noregret.environments.linear import Drifting, Hierarchical, Linear
from noregret.environments.logistic import Logistic
from noregret.environments.planted import Planted
from noregret.environments.process import GaussianProcess
from noregret.environments.ratings import Ratings
from noregret.environments.tabular import Tabular

__all__ = [
    "Adaptive",
    "Block",
    "Classification",
    "Drifting",
    "Environment",
    "Experts",
    "GaussianProcess",
    "Graph",
    "Hierarchical",
    "Linear",
    "Logistic",
    "Planted",
    "Ratings",
    "Regression",
    "Rows",
    "Switching",
    "Tabular",
]
