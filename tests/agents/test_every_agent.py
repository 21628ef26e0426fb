"""Every public agent passes every check (see armwise.testing)."""

import inspect

import pytest

import armwise as aw
from armwise.testing.checks import CHECKS, Case
from tests.cases import CASES

# Bases to build agents on, not agents.
ABSTRACT = {"Agent", "IndexAgent"}


def public_agents() -> set[str]:
    things = {name: getattr(aw, name) for name in aw.__all__}
    return {n for n, thing in things.items() if inspect.isclass(thing) and issubclass(thing, aw.Agent)} - ABSTRACT


def test_every_public_agent_has_a_case() -> None:
    assert {type(case.make(0)).__name__ for case in CASES} == public_agents()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_check(case: Case, check) -> None:
    check(case)
