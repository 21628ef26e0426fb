"""designs."""
