def best_variant() -> str:
    """The variant that this machine's processor runs fastest."""
