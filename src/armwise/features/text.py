"""Hashed words: rows of numbers from texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from armwise.core import saving
from armwise.core.arguments import count, short
from armwise.features.maps import Floats


class HashedText(saving.Saved):
    """``hashed_text`` as an object with its settings: one row of ``dim`` numbers per text, saved and loaded like a map.

    Agents and other maps read numbers, so transform texts first: ``rows = text.transform(texts)``, then join them with
    other columns by ``np.hstack([rows, others])``. There is nothing to fit.

    >>> text = HashedText(dim=32, seed=4)
    >>> rows = np.hstack([text.transform(["Red shoes", "a blue hat"]), [[9.5], [3.0]]])
    >>> rows.shape
    (2, 33)
    >>> import armwise as aw
    >>> aw.LinUCB(dim=33, seed=1).choose(rows).probability
    0.5
    """

    _namespace: ClassVar[str] = "features."

    def __init__(self, dim: int = 256, seed: int = 0) -> None:
        self.dim, self.seed = count("dim", dim), _seed(seed)

    @property
    def size(self) -> int:
        """Numbers per row, ``dim``, under the name that feature maps use.

        >>> HashedText(dim=32).size
        32
        """
        return self.dim

    def params(self) -> dict[str, Any]:
        return super().params() | {"seed": self.seed}  # the seed is what the rows are

    def transform(self, texts: Iterable[str]) -> Floats:
        """One row per text; see ``hashed_text``.

        >>> HashedText(dim=8).transform(["red shoes", ""]).shape
        (2, 8)
        """
        return hashed_text(texts, self.dim, self.seed)


def hashed_text(texts: Iterable[str], size: int = 256, seed: int = 0) -> Floats:
    """Hash each text into a row of ``size`` numbers: its words, and pairs of adjacent words.

    Words are runs of letters and digits, in lower case. BLAKE2b with ``seed`` determines position and sign, so that any
    process gives the same row; a row has norm 1, or is 0 if the text has no word.

    >>> rows = hashed_text(["Red shoes", "red SHOES!", "a blue hat"], size=64)
    >>> bool((rows[0] == rows[1]).all()), round(float(rows[0] @ rows[0]), 6)
    (True, 1.0)
    """
    wide = count("size", size)
    key = _seed(seed).to_bytes(8, "little", signed=True)
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise ValueError(f"texts must be a list of strings, one per row, got {short(texts)}: put one text in a list")
    rows = []
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"texts[{i}] must be a string, got {text!r:.80}")
        row = np.zeros(wide)
        words = "".join(c if c.isalnum() else " " for c in text.lower()).split()
        for token in words + [f"{one} {two}" for one, two in pairwise(words)]:
            code = int.from_bytes(hashlib.blake2b(token.encode(), digest_size=8, key=key).digest(), "little")
            row[code % (1 << 63) % wide] += -1.0 if code >> 63 else 1.0
        rows.append(row / max(float(np.linalg.norm(row)), 1e-300))
    return np.array(rows).reshape(-1, wide)


def _seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed must be a whole number of at most 64 bits, got {short(seed)}")
    return int(seed)
