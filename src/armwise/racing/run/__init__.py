"""Running races: entries, rounds, workers, checkpoints.

It may import results, environments, agents, models, policies and core.
Invariant: workers, engines and interruptions do not change a bit of the result.
"""
