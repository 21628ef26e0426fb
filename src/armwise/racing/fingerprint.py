"""What decides a run, as one hash: settings and data, and the code of agent, world and everything they use."""

from __future__ import annotations

import dis
import functools
import hashlib
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
# What Python writes into a class by itself, and prose: neither changes what a run does.
_NOT_CODE = {"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__annotations__", "_abc_impl",
             "__firstlineno__", "__static_attributes__"}  # fmt: skip
_INSTALLED = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}


def fingerprint(thing: Any) -> str:
    """A hash of an object's content and of the code behind it: editing a function it uses changes the hash.

    Functions count by their instructions, constants, defaults, enclosed values and the globals they read; classes by
    their methods; both also where they are lambdas or were typed at a prompt. Installed packages count by their
    version, this package by its files.

    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    return hashlib.sha256(package_code() + _Walk().digest(thing)).hexdigest()[:32]


@functools.cache
def package_code() -> bytes:
    """A hash of the files of this package, compiled ones too."""
    total, folder = hashlib.sha256(), Path(sys.modules[_PACKAGE].__file__ or "").parent
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".so", ".pyd")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.digest()


class _Walk:
    """Digests by identity, so that a thing met twice is read once, and a thing that holds itself ends."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bytes]] = {}  # with the thing itself, so that its id stays its own

    def digest(self, thing: Any) -> bytes:
        if isinstance(thing, _PLAIN):
            return _hash(type(thing).__name__, repr(thing))
        if id(thing) not in self._known:
            self._known[id(thing)] = (thing, _hash("open", str(len(self._known))))  # what a cycle comes back to
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
            if _installed(thing.__module__) and "<" not in thing.__qualname__:  # a lambda's name names nothing
                return _hash("name", thing.__module__, thing.__qualname__, _version(thing.__module__))
            return self._class(thing) if isinstance(thing, type) else self._function(thing)
        if isinstance(thing, (staticmethod, classmethod)):
            return _hash(type(thing).__name__, self.digest(thing.__func__))
        if isinstance(thing, property):
            return _hash("property", *map(self.digest, (thing.fget, thing.fset, thing.fdel)))
        if isinstance(thing, types.BuiltinFunctionType) and isinstance(thing.__self__, (types.ModuleType, type(None))):
            return _hash("name", str(thing.__module__), thing.__qualname__, _version(str(thing.__module__)))
        return self._object(thing)

    def _function(self, function: types.FunctionType) -> bytes:
        read = sorted(name for name in set(_globals(function.__code__)) if name in function.__globals__)
        used = [(name, function.__globals__[name]) for name in read]
        enclosed = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, enclosed, used)
        return _hash("function", *map(self.digest, parts))

    def _class(self, cls: type) -> bytes:
        own = {name: value for name, value in vars(cls).items() if name not in _NOT_CODE and not _slot(value)}
        return _hash("class", cls.__qualname__, *map(self.digest, cls.__bases__), self.digest(own))

    def _module(self, module: types.ModuleType) -> bytes:
        if _installed(module.__name__):
            return _hash("module", module.__name__, _version(module.__name__))
        code = (types.FunctionType, types.ModuleType, type)
        return _hash("module", self.digest({k: v for k, v in vars(module).items() if isinstance(v, code)}))

    def _object(self, thing: Any) -> bytes:
        try:
            # What pickle would write, read instead: functions inside may then be lambdas.
            parts = thing.__reduce_ex__(4)
        except Exception as error:
            raise ValueError(
                f"checkpoint must be able to tell runs apart, and cannot read {thing!r:.80}, which an agent or the "
                f"world holds ({type(error).__name__}: {error}): race without checkpoint, or give it __reduce__"
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


def _globals(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals(inner)


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # not yet bound
        return False


def _slot(value: Any) -> bool:
    return inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value)


@functools.cache
def _installed(name: str) -> bool:
    """Of this package, of Python or of an installed package: what a version stands for."""
    top = name.partition(".")[0]
    if top == _PACKAGE or (top in sys.stdlib_module_names and top != "__main__"):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and any(folder in Path(file).parents for folder in _INSTALLED)


def _version(name: str) -> str:
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names:
        return sys.version
    return str(getattr(sys.modules.get(top), "__version__", ""))
