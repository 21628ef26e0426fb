"""Formats: VW's decision logs, the log of the service, rankings, beacons; cells and lines of tables.

It may import logs and core.
Invariant: whatever the format, the rows are the same.
"""
