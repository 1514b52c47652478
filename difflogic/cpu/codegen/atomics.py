"""Threads of compiled code work together without Python by these: counters, and a patient wait."""

import os
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import get_or_insert_function

from difflogic.cpu.codegen.compiled import inlined, intrinsic

SPINS = 200
"""Looks at a counter before a waiting thread offers its processor to others: about a microsecond."""
NO_END = 1 << 62
"""Offers of the processor: never sleep."""
TAKEN, DONE = 0, 8
"""Places of the two counters of `take`, on cache lines of their own."""
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
        # The strongest order, which is the price of any atomic addition on these processors: nobody has to prove that a
        # weaker one would do.
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), build


@intrinsic
def claim(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Add 1 to an int64 element if it still is `value`; whether it was."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, value = _element(context, builder, signature, arguments), arguments[2]
        # Compare and exchange in one instruction: of two threads that saw the same number one gets it, and the other
        # looks again. Nobody holds a lock that a thread put aside by the system could keep.
        more = builder.add(value, ir.Constant(value.type, 1))
        return builder.extract_value(builder.cmpxchg(pointer, value, more, "seq_cst", "seq_cst"), 1)

    return types.boolean(array, types.intp, types.int64), build


@intrinsic
def look(_: Any, array: Any, index: Any) -> Any:
    """An int64 element as it is now."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Acquire: what another thread wrote before it counted itself as done is seen after the count is.
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


@inlined
def pause(looks: int, yields: int) -> None:
    """After so many looks in vain: look again, offer the processor to others, or after so many offers sleep."""
    # Looking keeps a processor busy, and a sleeper wakes some fifty microseconds late: short waits are looked through,
    # long ones are slept through.
    if looks > SPINS + yields:
        nap()
    elif looks > SPINS:
        step_aside()


@inlined
def take(counters: Any, items: Any, total: Any) -> Any:
    """The next item of a list of phases, `items` in each, once its phase may begin; `total` when none is left.

    A thread that waits has taken nothing yet. So none that the system holds up while it waits, or that starts late,
    keeps the others from going on without it.
    """
    # Two threads, four items to a phase, DONE is 3: items 0 to 2 are finished, 3 is under way. TAKEN is 4, and item 4
    # belongs to the next phase, which may not begin before DONE is 4. To take the number first and wait then would be
    # simpler; but were the thread put aside by the system just then, item 4 would be nobody's and all others would wait
    # for it.
    looks = 0
    while True:
        item = look(counters, TAKEN)
        if item >= total:
            return total
        if look(counters, DONE) < item // items * items:
            looks += 1
            pause(looks, NO_END)
        elif claim(counters, TAKEN, item):
            return item
