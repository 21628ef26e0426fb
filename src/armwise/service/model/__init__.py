"""Models: agents that read requests and learn from journal events, and their versions.

It may import journal, export, agents, models, features, core and native.
Invariant: learning uses exactly the features that deciding saw.
"""
