"""Models: agents that read requests and learn from journal events, and their versions.

It imports journal, features, agents and core.
Invariant: learning uses exactly the features that deciding saw.
"""
