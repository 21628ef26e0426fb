"""Agents raced on a world: runner, result, pictures, report. (Not named race: that is the function.)"""

from noregret.racing.result import Result
from noregret.racing.run import Heat, Run
from noregret.racing.runner import RaceWarning, race, race_all

__all__ = ["Heat", "RaceWarning", "Result", "Run", "race", "race_all"]
