"""The package as a stranger finds it: light to import, documented by examples, one version."""

# mypy: disable-error-code="arg-type, attr-defined"

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import armwise as aw

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/armwise"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported_by(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(' '.join(m for m in sys.modules if '.' not in m))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not imported_by("import armwise") & {"numpy", "scipy", "sklearn", "pandas", "matplotlib"}


def test_an_agent_needs_only_the_core_dependencies():
    heavy = {"sklearn", "pandas", "pyarrow", "matplotlib", "joblib", "dask", "starlette", "tqdm", "polars"}
    assert not imported_by("import armwise as aw; aw.LinUCB(2); aw.Exp4P; aw.GPUCB; aw.ILoveToConBandits") & heavy


def test_a_race_waits_for_no_package_that_only_its_tables_pictures_and_proofs_need():
    """Each of its workers would import it too."""
    assert not imported_by("import armwise.racing") & {"scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "dask"}


def test_the_core_depends_on_two_packages_alone():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[<>=]", d)[0] for d in project["dependencies"]} == {"numpy", "msgspec"}
    assert {"scipy", "race", "serve", "sklearn", "dask", "all", "dev"} <= set(project["optional-dependencies"])


def test_the_version_stands_in_one_place():
    assert re.fullmatch(r"\d+\.\d+\.\d+", aw.__version__)
    assert f"version: {aw.__version__}" in (ROOT / "CITATION.cff").read_text()


def public_things():
    """Every public function and class of the package, and their public methods."""
    for name in aw.__all__:
        thing = getattr(aw, name)
        if inspect.ismodule(thing):
            for inner in getattr(thing, "__all__", None) or vars(thing):
                if getattr(getattr(thing, inner), "__module__", "").startswith(thing.__name__) and inner[0] != "_":
                    yield f"{name}.{inner}", getattr(thing, inner)
        else:
            yield name, thing


@pytest.mark.parametrize("name", [name for name, _ in public_things()])
def test_every_public_name_has_a_docstring_with_an_example(name):
    thing = dict(public_things())[name]
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return
    documents = [thing.__doc__ or ""]
    if inspect.isclass(thing):  # an abstract base may show its use in its methods
        documents += [m.__doc__ or "" for _, m in inspect.getmembers(thing, inspect.isroutine)]
    assert thing.__doc__, f"{name} has no docstring"
    assert any(">>>" in d for d in documents), f"{name} has no example"


def test_unknown_names_are_refused_as_by_any_module():
    with pytest.raises(AttributeError, match="no attribute 'LinUCBB'"):
        aw.LinUCBB  # noqa: B018


@pytest.mark.parametrize("package", [aw, aw.offline])
def test_the_stub_is_the_list_of_public_names(package):
    """Type checkers and the package read the same lines: a name that one of them misses would be an error for users."""
    tree = ast.parse(Path(f"{package.__file__}i").read_text())
    listed = [alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [name for name in listed if name] == list(package._public.homes)
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_completion_offers_the_public_names_and_nothing_else():
    assert {name for name in dir(aw) if not name.startswith("__")} == set(aw.__all__)


def test_no_check_vanishes_with_assertions():
    """`python -O` drops assertions: one that does more than name a type would take a guard with it."""
    harmless = {"isinstance", "callable", "all", "set", "get_args"}
    for path in PACKAGE.rglob("*.py"):
        if "testing" in path.parts:  # whose checks are assertions
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Assert):
                called = {ast.unparse(call.func) for call in ast.walk(node.test) if isinstance(call, ast.Call)}
                assert called <= harmless, f"{path}:{node.lineno}: {ast.unparse(node)}"


def imported_folders(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """For each import of another folder: where it stands, and the words by which the folder may name it.

    A folder beside or below is named as seen from the closest common folder, one above also by the module. Imports for
    type checkers count for nothing, and neither do the folder's own folders and the package's public names.
    """
    for path in folder.glob("*.py"):
        conditions = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.If)]
        for_types = {
            inner for node in conditions if "TYPE_CHECKING" in ast.unparse(node.test) for inner in ast.walk(node)
        }
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("armwise.") and node not in for_types:
                for alias in node.names:
                    target = PACKAGE.joinpath(*str(node.module).split(".")[1:], alias.name)
                    while not (target.is_dir() or target.with_suffix(".py").exists()):
                        target = target.parent
                    there = target if target.is_dir() else target.parent
                    if there == PACKAGE or there.is_relative_to(folder):
                        continue
                    common = next(above for above in [folder, *folder.parents] if there.is_relative_to(above))
                    words = {there.name, target.name} if there == common else {there.relative_to(common).parts[0]}
                    yield f"{path}:{node.lineno}", words


@pytest.mark.parametrize("folder", sorted(p.parent for p in PACKAGE.rglob("*/__init__.py")), ids=lambda p: p.name)
def test_a_folder_says_what_it_holds_what_it_may_import_and_what_stays_true(folder):
    words = ast.get_docstring(parsed(folder / "__init__.py")) or ""
    opening = re.match(r"[^\n]+[.]\n\nIt may import ([^.]+)[.]\nInvariant: [^\n]+", words)
    assert opening, f"{folder}: the docstring opens otherwise: {words[:300]}"
    if opening[1] != "every room":
        said = set(re.findall(r"\w+", opening[1]))
        untold = [f"{place} imports {' or '.join(ws)}" for place, ws in imported_folders(folder) if not ws & said]
        assert not untold, f"{folder}: may import {opening[1]}, but {untold}"
