"""Exact geometry of half-planes and finite point sets: sides of lines, and all linear separations of the points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from armwise.core.agent import Floats
from armwise.policies.fixed import Ints

# Shewchuk 1997: beyond this multiple of its terms the sign of the floating-point determinant is right.
_SURE = (3.0 + 16.0 * 2.0**-53) * 2.0**-53


def orientation(p: Floats, q: Floats, x: Floats) -> Ints:
    """The sign of det(q - p, x - p) for points (..., 2): 1 where x lies left of the line from p to q, 0 on it.

    Exact: where rounding could matter, it is recomputed in rational numbers.
    """
    up = (q[..., 0] - p[..., 0]) * (x[..., 1] - p[..., 1])
    down = (q[..., 1] - p[..., 1]) * (x[..., 0] - p[..., 0])
    det = up - down
    sign = np.sign(det).astype(np.int64)
    same = _same(x, p) | _same(x, q) | _same(p, q)
    sign[same] = 0
    unsure = np.nonzero((np.abs(det) <= _SURE * (np.abs(up) + np.abs(down))) & ~same)
    points = np.broadcast_arrays(p, q, x)
    for at in zip(*unsure):
        (px, py), (qx, qy), (cx, cy) = (map(Fraction, point[at].tolist()) for point in points)
        exact = (qx - px) * (cy - py) - (qy - py) * (cx - px)
        sign[at] = (exact > 0) - (exact < 0)
    return sign


def _same(a: Floats, b: Floats) -> np.ndarray:
    found: np.ndarray = (a[..., 0] == b[..., 0]) & (a[..., 1] == b[..., 1])
    return found


def above(p: Floats, q: Floats, x: Floats) -> np.ndarray:
    """Whether x lies above the line from p to q, rotated infinitesimally counter-clockwise about a point between them.

    Left of the line is above. On the line, points on p's side are above and points on q's side are not. On a finite set
    of points this is a half-plane, without choosing an angle.
    """
    side = orientation(p, q, x)
    if side.all():
        return side > 0
    flat = np.abs(q[..., 0] - p[..., 0]) >= np.abs(q[..., 1] - p[..., 1])
    # Along a line one coordinate orders the points exactly.
    pivot, ahead, point = (np.where(flat, v[..., 0], v[..., 1]) for v in (p, q, x))
    behind = np.where(ahead > pivot, point <= pivot, point >= pivot)
    return np.where(side == 0, behind, side > 0)


def separations(points: Floats) -> Ints:
    """The pairs (i, j), i < j, whose turned lines (``above``) split n distinct points in every linear way, once.

    Two sets that a line separates have exactly one common tangent that turns counter-clockwise into a separating
    line. It touches them at neighbours on that tangent. So the ways to split are the pairs of points with no
    other point between them on their line: n (n - 1) / 2 of them in general position.
    """
    pairs = []
    for i in range(len(points)):
        others = np.delete(np.arange(len(points)), i)
        gap = points[others] - points[i]
        angle, reach = np.arctan2(gap[:, 1], gap[:, 0]), np.abs(gap).sum(axis=1)
        order = np.argsort(angle)
        hidden = np.zeros(len(others), bool)
        # Only points in nearly the same direction can be collinear; collinearity is decided exactly.
        breaks = np.flatnonzero(np.diff(angle[order]) > 1e-12) + 1
        near_ones = np.split(order, breaks) if breaks.size < len(others) - 1 else []
        for near in near_ones:
            near = near[np.argsort(reach[near])]
            for k in range(1, near.size):
                between = orientation(points[i], points[others[near[:k]]], points[others[near[k]]]) == 0
                hidden[near[k]] = between.any()
        seen = others[~hidden]
        pairs.append(np.column_stack([np.full((seen > i).sum(), i), np.sort(seen[seen > i])]))
    return np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)
