"""Several databases behind one service: an engine for each and one merged model.

It may import engine, model, journal, features and core.
Invariant: each database keeps every promise of a single one; a service with one database runs nothing of this folder.
"""
