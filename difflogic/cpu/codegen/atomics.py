"""What threads of compiled code need to work together without Python: counters, and a patient wait."""

from __future__ import annotations

import os
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function

from difflogic.cpu.compiled import inner, intrinsic

SPINS = 200
"""Looks at a counter before a waiting thread offers its processor to others: about a microsecond."""
NO_END = 1 << 62
"""Offers of the processor: never sleep."""
_NAP, _NAP_TIME = ("Sleep", 1) if os.name == "nt" else ("usleep", 50)
"""In milliseconds there, in microseconds here."""
_YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


@intrinsic
def fetch_add(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Add to an int64 element; the element's earlier value. Everything written before is seen by who reads it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element(context, builder, signature, arguments)
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), build


@intrinsic
def look(_: Any, array: Any, index: Any) -> Any:
    """An int64 element as it is now."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.intp), build


@intrinsic
def step_aside(_: Any) -> Any:
    """Let another thread have this processor."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = get_or_insert_function(builder.module, ir.FunctionType(ir.IntType(32), []), _YIELD)
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def nap(_: Any) -> Any:
    """Let others have this processor for a while."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(32)
        function = get_or_insert_function(builder.module, ir.FunctionType(number, [number]), _NAP)
        builder.call(function, [ir.Constant(number, _NAP_TIME)])
        return context.get_dummy_value()

    return types.void(), build


@inner
def wait_for(counters: Any, index: Any, value: Any, yields: Any = NO_END) -> None:
    """Return when `counters[index]` has reached `value`; after so many offers of the processor, sleep between looks."""
    spins = 0
    while look(counters, index) < value:
        spins += 1
        if spins > SPINS + yields:
            nap()
        elif spins > SPINS:
            step_aside()
