"""Small tools: optional packages, progress bars, text tables, figures, threads, Dask clusters.

It imports no other room.
Invariant: an optional package is imported only where it is used; the error for a missing one names its extra.
"""
