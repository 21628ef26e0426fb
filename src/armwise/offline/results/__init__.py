"""Results of an evaluation: estimates, diagnostics, verdicts; as text, pictures and pages.

It may import estimators, intervals, logs and core.
Invariant: the verdict is in every view, and a good log gets none.
"""
