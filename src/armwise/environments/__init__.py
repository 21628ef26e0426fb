"""The worlds: what an agent meets in simulation.

>>> from armwise import environments
>>> world = environments.Linear(n_arms=10, dim=20, noise=0.1)
>>> world.comparator
'the best arm of each round'
"""

from armwise.environments.adversarial import Adaptive, AgainstUCB1, Experts, Switching
from armwise.environments.budgeted import Budgeted, Table
from armwise.environments.changing import Drift, Seasonal, Switch
from armwise.environments.data.data import Classification, Regression, Rows
from armwise.environments.data.from_log import FromLog
from armwise.environments.data.published import Mushroom, Wheel, protocols, published
from armwise.environments.data.ratings import Ratings
from armwise.environments.environment import Block, Environment
from armwise.environments.gaussian_process import GaussianProcess
from armwise.environments.graph import Graph
from armwise.environments.linear import Drifting, Hierarchical, Linear
from armwise.environments.logistic import Logistic
from armwise.environments.planted import Planted
from armwise.environments.tabular import Tabular

__all__ = [
    "Adaptive",
    "AgainstUCB1",
    "Block",
    "Budgeted",
    "Classification",
    "Drift",
    "Drifting",
    "Environment",
    "Experts",
    "FromLog",
    "GaussianProcess",
    "Graph",
    "Hierarchical",
    "Linear",
    "Logistic",
    "Mushroom",
    "Planted",
    "Ratings",
    "Regression",
    "Rows",
    "Seasonal",
    "Switch",
    "Switching",
    "Table",
    "Tabular",
    "Wheel",
    "protocols",
    "published",
]
