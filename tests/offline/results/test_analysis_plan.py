"""The design of a log, as its rows tell it."""

from armwise.offline import Log
from armwise.offline.results.analysis_plan import design_of


def test_a_log_without_probabilities_has_an_unknown_design():
    found = design_of(Log(arms=[0, 1], rewards=[1, 0]))
    assert found == "unknown: the log has no probabilities, so only a reward model can answer"
