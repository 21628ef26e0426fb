"""Logs: reading files, tables and journals; rows, columns, names of arms; ``formats`` and ``checks``.

It may import core.
Invariant: whatever the source, the rows are the same.
"""
