"""Logs: reading files, tables and journals; rows, columns, names of arms; ``formats`` and ``checks``.

It imports core; a picture of drift comes from results.
Invariant: whatever the source, the rows are the same.
"""
