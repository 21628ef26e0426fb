"""Checks of a log: balance of the arms, interactions, drift, duplicates, leaks.

It imports core and the rows and labels of the folder above; a picture of drift comes from results.
Invariant: a check reads the log and never changes it.
"""
