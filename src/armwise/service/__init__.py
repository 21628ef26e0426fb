"""The decision service: a durable journal, an engine, and two HTTP faces."""
