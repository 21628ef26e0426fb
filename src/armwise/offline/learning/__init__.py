"""Learning from a log: fit an agent, fit a policy, replay learners.

It may import evaluation, results, estimators, intervals, logs, agents, policies and core.
Invariant: a fit on parts of a log equals the fit on the whole log.
"""
