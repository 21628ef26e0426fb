"""Means and deviations of named numbers."""

import pytest

from armwise.features.encoding.running_scale import Scaler, Scaling
from armwise.features.encoding.tokens import RequestTokens, part, tail


def test_nothing_is_scaled_where_the_journal_has_no_scales():
    assert Scaling(b"").names.size == 0


def test_a_scaling_is_the_mean_and_deviation_of_what_varied():
    scaler = Scaler()
    scaler.update(part(b'{"hour": 9}', "c").table, part(b'{"hour": 15}', "c").table)
    scaling = scaler.scaling(RequestTokens(part(b'{"hour": 9}', "c"), tail([], [])))
    assert scaling.means == pytest.approx([12.0])
    assert scaling.deviations == pytest.approx([3.0])


def test_the_numbers_of_one_request_are_taken():
    scaler = Scaler()
    scaler.take(RequestTokens(part(b'{"hour": 9}', "c"), tail([], [])))
    assert scaler.means == pytest.approx([9.0])


def test_numbers_that_did_not_come_yet_are_not_scaled():
    assert Scaler().scaling(RequestTokens(part(b'{"hour": 9}', "c"), tail([], []))).names.size == 0
