"""The compiled kernels, in the variant that suits this processor; every variant gives the same bits.

``ARMWISE_SIMD=baseline`` (or ``v3``) in the environment forces one.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from armwise.native import _processor


def _is_built(variant: str) -> bool:
    spec = find_spec(f"armwise.native._{variant}")
    return spec is not None and spec.origin is not None  # a folder of stubs alone has no origin


VARIANTS = tuple(variant for variant in ("baseline", "v3") if _is_built(variant))
_asked = os.environ.get("ARMWISE_SIMD")
VARIANT = _asked or _processor.best_variant()
if not _asked and VARIANT not in VARIANTS and "baseline" in VARIANTS:
    VARIANT = "baseline"  # which every processor runs
if VARIANT not in VARIANTS:
    raise ImportError(
        f"{'ARMWISE_SIMD is' if _asked else 'this processor runs'} {VARIANT!r}; this build of armwise has "
        f"{', '.join(VARIANTS) or 'no variant'} (in a clone, make native builds them all)"
    )

if TYPE_CHECKING:
    from armwise.native._baseline import choice as choice
    from armwise.native._baseline import cofine as cofine
    from armwise.native._baseline import decisions as decisions
    from armwise.native._baseline import experts as experts
    from armwise.native._baseline import features as features
    from armwise.native._baseline import fits as fits
    from armwise.native._baseline import gp as gp
    from armwise.native._baseline import gp_budget as gp_budget
    from armwise.native._baseline import kary as kary
    from armwise.native._baseline import kernels as kernels
    from armwise.native._baseline import likelihood as likelihood
    from armwise.native._baseline import logistic as logistic
    from armwise.native._baseline import maps as maps
    from armwise.native._baseline import mixture as mixture
    from armwise.native._baseline import nested as nested
    from armwise.native._baseline import plain as plain
    from armwise.native._baseline import policies as policies
    from armwise.native._baseline import regression as regression
    from armwise.native._baseline import requests as requests
    from armwise.native._baseline import ridge as ridge
    from armwise.native._baseline import sequences as sequences
    from armwise.native._baseline import spectral as spectral
    from armwise.native._baseline import staged as staged
    from armwise.native._baseline import thompson as thompson
    from armwise.native._baseline import truncated as truncated
    from armwise.native._baseline import weights as weights
    from armwise.native._baseline import winning as winning
else:
    _variant = import_module(f"armwise.native._{VARIANT}")

    def __getattr__(name: str) -> object:
        return getattr(_variant, name)
