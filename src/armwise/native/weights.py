"""Exponential weights in log space, and the unbiased reward estimator (survey 2)."""

from armwise.native._native import weights as _weights

importance_weighted = _weights.importance_weighted
normalised = _weights.normalised
mixed = _weights.mixed
floored = _weights.floored
