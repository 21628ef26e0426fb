"""Learning from a log: fit an agent, fit a policy, replay learners.

It imports evaluation and what evaluation imports, and agents.
Invariant: a fit on parts of a log equals the fit on the whole log.
"""
