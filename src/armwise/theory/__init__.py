"""Which agent to take: the survey's table from the agents' own rows, its filter, and advice for your situation."""

from armwise.guide.advice import Advice, Recommendation, Situation, advise
from armwise.guide.rows import SURVEY_ROWS, Row, Table, agents
from armwise.guide.verdicts import Verdict, Verdicts, table, verdicts

__all__ = ["SURVEY_ROWS", "Advice", "Recommendation", "Row", "Situation", "Table", "Verdict", "Verdicts", "advise",
           "agents", "table", "verdicts"]  # fmt: skip
