"""``Auto``, the agent that needs no tuning.

It imports models, core and native.
Invariant: rewards of any size give the same arms.
"""
