"""Running races: entries, rounds, workers, checkpoints.

It imports environments, models, policies, core and results.
Invariant: workers, engines and interruptions do not change a bit of the result.
"""
