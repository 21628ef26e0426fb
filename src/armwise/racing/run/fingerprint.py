"""Hash everything that determines a run: settings, data, and the code of the agent, the world and what they use."""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = __name__.partition(".")[0]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
# Attributes that Python adds to a class, and documentation: neither changes a run.
_NOT_CODE = {"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__annotations__", "_abc_impl",
             "__firstlineno__", "__static_attributes__"}  # fmt: skip
_MODULE_NOT_CODE = {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__path__", "__spec__"}
# Locks, loggers, open files: they do not affect the results of a run, and cannot be serialised.
_HANDLES = ("_thread", "threading", "logging", "_io", "io")
_INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_SITES = {"site-packages", "dist-packages"}  # of the user and of the system, in any location


def fingerprint(thing: Any) -> str:
    """Hash an object's content and the code behind it: editing a function that it uses changes the hash.

    A function is hashed by its instructions, constants, defaults, attributes, closure, the globals it reads and the
    modules it imports; a class by its methods; also lambdas and code typed at a prompt. A module of the user's is
    hashed by all its values, an installed package by its version, this package and compiled modules by their files.
    """
    return hashlib.sha256(package_code() + _Walk().digest(thing)).hexdigest()[:32]


@functools.cache
def package_code() -> bytes:
    """Hash the files of this package, including compiled ones."""
    total, folder = hashlib.sha256(), Path(sys.modules[_PACKAGE].__file__ or "").parent
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".so", ".pyd")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.digest()


class _Walk:
    """Digests by identity: an object met twice is read once, and cycles end."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}  # with the object itself, so that no other object gets its id

    def digest(self, thing: Any) -> bytes:
        if isinstance(thing, _PLAIN):
            return _hash(type(thing).__name__, repr(thing))
        if id(thing) not in self._known:
            self._known[id(thing)] = (thing, _hash("open", str(len(self._known))))  # the digest that a cycle sees
            self._known[id(thing)] = (thing, self._read(thing))
        return self._known[id(thing)][1]

    def _read(self, thing: Any) -> bytes:
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject and type(thing) is np.ndarray:
            return _hash("array", str(thing.dtype), str(thing.shape), np.ascontiguousarray(thing).tobytes())
        if type(thing) in (list, tuple):
            return _hash(type(thing).__name__, *map(self.digest, thing))
        if type(thing) in (set, frozenset):
            return _hash("set", *sorted(map(self.digest, thing)))
        if isinstance(thing, (dict, types.MappingProxyType)):
            pairs = sorted((self.digest(key), self.digest(value)) for key, value in thing.items())
            return _hash(type(thing).__name__, *(part for pair in pairs for part in pair))
        if isinstance(thing, types.CodeType):
            return _hash("code", thing.co_code, *map(self.digest, (thing.co_consts, thing.co_names, thing.co_varnames)))
        if isinstance(thing, types.ModuleType):
            return self._module(thing)
        if isinstance(thing, (type, types.FunctionType)):
            if (
                _installed(thing.__module__) and "<" not in thing.__qualname__
            ):  # the name of a lambda does not identify it
                return _hash("name", thing.__module__, thing.__qualname__, _version(thing.__module__))
            return self._class(thing) if isinstance(thing, type) else self._function(thing)
        if isinstance(thing, (staticmethod, classmethod)):
            return _hash(type(thing).__name__, self.digest(thing.__func__))
        if isinstance(thing, property):
            return _hash("property", *map(self.digest, (thing.fget, thing.fset, thing.fdel)))
        if isinstance(thing, types.BuiltinFunctionType) and isinstance(thing.__self__, (types.ModuleType, type(None))):
            return _hash("name", str(thing.__module__), thing.__qualname__, _version(str(thing.__module__)))
        if isinstance(thing, functools._lru_cache_wrapper):  # pickle would write only its name
            return _hash("cached", self.digest(thing.__wrapped__))
        return self._object(thing)

    def _function(self, function: types.FunctionType) -> bytes:
        read = sorted(_globals(function.__code__) & function.__globals__.keys())
        used = [(name, function.__globals__[name]) for name in read]
        enclosed = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
        imported = [_import(name, function.__globals__) for name in _imports(function.__code__)]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, vars(function), enclosed, used,
                 imported)  # fmt: skip
        return _hash("function", *map(self.digest, parts))

    def _class(self, cls: type) -> bytes:
        own = {name: value for name, value in vars(cls).items() if name not in _NOT_CODE and not _slot(value)}
        made = (type(cls), *cls.__bases__)
        return _hash("class", cls.__qualname__, *map(self.digest, made), self.digest(own), _version(cls.__module__))

    def _module(self, module: types.ModuleType) -> bytes:
        if _installed(module.__name__):
            return _hash("module", module.__name__, _version(module.__name__))
        held = {name: value for name, value in vars(module).items() if name not in _MODULE_NOT_CODE}
        return _hash("module", module.__name__, self.digest(held), _version(module.__name__))

    def _object(self, thing: Any) -> bytes:
        try:
            # Hash the parts that pickle would write, because pickle itself refuses lambdas.
            parts = thing.__reduce_ex__(4)
        except Exception as error:
            if type(thing).__module__ in _HANDLES:
                return _hash("handle", type(thing).__qualname__)
            raise ValueError(
                f"checkpoint cannot identify runs: an agent or the world holds {thing!r:.80}, which no pickle holds "
                f"({type(error).__name__}: {error}): race without checkpoint, or define its __reduce__"
            ) from error
        if isinstance(parts, str):
            return _hash("name", str(getattr(thing, "__module__", "")), parts)
        listed = [list(part) if isinstance(part, Iterator) else part for part in parts]
        return _hash("object", self.digest(type(thing)), *map(self.digest, listed))


def _hash(*parts: str | bytes) -> bytes:
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little") + data)
    return total.digest()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _globals(code: types.CodeType) -> set[str]:
    """The names of the globals that a function reads."""
    steps = (step for each in _codes(code) for step in dis.get_instructions(each))
    return {str(step.argval) for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def _imports(code: types.CodeType) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Level (1: ``from . import``), module and names of the imports inside a function."""
    for each in _codes(code):
        steps = list(dis.get_instructions(each))
        for level, names, step in zip(steps, steps[1:], steps[2:]):
            if step.opname == "IMPORT_NAME":
                yield int(level.argval), str(step.argval), tuple(names.argval or ())


def _import(what: tuple[int, str, tuple[str, ...]], into: dict[str, Any]) -> Any:
    """Import what a function would import: the module and its submodules of those names, or a mark if missing."""
    level, name, names = what
    if level:
        name = importlib.util.resolve_name("." * level + name, into.get("__package__") or "")
    if _installed(name):
        return "installed", name, _version(name)
    try:
        module = importlib.import_module(name)
    except ImportError:
        return "missing", name
    deeper: list[Any] = []
    for each in names:
        if not hasattr(module, each):
            try:
                deeper.append(importlib.import_module(f"{name}.{each}"))
            except ImportError:
                deeper.append(("missing", each))
    return module, deeper


def _slot(value: Any) -> bool:
    return inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)


@functools.cache
def _installed(name: str) -> bool:
    """Whether a module belongs to this package, to Python or to an installed package: a version identifies it."""
    top = name.partition(".")[0]
    if top == _PACKAGE or (top in sys.stdlib_module_names and top != "__main__"):
        return True
    file = _file(name)
    return file is not None and (not _SITES.isdisjoint(file.parts) or not _INSTALLED.isdisjoint(file.parents))


def _file(name: str) -> Path | None:
    """The file of a module, whether or not it was imported already."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(name.partition(".")[0])
        except (ImportError, ValueError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return None if file is None else Path(file)


@functools.cache
def _version(name: str) -> str:
    """The version of an installed module, a hash of the file of a compiled one, or an empty text."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return "" if top == "__main__" else sys.version
    if top == _PACKAGE:
        return ""  # covered by ``package_code``
    if _installed(name):
        try:
            return importlib.metadata.version(top)
        except importlib.metadata.PackageNotFoundError:  # the distribution has another name than the module
            return ", ".join(importlib.metadata.version(each) for each in sorted(set(_distributions().get(top, []))))
    file = _file(name)
    compiled = file is not None and file.suffix in (".so", ".pyd") and file.is_file()
    return hashlib.sha256(file.read_bytes()).hexdigest() if compiled and file is not None else ""


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(importlib.metadata.packages_distributions())
