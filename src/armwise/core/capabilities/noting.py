"""Notes: what an agent must remember of the moment of choosing, carried by the choice until its reward is learnt."""

from __future__ import annotations

from abc import abstractmethod

from armwise.core.choices import Choice


class Noting:
    """An agent whose choices carry a note."""

    @abstractmethod
    def _check_note(self, choice: Choice, n_arms: int) -> None:
        """Refuse a note that ``choose`` did not write; arm and probability are checked."""
