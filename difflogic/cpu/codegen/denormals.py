"""Flush denormal floats (those too small for a complete mantissa) to 0 while compiled code runs.

In a deep circuit of pass-through gates, millions of gradients shrink to denormals, far below anything that affects
the optimiser, and processors take many times as long to compute with them.
"""

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value

from difflogic.cpu.codegen.compiled import call, intrinsic

_X86_FLUSH = 0x8040
"""Bits FTZ and DAZ of the x86 register MXCSR, which turn denormal results and operands into 0."""
_ARM_FLUSH = 1 << 24
"""Bit FZ of the Arm register FPCR, which has the effect of both x86 bits."""
_POINTER = ir.IntType(8).as_pointer()


@intrinsic
def flush_denormals(_: Any) -> Any:
    """Flush denormals to 0 in this thread, and return the previous setting for `restore`."""

    def build(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        before = _get(builder)
        flush = _X86_FLUSH if _machine() == "x86" else _ARM_FLUSH
        # Only these bits are set: the caller's rounding mode and exception masks stay.
        _set(builder, builder.or_(before, ir.Constant(before.type, flush)))
        return before

    return types.uint64(), build


@intrinsic
def restore(_: Any, before: Any) -> Any:
    """Restore the setting that `flush_denormals` returned."""

    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _set(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.uint64), build


def _machine() -> str:
    name = platform.machine().lower()
    return "x86" if name in ("x86_64", "amd64") else "arm" if name in ("aarch64", "arm64") else ""


def _get(builder: Any) -> Any:
    """Emit code that reads the floating-point control register, as 64 bits; 0 on an unknown processor."""
    word = ir.IntType(64)
    # The instructions copy the register only to and from memory, here on the stack.
    if _machine() == "x86":
        place = alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        call(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), builder.bitcast(place, _POINTER))
        return builder.zext(builder.load(place), word)
    if _machine() == "arm":
        return call(builder, "llvm.aarch64.get.fpcr", word)
    # Elsewhere denormals only cost time: results differ by less than any tolerance.
    return ir.Constant(word, 0)


def _set(builder: Any, value: Any) -> None:
    if _machine() == "x86":
        place = alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        builder.store(builder.trunc(value, ir.IntType(32)), place)
        call(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), builder.bitcast(place, _POINTER))
    elif _machine() == "arm":
        call(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), value)
