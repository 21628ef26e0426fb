"""Databases of a journal: SQLite in a folder, or PostgreSQL for several processes; its tail; the leader's lease.

It may import journal.
Invariant: a commit that was acknowledged is found again, or its loss is reported.
"""
