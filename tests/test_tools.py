"""What the Makefile calls does what it says, with commands of our own in the place of the machine's."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "tools" / "system-packages"


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
