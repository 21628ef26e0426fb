"""Races: agents on simulated worlds, their results, and the report.

It may import environments, agents, models, policies, theory and core.
Invariant: with one seed every agent meets the same rounds, and one agent more changes no other's run.
"""

from armwise.racing.results.result import Result as Result
from armwise.racing.results.results import Results as Results
from armwise.racing.run.entries import enter as enter
from armwise.racing.run.heat import Heat as Heat
from armwise.racing.run.heat import Run as Run
from armwise.racing.run.heat import Stretch as Stretch
from armwise.racing.run.runner import RaceError as RaceError
from armwise.racing.run.runner import RaceWarning as RaceWarning
from armwise.racing.run.runner import race as race
from armwise.racing.run.runner import race_all as race_all
from armwise.racing.run.variants import variants as variants
