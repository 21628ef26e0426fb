"""Save and load: a JSON header and raw arrays with a digest; no pickle, no code.

The file, in order (all integers little-endian):

=======================  =====================================================================
bytes                    meaning
=======================  =====================================================================
``ARMWISE!``            8 bytes that identify the format
version                  uint32, ``FORMAT`` below; a newer one is refused
header length            uint64
header                   UTF-8 JSON: ``{"object": tree, "arrays": [{"dtype", "shape"}, ...]}``
arrays                   each array's bytes in C order, one after the other
digest                   SHA-256 of everything before it
=======================  =====================================================================

In the tree a plain JSON value stands for itself; ``{"$": kind, ...}`` stands for an array, a tuple, a random
generator, or one of our own objects with its arguments (``params``) and its learnt state (``state``).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armwise.core.tools.extras import MissingExtra, needs

MAGIC = b"ARMWISE!"
FORMAT = 1
_DIGEST = 32
_PLAIN = frozenset({type(None), bool, int, str})  # a value of these kinds stands for itself, and most are
_registry: dict[str, type[Saved]] = {}


class CannotSave(ValueError):
    """A value that has no place in a model file; the message names it."""


class LoadError(ValueError):
    """A file that cannot be loaded; the message says why.

    >>> loads(b"something else")
    Traceback (most recent call last):
    ...
    armwise.core.saving.LoadError: not an armwise file: it does not begin with ARMWISE!
    """


class Saved:
    """Base of objects that can be saved: rebuilt from the constructor's arguments, then given the learnt state.

    Each constructor argument is kept in an attribute of the same name (``seed`` apart); ``_learnt`` names the
    attributes that learning changes.
    """

    _learnt: ClassVar[tuple[str, ...]] = ()
    _namespace: ClassVar[str] = ""  # "kernels." where the class is public as armwise.kernels.X, not armwise.X
    _saved_as: ClassVar[str] = ""  # the class's own name in files, where it has another in the code

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = _class_name(cls)
        if name.startswith("armwise:") and name in _registry and _registry[name].__module__ != cls.__module__:
            raise TypeError(f"two classes would be saved as {name}: give one of them a _namespace")
        _registry[name] = cls

    def params(self) -> dict[str, Any]:
        """The constructor's arguments, except the seed: ``type(x)(**x.params())`` makes an equal object.

        >>> import armwise as aw
        >>> aw.LinUCB(dim=3, lam=0.5).params()["lam"]
        0.5
        """
        return {name: getattr(self, name) for name in _parameters(type(self).__init__)}

    def _state(self) -> dict[str, Any]:
        """The learnt state; override it with ``_restore`` if ``_learnt`` attributes are not all of it."""
        return {name: getattr(self, name) for name in self._learnt}

    def _restore(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)


@functools.lru_cache(maxsize=1024)
def _parameters(make: Callable[..., None]) -> tuple[str, ...]:
    """The names of a constructor's arguments; cached, because each object of a file needs them."""
    return tuple(name for name in list(inspect.signature(make).parameters)[1:] if name != "seed")


def differences(params: dict[str, Any], others: dict[str, Any]) -> list[str]:
    """List the arguments in which two objects of one class differ; a ``dim`` of None equals any."""
    found = []
    for name, mine in params.items():
        theirs = others[name]
        if name == "dim" and (mine is None or theirs is None):
            continue
        if isinstance(mine, Saved) and type(mine) is type(theirs):
            found += [f"{name}.{inside}" for inside in differences(mine.params(), theirs.params())]
        elif not _same(mine, theirs):
            found.append(f"{name} is {mine!r:.60} here and {theirs!r:.60} there")
    return found


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return np.array_equal(mine, theirs)
    if hasattr(mine, "tocsr") and hasattr(theirs, "tocsr"):
        return bool(mine.shape == theirs.shape and (mine != theirs).nnz == 0)
    if isinstance(mine, (list, tuple)) and type(mine) is type(theirs):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(mine, Saved):
        return type(mine) is type(theirs) and not differences(mine.params(), theirs.params())
    return bool(mine == theirs)


def _class_name(cls: type[Saved]) -> str:
    own = cls.__dict__.get("_saved_as") or cls.__qualname__
    return f"{cls.__module__.split('.')[0]}:{cls._namespace}{own}"


def _find_class(name: str) -> type[Saved]:
    if name not in _registry and name.startswith("armwise:"):
        # Reading a public name imports its module, which registers its classes.
        import armwise

        found: Any = armwise
        for part in name.partition(":")[2].split("."):
            found = getattr(found, part, None)
    if name not in _registry:
        raise LoadError(
            f"the file holds a {name.partition(':')[2]} of package {name.partition(':')[0]!r}, which is not "
            "known here: import the module that defines it first (or upgrade armwise)"
        )
    return _registry[name]


def _encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays, where)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biuf":
            raise CannotSave(f"{where} cannot be saved: an array of {value.dtype}; expected numbers or booleans")
        arrays.append(value)
        return {"$": "array", "index": len(arrays) - 1}
    if isinstance(value, list):
        return [v if type(v) in _PLAIN else _encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [_encode(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        pairs = [[_encode(k, arrays, f"a key of {where}"), _encode(v, arrays, f"{where}[{k!r}]")]
                 for k, v in value.items()]  # fmt: skip
        return {"$": "dict", "items": pairs}
    if isinstance(value, np.random.Generator):
        return {"$": "rng", "state": _encode(value.bit_generator.state, arrays, where)}
    if isinstance(value, Saved):
        name = _class_name(type(value))
        if _registry.get(name) is not type(value) or "<locals>" in name:
            raise CannotSave(
                f"{where} cannot be saved: class {type(value).__qualname__} is not at the top level of a module"
            )
        params = {k: _encode(v, arrays, f"{where}.{k}") for k, v in value.params().items()}
        state = {k: _encode(v, arrays, f"{where}.{k}") for k, v in value._state().items()}
        return {"$": "object", "class": name, "params": params, "state": state}
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        csr = value.tocsr()
        parts = [_encode(np.asarray(p), arrays, where) for p in (csr.data, csr.indices, csr.indptr)]
        return {"$": "csr", "shape": [int(n) for n in csr.shape], "parts": parts}
    raise CannotSave(
        f"{where} cannot be saved: {type(value).__name__} {value!r:.80} has no safe file format; "
        "expected numbers, strings, arrays, lists, dicts or armwise objects"
    )


def _decode(tree: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(tree, list):
        return [v if type(v) in _PLAIN else _decode(v, arrays) for v in tree]
    if not isinstance(tree, dict):
        return tree
    kind = tree.get("$")
    if kind == "float":
        return float(tree["value"])
    if kind == "array":
        return arrays[tree["index"]]
    if kind == "tuple":
        return tuple(_decode(v, arrays) for v in tree["items"])
    if kind == "dict":
        return {_decode(k, arrays): _decode(v, arrays) for k, v in tree["items"]}
    if kind == "rng":
        return _decode_rng(_decode(tree["state"], arrays))
    if kind == "csr":
        with needs():
            from scipy.sparse import csr_array

        data, indices, indptr = (_decode(p, arrays) for p in tree["parts"])
        return csr_array((data, indices, indptr), shape=tuple(tree["shape"]))
    if kind == "object":
        cls = _find_class(tree["class"])
        thing = cls(**{k: _decode(v, arrays) for k, v in tree["params"].items()})
        thing._restore({k: _decode(v, arrays) for k, v in tree["state"].items()})
        return thing
    raise LoadError(f"the file holds a value of unknown kind {kind!r}; it may need a newer armwise")


def _decode_rng(state: dict[str, Any]) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        raise LoadError(f"the file holds an unknown random generator {name!r}")
    bits = getattr(np.random, name)()
    bits.state = state
    return np.random.Generator(bits)


def dumps(thing: Saved) -> bytes:
    """Serialise an object to the bytes that ``save`` writes."""
    arrays: list[np.ndarray] = []
    tree = _encode(thing, arrays, type(thing).__name__)
    raw = [np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for a in arrays]
    described = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in raw]
    header = json.dumps({"object": tree, "arrays": described}, allow_nan=False).encode()
    pieces = [MAGIC, struct.pack("<IQ", FORMAT, len(header)), header, *(a.tobytes() for a in raw)]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return b"".join([*pieces, digest.digest()])  # joined once: copying a large model holds the GIL


def loads(data: bytes, source: str = "") -> Any:
    """Read the object that ``dumps`` wrote; raise ``LoadError`` with the reason for anything else."""
    prefix = f"{source}: " if source else ""
    if data[: len(MAGIC)] != MAGIC:
        raise LoadError(f"{prefix}not an armwise file: it does not begin with ARMWISE!")
    start = len(MAGIC) + 12
    if len(data) < start + _DIGEST:
        raise LoadError(f"{prefix}the file is truncated: only {len(data)} bytes")
    version, length = struct.unpack("<IQ", data[len(MAGIC) : start])
    if version > FORMAT:
        raise LoadError(f"{prefix}written in format {version}; this armwise reads up to {FORMAT}: upgrade armwise")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise LoadError(f"{prefix}the file is truncated or altered: its SHA-256 does not match its contents")
    try:
        header = json.loads(data[start : start + length])
        arrays, offset = [], start + length
        for entry in header["arrays"]:
            dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
            count = math.prod(shape)
            flat = np.frombuffer(data, dtype=dtype, count=count, offset=offset)
            arrays.append(flat.reshape(shape).astype(dtype.newbyteorder("="), copy=True))
            offset += count * dtype.itemsize
        return _decode(header["object"], arrays)
    except LoadError as error:
        raise LoadError(f"{prefix}{error}") from None
    except MissingExtra:
        raise
    except Exception as error:  # the digest is right, so another program or version wrote it
        raise LoadError(f"{prefix}the contents do not describe an agent: {error}") from error


def save(thing: Saved, path: str | os.PathLike[str]) -> None:
    """Write to ``path`` atomically: a crash leaves the old file or the new one."""
    data, target = dumps(thing), Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        try:
            opened = os.fdopen(handle, "wb")
        except BaseException:
            os.close(handle)
            raise
        with opened as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Load an agent that ``agent.save(path)`` wrote; it continues exactly where it stopped."""
    return loads(Path(path).read_bytes(), source=str(path))
