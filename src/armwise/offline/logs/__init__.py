"""Logs: reading files, tables and journals; rows, names of arms, duplicates, leaks, drift.

It imports core only.
Invariant: whatever the source, the rows are the same.
"""
