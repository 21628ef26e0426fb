"""Results of a race: regret over time, comparisons, slopes, certificates, tables.

It may import run, environments, theory and core; report, where a picture is asked for.
Invariant: regret is what a plain loop measures.
"""
