"""armwise table and armwise advise."""

import json

import pytest

import armwise as aw
from armwise.cli.main import main


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "json"])
def test_table_prints_what_the_function_gives(format, capsys):
    assert main(["table", "--format", format]) == 0
    assert capsys.readouterr().out == str(aw.table(format)) + "\n"


def test_table_as_json_and_one_row_of_it(capsys):
    assert main(["table", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(aw.table().rows)
    assert main(["table", "--agent", "LINUCB"]) == 0
    assert "adversarial: no\n" in capsys.readouterr().out
    assert main(["table", "--agent", "linucv"]) == 2
    error = "armwise table: error: unknown agent 'linucv'; did you mean LinUCB or SupLinUCB or LinCBwK?\n"
    assert capsys.readouterr().err == error


def test_table_with_assumptions(capsys):
    assert main(["table", "--linear", "--no-horizon-known"]) == 0
    assert capsys.readouterr().out == str(aw.table(linear=True, horizon_known=False)) + "\n"


def test_advise(capsys):
    assert main(["advise", "--features", "visitor", "--dim", "7", "--log"]) == 0
    assert capsys.readouterr().out == str(aw.advise(features="visitor", dim=7, log=True)) + "\n"
    assert main(["advise", "--adversarial", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == aw.advise(adversarial=True).data()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n-arms", "0"], "n_arms must be a whole number >= 2"),
        (["--dim", "many"], "invalid int value"),
        (["--drit"], "did you mean --drift"),
        (["--features", "both"], "invalid choice"),
        (["--arms-change"], "give features"),
    ],
)
def test_advise_refuses_bad_input_in_one_line(words, message, capsys):
    assert main(["advise", *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
