"""Lines of CSV files."""

from armwise.offline.logs.formats.lines import Lines


def test_empty_lines_count(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\na,1\n\nb,0\n")
    assert Lines([str(path)], ",").place(1) == "line 4"
