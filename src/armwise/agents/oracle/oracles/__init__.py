"""Oracles: find the best policy of a class, or fit a regressor, on weighted rows.

It may import models, policies, core and native.
Invariant: a policy that an oracle returned does not change when the oracle learns.
"""
