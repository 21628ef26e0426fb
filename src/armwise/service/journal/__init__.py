"""The journal: an append-only, hash-chained table of events in SQLite or PostgreSQL.

It may import features and native.
Invariant: an event that was acknowledged is durable and is never changed.
"""
