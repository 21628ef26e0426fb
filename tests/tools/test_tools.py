"""What the Makefile calls does what it says, with commands of our own in the place of the machine's."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
SCRIPT = TOOLS / "system-packages"


@pytest.mark.parametrize("installs", [True, False])
def test_a_package_is_missing_only_if_its_command_still_is(tmp_path, installs):
    """apt-get may end with an error (a hook of another package) and have installed everything all the same."""
    apt, installed = tmp_path / "apt-get", tmp_path / "a-command-of-ours"
    act = f"cp {apt} {installed}" if installs else ":"
    apt.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n[ "$1" = install ] || exit 0\n{act}\nexit 100\n')
    (tmp_path / "sudo").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    for path in (apt, tmp_path / "sudo"):
        path.chmod(0o755)
    done = subprocess.run(
        [SCRIPT, "a-command-of-ours=ours", "sh=dash"],
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert (tmp_path / "asked").read_text().splitlines()[-1].endswith(" ours")  # and not dash, which is there
    assert done.stderr == ("" if installs else "could not install ours: install them yourself\n")


def test_sanitised_kernels_come_before_those_of_an_editable_install(tmp_path):
    """An editable install's finder stands before the path: sanitisers would look at the ordinary kernels."""
    (tmp_path / "armwise").mkdir()
    (tmp_path / "armwise" / "__init__.py").write_text("")
    path = os.pathsep.join([str(TOOLS / "sanitize"), str(tmp_path)])
    asked = [sys.executable, "-c", "import armwise; print(armwise.__file__)"]
    found = subprocess.run(asked, env=os.environ | {"PYTHONPATH": path}, text=True, capture_output=True, check=True)
    assert found.stdout.strip() == str(tmp_path / "armwise" / "__init__.py")


def test_ordinary_kernels_are_not_taken_for_sanitised_ones(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(TOOLS / "sanitize")
    _baseline = import_module("armwise.native._baseline")
    elsewhere, without_asan, without_ubsan = import_module("sanitized").complaints(_baseline, tmp_path)
    assert elsewhere == f"{Path(str(_baseline.__file__)).resolve()} is not in {tmp_path}"
    assert without_asan.endswith("does not call __asan_report_load8") and "__ubsan_handle" in without_ubsan


def makes(home: Path, target: str) -> str:
    """What make would do for a target in an environment, without doing it."""
    asked = ["make", "--no-print-directory", "--dry-run", f"VENV={home}", f"BUILD={home}/build", target]
    return subprocess.run(asked, cwd=TOOLS.parent, text=True, capture_output=True, check=True).stdout


def test_a_race_installs_and_builds_what_it_needs(tmp_path):
    """From a fresh clone make run is to take a minute; where everything is installed, all of it is kept up to date."""
    fresh = makes(tmp_path, "run")
    assert ".[race,native" in fresh and "all,dev" not in fresh and "cmake --build" in fresh
    assert all("--target _" in line for line in fresh.splitlines() if "cmake --build" in line)
    assert fresh.rstrip().endswith(f"{tmp_path}/bin/armwise race")
    assert "all,dev" in makes(tmp_path, "check") and "all,dev" in makes(tmp_path, "test")
    (tmp_path / "bin").mkdir()
    for name in ("bin/python", ".installed"):
        (tmp_path / name).touch()
    later = makes(tmp_path, "run")
    assert f"cmake --build {tmp_path}/build\n" in later and "--target" not in later and "pip install" not in later


def test_the_quick_tests_exist():
    """make quick stops at a file that was moved, but only whoever runs it would notice."""
    root = TOOLS.parent
    listed = (root / "tests" / "quick.txt").read_text().split()
    assert len(listed) == len(set(listed)) > 20
    assert [path for path in listed if not (root / path).is_file()] == []
