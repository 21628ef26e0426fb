"""Pure exploration: agents that find the best arm, and stop when an error has become unlikely enough.

It may import arms, theory, core and native.
Invariant: with a proved threshold an agent names a wrong arm with probability at most ``delta``, whenever it is asked.
"""
