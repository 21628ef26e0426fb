"""The router finds what a search through all routes finds."""

from __future__ import annotations

import random

import pytest

from armwise.service.server.app import Service
from armwise.service.server.config import Config
from armwise.service.web.http import Problem, Route


def searched(routes: list[Route], path: tuple[str, ...]) -> tuple[list[Route], tuple[str, ...]] | None:
    """The routes of the first path that has these segments, one without parameters before all others."""
    paths = [tuple(route.path.split("/")) for route in routes]
    literal = [pattern for pattern in paths if pattern == path and "{}" not in pattern]
    for pattern in literal + [pattern for pattern in paths if "{}" in pattern]:
        if len(pattern) == len(path) and all(a in ("{}", b) for a, b in zip(pattern, path, strict=True)):
            params = tuple(b for a, b in zip(pattern, path, strict=True) if a == "{}")
            return [route for route, each in zip(routes, paths, strict=True) if each == pattern], params
    return None


def test_every_path_is_found_as_a_search_through_all_routes_finds_it() -> None:
    router = Service(Config(storage="unused")).router
    chance, names = random.Random(1), sorted({name for route in router.routes for name in route.path.split("/")})
    paths = [tuple(route.path.split("/")) for route in router.routes]
    for path in list(paths):
        for _ in range(10):
            paths.append(tuple(chance.choice([name, name, "x", "{}", chance.choice(names)]) for name in path))
            paths.append(tuple(chance.choice(["x", "a/b"]) if name == "{}" else name for name in path))
    n = 0
    for path in paths:
        wanted = searched(router.routes, path)
        for method in ("GET", "POST"):
            if wanted is None or not any(route.method == method for route in wanted[0]):
                with pytest.raises(Problem) as refused:
                    router.find(method, path)
                assert refused.value.status == (404 if wanted is None else 405), path
            else:
                found = router.find(method, path)
                assert found[0] in wanted[0] and found[1] == wanted[1], path
                n += 1
    assert n > 500
