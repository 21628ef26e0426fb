"""APIs of other products, each in a folder: Azure Personalizer's, and OpenFeature's.

It may import web, experiments, log, engine, model, journal, offline, features and core.
Invariant: an adapter calls public methods of the engine; a new one changes neither engine nor journal.
"""
