"""Lepski's choice by hand."""

from armwise.offline.estimators.slope import slope


def test_lepski_takes_the_last_that_meets_all_before():
    assert slope([0.50, 0.52, 0.70], [0.10, 0.05, 0.01]) == 1
