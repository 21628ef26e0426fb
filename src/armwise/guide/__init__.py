"""Which agent to take: the survey's table from the agents' own rows, and advice from your assumptions."""

from armwise.guide.advice import Advice, Verdict, advise
from armwise.guide.rows import SURVEY_ROWS, Row, Table, agents, table

__all__ = ["SURVEY_ROWS", "Advice", "Row", "Table", "Verdict", "advise", "agents", "table"]
