"""Small tools: optional packages, progress bars, text tables, figures, threads, Dask clusters.

It may import nothing of the package.
Invariant: an optional package is imported only where it is used; the error for a missing one names its extra.
"""
