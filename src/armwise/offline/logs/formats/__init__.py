"""Formats: VW's decision logs, the log of the service, rankings, beacons; cells and lines of tables.

It imports core and the rows, cohorts and logs of the folder above.
Invariant: whatever the format, the rows are the same.
"""
