"""Hypotheses of the theorems on rankings: the letters that fill a bound, or why it does not apply.

A list world states: ``model`` ("cascade", "several clicks", "position-based" or "semi-bandit"), K (arms), k (slots),
``gaps`` (of the arms outside the best list), ``linear`` (whether attraction is linear in the features), R, S, L.
"""

from __future__ import annotations

from typing import Any

from armwise.theory.hypotheses import Letters, World


def cascade_ucb1(ranker: Any, world: World, T: int) -> Letters | str:
    """A cascade without contexts, and at least the published index."""
    if world.get("model") != "cascade" or "gaps" not in world:
        return "its bound is for a cascade whose attractions are the same in every round, and this world states none"
    if ranker.scale != 1.0:
        return f"its bound is for scale = 1, and scale is {ranker.scale:g}"
    return {"L": world["K"], "gaps": world["gaps"]}


def list_linucb(ranker: Any, world: World, T: int) -> Letters | str:
    """An ellipsoid around a ridge of at least k L^2, in a world whose attractions are linear."""
    if not hasattr(ranker.alpha, "delta"):
        return f"its bound needs alpha=Ellipsoid(...), and alpha is {ranker.alpha}"
    missing = [letter for letter in ("k", "R", "S", "L") if letter not in world]
    if missing or not world.get("linear"):
        return "its bound needs attractions linear in the features, and constants k, R, S and L, which are not stated"
    if world.get("model") != ranker.feedback:
        return f"its bound is for {ranker.feedback} feedback, and this world's is {world.get('model')}"
    if getattr(ranker, "diversity", 0.0):
        return "its bound is for the sum over the slots, and diversity adds to it"
    k, L = world["k"], world["L"]
    if ranker.lam < k * L**2 or world["R"] > ranker.alpha.noise or world["S"] > ranker.alpha.norm:
        return (
            f"its bound needs lam >= k L^2 = {k * L**2:g}, noise >= R = {world['R']:g} and norm >= S = {world['S']:g}"
        )
    alpha = ranker.alpha
    return {"k": k, "d": ranker.dim, "R": alpha.noise, "S": alpha.norm, "L": L, "lam": ranker.lam, "delta": alpha.delta}


def toprank(ranker: Any, world: World, T: int) -> Letters | str:
    """A click model without contexts; made for at least these rounds."""
    if "model" not in world or "gaps" not in world or "k" not in world:
        return "its bound is for clicks whose probabilities are the same in every round, and this world states none"
    if ranker.horizon < T:
        return f"it is made for {ranker.horizon:,} rounds, and these are {T:,}"
    return {"k": world["k"], "L": world["K"], "delta": 1.0 / ranker.horizon}
