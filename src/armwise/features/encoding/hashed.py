"""Rows of hashed, crossed features: steps 4 and 5 of ``encoder``."""

from __future__ import annotations

from armwise.core.agent import Floats, count
from armwise.core.saving import Saved
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import ONE, RequestTokens
from armwise.native.features import cross

MAX_DIM = 8192


class HashedRows(Saved):
    """Rows of ``dim`` hashed features, one for each arm."""

    def __init__(self, dim: int = 128, interactions: bool = True) -> None:
        self.dim = count("dim", dim)
        if dim > MAX_DIM:
            raise ValueError(f"dim must be at most {MAX_DIM}, since agents keep dim x dim numbers, got {dim}")
        if not isinstance(interactions, bool):
            raise ValueError(f"interactions must be true or false, got {interactions!r}")
        self.interactions = interactions

    def rows(self, stack: RequestTokens, scaling: Scaling) -> Floats:
        """The (K, dim) features of the arms, with the scaling that a decision used.

        >>> from armwise.features.encoding.running_scale import UNSCALED
        >>> from armwise.features.encoding.tokens import NO_TOKENS, RequestTokens, tail
        >>> row = HashedRows(dim=8).rows(RequestTokens(NO_TOKENS, tail([bytes(8)], [NO_TOKENS])), UNSCALED)[0]
        >>> float(round(row @ row, 12))
        1.0
        """
        return cross(stack.words, *scaling.columns, self.dim, self.interactions, False, ONE)

    def shared(self, stack: RequestTokens, scaling: Scaling) -> Floats:
        """The (dim,) features of the context alone, for agents that have their arms fixed.

        >>> from armwise.features.encoding.running_scale import UNSCALED
        >>> from armwise.features.encoding.tokens import NO_TOKENS, RequestTokens, tail
        >>> HashedRows(dim=4).shared(RequestTokens(NO_TOKENS, tail([bytes(8)], [NO_TOKENS])), UNSCALED).shape
        (4,)
        """
        row: Floats = cross(stack.words, *scaling.columns, self.dim, self.interactions, True, ONE)[0]
        return row
