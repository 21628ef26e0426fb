"""A package that is not installed: one line that names the extra and the command, from Python and from the shell."""

from __future__ import annotations

import logging
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from armwise.core.tools.extras import EXTRA_OF

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

RACE = "aw.race([aw.UCB1(2)], aw.environments.Switching(n_arms=2), horizon=20, seeds=2{})"
WITHOUT = [
    ("tqdm", RACE.format(""), "race"),
    ("threadpoolctl", RACE.format(""), "race"),
    ("joblib", RACE.format(", workers=2"), "race"),
    ("pandas", RACE.format("") + ".table()", "race"),
    ("matplotlib", RACE.format("") + ".plot()", "race"),
    ("distributed", RACE.format(", engine='dask://127.0.0.1:1'"), "dask"),
    ("pyarrow", "aw.offline.Log.from_csv('log.csv')", "offline"),
    ("pyarrow", "aw.offline.Log.from_parquet('log.parquet')", "offline"),
    ("sklearn", "aw.environments.Classification.from_sklearn('iris')", "sklearn"),
]


def run(blocked: str, code: str) -> subprocess.CompletedProcess[str]:
    """The code in a Python where a package cannot be imported."""
    script = f"import sys; sys.modules[{blocked!r}] = None\nimport armwise as aw\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("package", "code", "extra"), WITHOUT, ids=[f"{p} in {c[:30]}" for p, c, _ in WITHOUT])
def test_from_python_the_error_names_the_extra(package: str, code: str, extra: str, tmp_path: Path) -> None:
    done = run(package, f"import os; os.chdir({str(tmp_path)!r}); {LOG}\n{code}")
    *_, last = done.stderr.strip().splitlines()
    assert last == (
        f"armwise.core.tools.extras.MissingExtra: {package} is not installed, which this needs: "
        f"pip install 'armwise[{extra}]'"
    )


LOG = "open('log.csv', 'w').write('arm,reward\\n0,1\\n'); open('log.parquet', 'w').close()"
COMMANDS = [
    ("pandas", ["race", "--horizon", "50", "--seeds", "2"], "race"),
    ("tqdm", ["race", "--horizon", "50", "--seeds", "2"], "race"),
    ("pyarrow", ["race", "--world", "linear"], "race"),
    ("pyarrow", ["evaluate", "log.csv", "--policy", "0"], "offline"),
    ("uvicorn", ["serve"], "serve"),
]


@pytest.mark.parametrize(("package", "words", "extra"), COMMANDS, ids=[f"{p} in {w[0]}" for p, w, _ in COMMANDS])
def test_from_the_shell_too(package: str, words: list[str], extra: str, tmp_path: Path) -> None:
    code = (
        f"import os; os.chdir({str(tmp_path)!r}); {LOG}\nfrom armwise.cli.main import main; sys.exit(main({words!r}))"
    )
    done = run(package, code)
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        f"armwise {words[0]}: error: {package} is not installed, which this needs: pip install 'armwise[{extra}]'\n"
    )
    assert not (tmp_path / "armwise-report").exists()  # it was said before any work, not after a race of minutes


def test_every_extra_that_a_message_names_brings_the_package() -> None:
    """The names differ between import and index only for scikit-learn."""
    extras = PROJECT["optional-dependencies"]
    for module, extra in [*EXTRA_OF.items(), *((package, extra) for package, _, extra in WITHOUT)]:
        brought = " ".join(extras[extra])
        assert module.replace("sklearn", "scikit-learn") in brought, (module, extra)


def test_dask_alone_is_enough_to_race_on_dask() -> None:
    assert "armwise[race]" in PROJECT["optional-dependencies"]["dask"]


def test_without_fcntl_the_service_leads_and_says_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    from armwise.service.journal.databases.sqlite import SQLite

    monkeypatch.setitem(sys.modules, "fcntl", None)
    store = SQLite(tmp_path / "journal.db")
    with caplog.at_level(logging.WARNING, logger="armwise.service"):
        assert store.lead() and store.lead()
    [record] = caplog.records
    assert "start only one" in record.getMessage()
    store.close()
