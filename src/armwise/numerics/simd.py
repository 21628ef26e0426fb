"""Eight numbers at a time: a vector type for kernels whose loops are too short for the compiler to vectorise.

A ridge model's rows are 10 to 100 numbers long; on such loops automatic vectorisation spends its time in the scalar
remainder. A row padded to a multiple of eight (``padded``) is read with ``load``, combined with ``fma``, and written
with ``store``; LLVM maps the eight lanes to whatever the processor has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending
from numba.core import cgutils, types
from numba.extending import models, register_model

intrinsic: Any = extending.intrinsic  # its own annotations describe the function it takes, not the one it makes
LANES = 8
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_INDEX = ir.IntType(32)


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name="lanes")


_lanes = _Lanes()


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def padded(n: int) -> int:
    """The smallest multiple of eight not below n.

    >>> padded(20)
    24
    """
    return -(-n // LANES) * LANES


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def load(_context: Any, array: Any, index: Any) -> Any:
    """Eight entries of a contiguous array, from a flat index on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1]))
        value.align = 8
        return value

    return _lanes(array, types.intp), generate


@intrinsic
def store(_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight entries of a contiguous array, from a flat index on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        written = builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1]))
        written.align = 8
        return context.get_dummy_value()

    return types.void(array, types.intp, _lanes), generate


@intrinsic
def splat(_context: Any, number: Any) -> Any:
    """The same number in all eight lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, args[0], ir.Constant(_INDEX, 0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
        return builder.shuffle_vector(first, nothing, everywhere)

    return _lanes(types.float64), generate


@intrinsic
def fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c in each lane, rounded once wherever it is compiled."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64"), args)

    return _lanes(_lanes, _lanes, _lanes), generate


@intrinsic
def total(_context: Any, lanes: Any) -> Any:
    """The sum of the eight lanes, always in the same order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector, width = args[0], LANES
        while width > 1:
            half = width // 2
            sides = [ir.Constant(ir.VectorType(_INDEX, half), list(range(s, s + half))) for s in (0, half)]
            nothing = ir.Constant(vector.type, ir.Undefined)
            low, high = (builder.shuffle_vector(vector, nothing, side) for side in sides)
            vector, width = builder.fadd(low, high), half
        return builder.extract_element(vector, ir.Constant(_INDEX, 0))

    return types.float64(_lanes), generate


@intrinsic
def totals(_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """The sums of eight vectors, as one vector: a third of the work of eight calls of ``total``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors, width = list(args), 1
        while len(vectors) > 1:  # each pass adds runs of ``width`` lanes pairwise, and halves the vectors
            pairs = []
            for x, y in zip(vectors[::2], vectors[1::2], strict=True):
                starts = range(0, LANES, 2 * width)
                sides = []
                for shift in (0, width):
                    lanes = [s + shift + i + side for s in starts for side in (0, LANES) for i in range(width)]
                    sides.append(builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_INDEX, LANES), lanes)))
                pairs.append(builder.fadd(*sides))
            vectors, width = pairs, 2 * width
        return vectors[0]

    return _lanes(*[_lanes] * 8), generate


def aligned_zeros(*shape: int) -> np.ndarray:
    """Zeros whose first entry starts a cache line, so that no load of eight straddles two.

    >>> aligned_zeros(3, 8).ctypes.data % 64
    0
    """
    size = int(np.prod(shape))
    room = np.zeros(size + LANES)
    start = -(room.ctypes.data // 8) % LANES
    return room[start : start + size].reshape(shape)
