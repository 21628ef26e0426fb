"""Fixed policies: maps from a context to an arm, or to a distribution over the arms; and classes of them."""

from armwise.policies.answers import distribution, distributions
from armwise.policies.classes import (
    HalfPlane,
    LinearSample,
    PlanarSeparators,
    PlanarSplits,
    PolicyClass,
    Representatives,
    SampledLinear,
    Stumps,
    StumpSplits,
)
from armwise.policies.fixed import Constant, Linear, Policy, Stump, Tree, Uniform

__all__ = [
    "Constant",
    "HalfPlane",
    "Linear",
    "LinearSample",
    "PlanarSeparators",
    "PlanarSplits",
    "Policy",
    "PolicyClass",
    "Representatives",
    "SampledLinear",
    "Stump",
    "StumpSplits",
    "Stumps",
    "Tree",
    "Uniform",
    "distribution",
    "distributions",
]
