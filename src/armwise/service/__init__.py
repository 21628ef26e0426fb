"""The decision service: deciders by name, the engine with its journal and models, and the HTTP server.

It may import export, offline, agents, models, features, core and native.
Invariant: what is answered is durable, and a model is a function of its journal.
"""
