"""The parts of a model of the service: its agent, what it sees, its positions, its versions and its lessons."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import armwise as aw
from armwise.core import saving
from armwise.features.encoding.arms import read_arm, read_arms
from armwise.features.encoding.from_python import read_context, read_named_arms
from armwise.features.encoding.hashed import HashedRows
from armwise.features.encoding.running_scale import Scaling
from armwise.features.encoding.tokens import ArmTokens, InvalidInput, RequestTokens, part
from armwise.service.journal.events import Creation, Decision
from armwise.service.model.build import build, build_model, footprint
from armwise.service.model.dims import NEVER, next_look, wanted_dim
from armwise.service.model.drawing.agent_view import AgentView
from armwise.service.model.drawing.draws import Draws
from armwise.service.model.drawing.encoded import (
    EncodedRequest,
    chosen_tokens,
    lesson_of,
    offered,
    restricted,
    stack_of,
)
from armwise.service.model.drawing.in_flight import InFlight
from armwise.service.model.explain import explain
from armwise.service.model.exporting import exported
from armwise.service.model.inside import copied, counts_choices, reseed, within
from armwise.service.model.lessons import read_lessons
from armwise.service.model.trial import check_import, rehearse
from armwise.service.model.versions import Challenger, by_role, draw_among, role

RAW = msgspec.Raw


def decided(arms: list[bytes], p: list[float], context: bytes = b"{}") -> Decision:
    return Decision(RAW(context), [RAW(arm) for arm in arms], p, 0, 0, 1, 0.0)


def linucb() -> AgentView:
    return AgentView(aw.LinUCB(dim=8, lam=1.0), HashedRows(8))


def test_an_agent_is_built_from_the_public_names_alone() -> None:
    assert repr(build({"class": "LinUCB", "lam": 2.0}, dim=8, seed=1)).startswith("LinUCB(dim=8, alpha=None, lam=2.0")
    model = build_model(Creation(agent={"class": "UCB1", "n_arms": 2}, arms=["a", "b"]))
    assert repr(model.agent) == "UCB1(n_arms=2, scale=0.5)"
    with pytest.raises(InvalidInput, match=r"agent: armwise has nothing called 'os\.system'"):
        build({"class": "os.system"}, dim=8, seed=1)


def test_the_footprint_counts_arrays_at_every_depth() -> None:
    assert footprint([np.zeros(3), {"a": np.zeros(2)}]) == 40


def test_more_pairs_of_features_need_more_positions() -> None:
    arms = read_named_arms([f"arm{k}" for k in range(10)]).tail
    few, many = (RequestTokens(read_context({f"f{i}": i for i in range(n)})[1], arms) for n in (20, 50))
    assert wanted_dim(build_model(Creation()), [few]) == 128
    assert wanted_dim(build_model(Creation()), [few, many]) == 512
    assert [next_look(n) for n in (0, 10, 100, 1000)] == [10, 100, 1000, NEVER]


def test_an_agent_that_sees_rows_needs_the_features_dim() -> None:
    with pytest.raises(InvalidInput, match="agent: dim is 8, but the features have 16"):
        AgentView(aw.LinUCB(dim=8, lam=1.0), HashedRows(16))


def test_a_journaled_decision_is_seen_as_it_was_when_it_was_made() -> None:
    view, asked = linucb(), decided([b'"a"'], [0.5])
    arms = ArmTokens(1, read_arm(b'"a"').words)
    seen = view.see(b"{}", RequestTokens(part(b"{}", "c"), arms), ["a"], Scaling(b""))
    recalled, choice = view.recall_choice(asked, None, "")
    np.testing.assert_array_equal(view.recall(asked).view, seen.view)
    np.testing.assert_array_equal(recalled, seen.view)
    kept = view.kept(seen, 0)
    assert kept is not None and kept.view.shape == (1, 8)
    assert choice.probability == 0.5


def test_an_agent_without_a_context_learns_from_no_row() -> None:
    assert linucb().reads_one_row
    blind = AgentView(aw.UCB1(n_arms=2), HashedRows(8))
    assert not blind.reads_one_row and not blind.of_copy(aw.UCB1(n_arms=2)).reads_one_row


def test_the_number_draws_among_the_offered_arms() -> None:
    p, arm = Draws(aw.LinUCB(dim=2)).draw(np.eye(2), None, 0.7)[:2]
    assert (p.tolist(), arm) == ([0.5, 0.5], 1)
    p, arm = Draws(aw.UCB1(n_arms=2)).draw(None, [1], 0.7)[:2]
    assert (p.tolist(), arm) == ([1.0], 0)
    assert restricted(np.array([0.5, 0.25, 0.25]), [2, 1]).tolist() == [0.5, 0.5]
    assert EncodedRequest(None, [1, 0], Scaling(b""), None).place(0) == 1


def test_only_the_chosen_row_is_kept_and_learnt() -> None:
    assert EncodedRequest(np.ones((2, 3)), None, Scaling(b""), None).kept(0) is None
    seen = EncodedRequest(np.ones((1, 2)), None, Scaling(b""), None, True)
    _, _, n_arms, row, reward, arm, scaling = lesson_of(seen, decided([b'"a"'], [1.0]), 0.5)
    assert (n_arms, row.tolist(), reward, arm, scaling) == (1, [[1.0, 1.0]], 0.5, 0, b"")


def test_the_tokens_of_a_decision_need_no_arm_but_the_chosen_one() -> None:
    asked = decided([b'"a"', b"damaged"], [0.5, 0.5], b'{"hour":9}')
    assert chosen_tokens(asked).tail.n == 1
    assert stack_of(decided([b'"a"'], [1.0], b'{"hour":9}')).table.shape == (1, 3)
    assert offered(decided([b'"a"', b'"b"'], [1.0])).ids == ("a",)  # the others were excluded


def test_an_explanation_names_each_feature_of_each_arm() -> None:
    parts = explain(build_model(Creation()), b'{"hour":9}', read_arms([b'"a"', b'"b"']))[1]
    assert parts == {"a": {"hour": 0.0}, "b": {"hour": 0.0}}
    assert exported(build_model(Creation()), "shop").document["application"] == "shop"


def test_a_copy_continues_alike_and_a_seed_reaches_the_agents_inside() -> None:
    agent = aw.Explore(aw.LinUCB(dim=2, seed=3), epsilon=0.1, seed=4)
    assert len(within(agent)) == 2
    twin = copied(agent)
    assert [a._rng.random() for a in within(twin)] == [a._rng.random() for a in within(agent)]
    reseed(agent, 5)
    drawn = [a._rng.random() for a in within(agent)]
    assert drawn == [np.random.default_rng([k, 5]).random() for k in range(2)]


def test_only_a_budget_counts_choices() -> None:
    assert not counts_choices(aw.LinUCB(dim=2))
    assert counts_choices(aw.HardStop(aw.UCB1(2), budget=1.0, max_cost=1.0, fallback=0))


def test_rows_of_a_log_are_lessons() -> None:
    row: dict[str, Any] = {"context": {"hour": 9}, "arms": ["a", "b"], "arm": "b", "probability": 0.5, "reward": 1.0}
    assert read_lessons([row]).decisions[0].p == [0.5, 0.5]


def test_a_rehearsal_decides_and_learns_once() -> None:
    model = build_model(Creation())
    rehearse(model)
    assert model.agent.t == 2


def test_an_import_must_have_the_applications_parameters() -> None:
    current, other = (build_model(Creation(agent={"class": "UCB1", "n_arms": n})) for n in (2, 3))
    check_import(saving.dumps(current), current)
    with pytest.raises(InvalidInput, match=r"the model's agent\.n_arms is 3, but this application's is 2"):
        check_import(saving.dumps(other), current)


def test_unnamed_versions_match_in_the_order_of_their_events() -> None:
    assert (role("bold"), role("v17")) == ("bold", "")
    leader = build_model(Creation())
    leader.name = "bold"
    leader.versions = dict.fromkeys(("v12", "v3", "shy"), Challenger(build_model(Creation())))
    assert by_role(leader) == {"shy": "shy", "unnamed 0": "v3", "unnamed 1": "v12"}


def test_a_version_without_a_share_leaves_the_draw_to_the_leading_one() -> None:
    leader = build_model(Creation(agent={"class": "LinUCB"}))
    leader.name = "v1"
    leader.versions["bold"] = Challenger(build_model(Creation()))
    drawn, among, _ = draw_among(leader, b"{}", read_arms([b'"a"', b'"b"']), 0.7, None)
    assert drawn.p.tolist() == [0.5, 0.5]
    assert (among["v1"].share, among["v1"].p, among["v1"].weight, among["v1"].covered) == (1.0, 0.5, 1.0, 1.0)


def test_what_a_draw_did_not_count_is_what_other_processes_decided_since() -> None:
    in_flight, choice = InFlight(), aw.Choice(0, 1.0)
    held = in_flight.hold(None, choice)
    held.journaled(3)
    in_flight.count_foreign(4, None, choice)
    assert (len(in_flight), len(in_flight.foreign)) == (1, 1)
    assert held.unknown([3, 4]) == [4]
    assert in_flight.hold(None, choice).unknown([3, 4]) == []
