"""Fixed policies: maps from a context to an arm, or to a distribution over the arms; and classes of them."""

from noregret.policies.answers import distribution, distributions
from noregret.policies.fixed import Constant, Linear, Policy, Stump, Tree, Uniform

__all__ = ["Constant", "Linear", "Policy", "Stump", "Tree", "Uniform", "distribution", "distributions"]
