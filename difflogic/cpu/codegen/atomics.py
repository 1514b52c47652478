"""Synchronise threads of compiled code without Python: atomic counters, and a wait that spins, yields, then sleeps."""

import os
from typing import Any

from llvmlite import ir
from numba import types

from difflogic.cpu.codegen.compiled import call, inlined, intrinsic

SPINS = 200
"""Number of times a waiting thread loads a counter, about a microsecond in all, before it yields its core."""
NO_END = 1 << 62
"""Value for the argument `yields` of `pause` that makes a waiting thread never sleep."""
TAKEN, DONE = 0, 8
"""Indices in the argument `counters` of `take` of the numbers of taken and finished items, on separate cache lines."""
_NAP, _NAP_TIME = ("Sleep", 1) if os.name == "nt" else ("usleep", 50)
"""Name of the C function that sleeps, and its argument in milliseconds on Windows, microseconds elsewhere."""
_YIELD = "SwitchToThread" if os.name == "nt" else "sched_yield"


def _element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.gep(data, [arguments[1]])


@intrinsic
def fetch_add(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Add `value` to the int64 `array[index]` atomically, and return the previous value.

    A thread that reads the new value also sees everything that this thread wrote earlier.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _element(context, builder, signature, arguments)
        # The strongest memory order: a weaker one would not be faster here, and would need a proof.
        return builder.atomic_rmw("add", pointer, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), build


@intrinsic
def claim(_: Any, array: Any, index: Any, value: Any) -> Any:
    """Add 1 to the int64 `array[index]` atomically if it equals `value`, and return whether 1 was added."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, value = _element(context, builder, signature, arguments), arguments[2]
        # Compare and exchange in one instruction: of two threads that saw the same number, one succeeds and the other
        # tries again. There is no lock that a preempted thread could hold.
        more = builder.add(value, ir.Constant(value.type, 1))
        return builder.extract_value(builder.cmpxchg(pointer, value, more, "seq_cst", "seq_cst"), 1)

    return types.boolean(array, types.intp, types.int64), build


@intrinsic
def look(_: Any, array: Any, index: Any) -> Any:
    """Return the current value of the int64 `array[index]`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Acquire: a thread that sees an item counted as done also sees the data that the item has written.
        return builder.load_atomic(_element(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.intp), build


@intrinsic
def yield_core(_: Any) -> Any:
    """Let the system run another thread on this core."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        call(builder, _YIELD, ir.IntType(32))
        return context.get_dummy_value()

    return types.void(), build


@intrinsic
def nap(_: Any) -> Any:
    """Sleep for `_NAP_TIME`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        call(builder, _NAP, ir.IntType(32), ir.Constant(ir.IntType(32), _NAP_TIME))
        return context.get_dummy_value()

    return types.void(), build


@inlined
def pause(looks: int, yields: int) -> None:
    """Wait once after `looks` failed attempts: spin up to SPINS, yield up to SPINS + `yields`, otherwise sleep."""
    # Spinning keeps a core busy, and a sleeping thread wakes some fifty microseconds late. So a short wait spins, and a
    # long one sleeps.
    if looks > SPINS + yields:
        nap()
    elif looks > SPINS:
        yield_core()


@inlined
def take(counters: Any, items: Any, total: Any) -> Any:
    """Wait until the next item's phase may begin, take the item and return its number, or `total` if none is left.

    A phase has `items` items and begins when all earlier phases are done. A waiting thread has not taken an item yet,
    so it never blocks the other threads, even if it starts late or is preempted.
    """
    # Example: two threads, four items per phase, DONE is 3: items 0 to 2 are finished, item 3 is running. TAKEN is 4,
    # and item 4 belongs to the next phase, which may not begin before DONE is 4. Taking the number first and waiting
    # afterwards would be simpler, but if the thread were preempted at that point, all others would wait for item 4.
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
