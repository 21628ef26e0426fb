"""The command line's own manners: quick help, one clear line on bad input, exit codes."""

import subprocess
import sys
import time

import pytest

from armwise.cli import main as cli
from armwise.cli.main import COMMANDS, main


def test_help_lists_the_commands_and_is_quick_because_it_loads_no_room():
    script = (
        "import sys; from armwise.cli.main import main; code = main(['--help']);"
        "assert 'numpy' not in sys.modules; sys.exit(code)"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    took = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert "COMMAND" in done.stdout
    assert took < 2.0  # 0.1 s on an idle machine; with numpy several times that


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "armwise", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[0]) == (0, "armwise")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["tabel"], "armwise: error: unknown command 'tabel'; did you mean table?"),
        (["--verbos"], "armwise: error: unknown option --verbos (see armwise --help)"),
        (["table", "--formt", "text"], "did you mean --format?"),
        (["table", "extra"], "armwise table: error: unknown argument extra"),
        (["table", "--format", "pdf"], "argument --format: invalid choice: 'pdf'"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, line, capsys):
    assert main(words) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert line in out.err
    assert out.err.count("\n") == 1


@pytest.mark.parametrize("problem", [ValueError("a\nb"), FileNotFoundError(2, "No such file", "x.csv")])
def test_what_a_command_raises_becomes_one_line(problem, capsys, monkeypatch):
    def fail(words):
        raise problem

    monkeypatch.setattr(cli, "_run", fail)
    assert main(["table"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(name, capsys):
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"example:\n  armwise {name}" in out
    assert "--json" in out


def test_no_command_prints_the_help(capsys):
    assert main([]) == 0
    assert "table" in capsys.readouterr().out
