"""Compiles functions for their callers alone: to LLVM's code, which is linked into the caller, not to machine code.

Numba makes of every compiled function machine code that Python can call, together with what unpacks Python's arguments.
An inlined function is never called by itself, so that all of this is thrown away. It took half of the time: the 71
functions below `runner.run` were translated to machine code, each with all functions that it calls.

Example: `run` calls `_item`, and `_item` calls `gate_backward`. Numba would make machine code of `gate_backward`, then
of `_item` with `gate_backward` in it, then of `run` with both. Here it does so of `run` alone, from the same LLVM code.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class LinkedCompiler(CompilerBase):
    """Numba's usual passes, but for the last step, that to machine code."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        # Types and optimisations of Numba's own code stay: only what follows them is left out.
        pipeline.passes = [(_Lowering if each is NativeLowering else each, why) for each, why in pipeline.passes]
        pipeline.finalize()
        return [pipeline]


class _Library(JITCodeLibrary):
    """Optimised code that callers link, and that the engine of machine code does not get to know."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        # Numba knows a compiled function by an object that Python could call, and finds the library by it when a caller
        # is compiled. This one has the address 0.
        lowered = state["cr"]
        name = lowered.fndesc.qualname
        known_by = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(known_by, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=known_by)
        return True
