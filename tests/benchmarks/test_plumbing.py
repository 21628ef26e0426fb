"""The benchmarks start, say what they take, and hand their rows to the page; what they measure is not tested here."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as page
from benchmarks import common

ROOT = Path(__file__).parents[2]


ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
MODULES = sorted({"benchmarks", *(f"benchmarks.{part.module}" for part in page.PARTS)})


def started(module, *words):
    """What ``python -m`` does with these words, and the code it ends with; in this process, which has the imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["", *words])
        for known in (module, f"{module}.__main__"):
            patch.delitem(sys.modules, known, raising=False)
        with pytest.raises(SystemExit) as end:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    return end.value.code


@pytest.mark.parametrize("module", MODULES)
def test_help(module, capsys):
    code = started(module, "--help")
    printed = capsys.readouterr()
    assert code in (0, None), printed.err
    assert f"python -m {module}" in printed.out  # the first lines of a module are its help


def test_arguments_of_every_part_are_understood(capsys):
    """Each part's command line ends in --help, so that an argument its module does not know fails first."""
    for part in page.PARTS:
        takes = {"data": ["--data", "."], "peers": ["--peers-python", "python"]}
        words = [*part.arguments, *(word for name in part.takes for word in takes[name])]
        assert started(f"benchmarks.{part.module}", *words, "--help") in (0, None), capsys.readouterr().err


def test_unknown_parts_are_refused():
    command = [sys.executable, "-m", "benchmarks", "--only", "nothing"]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "invalid choice: 'nothing'" in done.stderr


def test_a_quick_part_writes_the_page_and_leaves_the_others(tmp_path):
    """kernel needs no peer; this interpreter stands in for theirs."""
    older = [
        "# Benchmarks\n",
        *(f"## {title}\n\nas it was\n" for title in ("A race of agents", "The decision service")),
    ]
    (tmp_path / "R.md").write_text("\n".join(older))
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", "kernel", "--peers-python", sys.executable]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "R.md")], env=ENVIRONMENT, cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "R.md").read_text()
    assert "--quick" in text and "GPUCB, 60 rounds" in text and "scikit-learn, refitted" in text
    assert "scikit-learn " in text and " cores" in text and " UTC, load " in text
    assert text.count("as it was") == 2
    assert text.index("## A race of agents") < text.index("GPUCB, 60 rounds") < text.index("## The decision service")


def test_turns_alternate_and_the_first_is_not_counted():
    order = []
    sides = common.in_turns(lambda turn: order.append(("ours", turn)), lambda turn: order.append(("theirs", turn)), 2)
    assert order == [("ours", -1), ("theirs", -1), ("ours", 0), ("theirs", 0), ("ours", 1), ("theirs", 1)]
    assert [len(side) for side in sides] == [2, 2]


def test_ratio_says_how_many_times_better_armwise_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(common.ROWS, str(tmp_path / "rows"))
    common.compare("a step", "a peer", ([0.2, 0.1, 0.3], [0.8, 0.4, 0.6]))
    row = json.loads((tmp_path / "rows").read_text())
    assert row["ratio"] == pytest.approx(3.0) and row["ours"] == "200 ms" and row["theirs"] == "600 ms"
    assert "**3**" in page.table([row]) and "3x" in capsys.readouterr().out
    assert "| 0.5 |" in page.table([row | {"ratio": 0.5}])


def test_of_two_files_of_one_name_the_one_that_is_read_is_said(tmp_path, capsys):
    """The same rows in another order give other errors: a page that does not say which were read compares the two."""
    for folder in ("b", "a"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rows.parquet").touch()
    assert common.find(tmp_path, "rows.parquet") == tmp_path / "a" / "rows.parquet"
    assert "has rows.parquet in a, b: the first is read" in capsys.readouterr().err
    common.find(tmp_path / "b", "rows.parquet")
    assert capsys.readouterr().err == ""
