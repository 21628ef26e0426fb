"""What a race returns: regret over time, comparisons, slopes, certificates, tables.

It imports environments, theory, core; pictures from report when they are asked for.
Invariant: regret is what a plain loop measures.
"""
