"""``evaluate`` and ``compare``: passes over a log, sums, diagnostics, the answer.

It may import results, intervals, estimators, logs, policies and core.
Invariant: a log in parts gives the numbers of the whole log.
"""
