"""Worlds made of data: tables with labels, ratings, logs, and published protocols.

It may import environments and core.
Invariant: a row that cannot be used is refused by its number, never dropped silently.
"""
