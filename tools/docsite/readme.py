"""Write the README's table of algorithms: PYTHONPATH=tools python -m docsite.readme."""

from __future__ import annotations

from pathlib import Path

from docsite.tables import readme_table

README = Path(__file__).parent.parent.parent / "README.md"
_START, _END = "<!-- table -->\n", "<!-- /table -->"


def with_table(text: str) -> str:
    """The README with the table as the agents' rows have it now."""
    before, _, rest = text.partition(_START)
    return f"{before}{_START}{readme_table()}\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
