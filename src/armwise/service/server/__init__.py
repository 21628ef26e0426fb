"""The server: the configuration, the ASGI application and its run under uvicorn.

It may import adapters, web, experiments, log, sharding, engine, model, journal, features and core.
Invariant: without keys it serves only this machine, and no web page can use it.
"""
