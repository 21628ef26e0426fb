"""Parameter grids: one agent or one world with many settings, by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def variants(make: Callable[..., T], *args: Any, **settings: Any) -> dict[str, T]:
    """Call ``make`` with every combination of the settings that are lists, and name the results.

    >>> import armwise as aw
    >>> list(variants(aw.LinUCB, 20, alpha=[0.1, 1.0], lam=1.0))
    ['LinUCB alpha=0.1', 'LinUCB alpha=1.0']
    >>> list(variants(aw.environments.Linear, n_arms=[5, 10], noise=[0.1, 0.2]))[0]
    'Linear n_arms=5 noise=0.1'
    """
    lists = {name: value for name, value in settings.items() if isinstance(value, list)}
    for name, several in lists.items():
        if not several:
            raise ValueError(f"{name} must have at least one value, got an empty list")
    fixed = {name: value for name, value in settings.items() if name not in lists}
    label, found = getattr(make, "__name__", "variant"), {}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        found[" ".join([label, *(f"{name}={value!r}" for name, value in chosen.items())])] = make(
            *args, **fixed, **chosen
        )
    return found
