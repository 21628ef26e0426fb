"""The web page at ``/``: live decisions and rewards, the reward rate, arm shares, other policies, health."""
