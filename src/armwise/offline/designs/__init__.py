"""Logs of other designs: slates, continuous actions, costs, several loggers, adaptive agents.

It may import evaluation, results, estimators, intervals, logs, agents, policies and core.
Invariant: each estimator equals an explicit sum over the rows.
"""
