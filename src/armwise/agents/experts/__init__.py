"""Adversarial rewards and expert advice (survey 5)."""
