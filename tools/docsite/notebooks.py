"""Run the example notebooks and store what they print and draw: PYTHONPATH=tools python -m docsite.notebooks."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
WIDGET = "application/vnd.jupyter.widget-view+json"  # a progress bar: live, and nothing to keep


def executed(path: Path) -> Any:
    """The notebook with the outputs of a run in a kernel of its own, beside its files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own libraries
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": path.parent}}
        )
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if WIDGET not in output.get("data", {})]
            for output in cell.outputs:
                output.get("metadata", {}).clear()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}  # fmt: skip
    return notebook


def main() -> None:
    """Write the outputs into every notebook."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        nbformat.write(executed(path), path)  # type: ignore[no-untyped-call]
        print(path.name)


if __name__ == "__main__":
    main()
