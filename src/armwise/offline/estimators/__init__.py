"""Estimators of a policy's value, and the reward and propensity models that they need.

It may import logs and core.
Invariant: each estimator equals its formula in an explicit loop over the rows.
"""
