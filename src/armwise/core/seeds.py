"""Streams of randomness with a purpose: no stream inside the package equals a user's ``default_rng(seed)``.

People write ``seed=0`` everywhere. If a split of a log, an agent and the user's own simulation all drew from
``default_rng(0)``, the rows held out would be exactly the customers with small first draws. So each purpose hashes its
own label into the seed.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Seed = int | np.random.SeedSequence | np.random.Generator | None


def purpose_seed(seed: Any, purpose: str) -> np.random.SeedSequence:
    """The seed of one purpose: the same seed and label give the same stream, other labels unrelated ones."""
    key = zlib.crc32(purpose.encode())
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, key))
    return np.random.SeedSequence(seed, spawn_key=(key,))


def stream(seed: Seed, purpose: str) -> np.random.Generator:
    """A generator for one purpose; a generator that is handed over is used as it is, None is unpredictable."""
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(purpose_seed(seed, purpose))


def row_hashes(start: int, n: int, seed: int, purpose: str) -> NDArray[np.uint64]:
    """A hash of each row number start, ..., start + n - 1: the same in every pass, however rows are batched."""
    offset = purpose_seed(seed, purpose).generate_state(1, np.uint64)[0]
    mixed = np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + offset
    # SplitMix64: neighbouring rows get unrelated hashes, so that periodic data cannot align with them.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashes: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return hashes


def row_uniforms(start: int, n: int, seed: int, purpose: str) -> NDArray[np.float64]:
    """A number in [0, 1) for each row number, from its hash."""
    return np.asarray(row_hashes(start, n, seed, purpose) >> np.uint64(11), np.float64) * 2.0**-53
