"""The release checklist names every reason, and is content where there is none."""

import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "release-check"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = SourceFileLoader("release_check", str(TOOL))
    spec = spec_from_loader("release_check", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree that is ready."""
    (tmp_path / "src/armwise").mkdir(parents=True)
    (tmp_path / "src/armwise/__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "tests/golden/1.2.3").mkdir(parents=True)
    (tmp_path / "tests/golden/1.2.3/journal.zip").write_bytes(b"")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [1.2.3] - 2026-12-01\n\n### Added\n- A thing.\n\n## [1.2.2]\n"
    )
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\ndate-released: 2026-12-01\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=tmp_path, check=True)
    return tmp_path


def committed(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "Change"], cwd=tree, check=True
    )


def test_a_tree_that_is_ready_has_no_reasons(tool: Any, tree: Path) -> None:
    assert list(tool.reasons(tree)) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("src/armwise/__init__.py", "1.2.3", "1.3", "__version__ is '1.3', expected MAJOR.MINOR.PATCH"),
        ("src/armwise/__init__.py", "1.2.3", "1.2.4", "the first section is 1.2.3, expected [1.2.4]"),
        ("CHANGELOG.md", "2026-12-01", "Unreleased", "the date of [1.2.3] is 'Unreleased', expected YYYY-MM-DD"),
        ("CHANGELOG.md", "- A thing.\n", "- A thing.\n" * 60, "has 63 lines, expected at most 60"),
        ("CHANGELOG.md", "### Added\n- A thing.\n", "", "[1.2.3] says nothing"),
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "version is '1.2.2', expected '1.2.3'"),
        ("CITATION.cff", "2026-12-01", "2026-11-01", "date-released is '2026-11-01', expected '2026-12-01'"),
    ],
)
def test_what_is_not_ready_is_named(tool: Any, tree: Path, name: str, old: str, new: str, reason: str) -> None:
    committed(tree, name, old, new)
    assert any(reason in each for each in tool.reasons(tree)), list(tool.reasons(tree))


def test_a_file_that_is_not_committed_is_named(tool: Any, tree: Path) -> None:
    (tree / "left over").write_text("")
    [reason] = tool.reasons(tree)
    assert "the tree is not clean" in reason and "left over" in reason


def test_a_version_is_released_once(tool: Any, tree: Path) -> None:
    subprocess.run(["git", "tag", "v1.2.3"], cwd=tree, check=True)
    [reason] = tool.reasons(tree)
    assert "v1.2.3 is tagged already" in reason
