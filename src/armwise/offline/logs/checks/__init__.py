"""Checks of a log: balance of the arms, interactions, drift, duplicates, leaks.

It may import logs, formats and core; results, where drift is drawn.
Invariant: a check reads the log and never changes it.
"""
