"""pytest -p sanitized: the run fails at its start unless its kernels are those with the sanitisers in them."""

import os
from importlib import import_module
from pathlib import Path
from types import ModuleType

MARKS = (b"__asan_report_load8", b"__ubsan_handle_out_of_bounds")  # what only an instrumented file calls


def complaints(kernels: ModuleType, folder: Path) -> list[str]:
    """Why the compiled module that was imported is not a sanitised one of ``folder``; nothing if it is."""
    path = Path(str(kernels.__file__)).resolve()
    found = [] if path.is_relative_to(folder.resolve()) else [f"{path} is not in {folder}"]
    text = path.read_bytes()
    return found + [f"{path} does not call {mark.decode()}" for mark in MARKS if mark not in text]


def pytest_sessionstart() -> None:
    import pytest

    from armwise.native import VARIANTS

    folder = Path(os.environ["ARMWISE_SANITIZED"])
    found = [text for variant in VARIANTS for text in complaints(import_module(f"armwise.native._{variant}"), folder)]
    if found:
        raise pytest.UsageError("make sanitize would not test the sanitised kernels: " + "; ".join(found))
