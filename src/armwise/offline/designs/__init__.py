"""Logs of other designs: slates, continuous actions, costs, several loggers, adaptive agents.

It imports evaluation and what evaluation imports, and agents.
Invariant: each estimator equals an explicit sum over the rows.
"""
