"""Write what the README says of the agents, from their own rows: PYTHONPATH=tools python -m docsite.readme."""

from __future__ import annotations

import re
from pathlib import Path

from armwise.theory.algorithm_table import agents
from docsite.tables import compiled_table, readme_table

README = Path(__file__).parent.parent.parent / "README.md"


def with_agents(text: str) -> str:
    """The README with its tables of agents, and their number, as they are now."""
    text = _replaced(text, "table", readme_table())
    text = _replaced(text, "agents", compiled_table())
    text = re.sub(r"There are \d+ agents:", f"There are {len(agents())} agents:", text)
    return re.sub(r"\| \d+ algorithms and your own", f"| {len(agents())} algorithms and your own", text)


def _replaced(text: str, name: str, table: str) -> str:
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = text.partition(start)
    return f"{before}{start}{table}\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    README.write_text(with_agents(README.read_text(encoding="utf-8")), encoding="utf-8")
