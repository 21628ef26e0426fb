"""``Auto``, the agent that needs no tuning.

It may import models, core and native.
Invariant: rewards of any size give the same arms.
"""
