"""The service over HTTP: its own API, keys, metrics and page."""
