"""The compiled kernels: every hot loop of the package, as one extension with a submodule per file of C++.

It may import nothing of the package.
Invariant: every variant of the extension gives the same bits.

The C++ is in folders: ``linalg`` (arrays, SIMD, random numbers), ``models``, ``gaussian_processes``, ``encoding``,
``choices`` (checks, draws, whole decisions), ``agents`` and ``intervals``; the submodules have no folders.

``armwise.native.ridge`` is the submodule ``ridge`` of the variant that suits this processor; ``ARMWISE_SIMD=baseline``
(or ``v3``) in the environment forces one. The ``.pyi`` files are its types, written by ``make stubs``.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from armwise.native import _processor

VARIANTS = tuple(variant for variant in ("baseline", "v3") if find_spec(f"armwise.native._{variant}"))
_asked = os.environ.get("ARMWISE_SIMD")
VARIANT = _asked or _processor.best_variant()
if not _asked and VARIANT not in VARIANTS and "baseline" in VARIANTS:
    VARIANT = "baseline"  # which every processor runs
if VARIANT not in VARIANTS:
    raise ImportError(
        f"{'ARMWISE_SIMD is' if _asked else 'this processor runs'} {VARIANT!r}; this build of armwise has "
        f"{', '.join(VARIANTS) or 'no variant'} (in a clone, make native builds them all)"
    )
if VARIANT == "v3":
    from armwise.native import _v3 as _extension  # type: ignore[attr-defined]
else:
    from armwise.native import _baseline as _extension  # type: ignore[attr-defined]

for _name, _module in list(vars(_extension).items()):
    if isinstance(_module, ModuleType):  # a submodule of the extension is imported as one of this package
        globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _module


def make_optimist(*arguments: Any) -> object:
    """Build an ``Optimist`` of the variant in use: pickles name this function, so that none names a variant."""
    from armwise.native.ridge import Optimist

    return Optimist(*arguments)
