"""Compile functions for their callers alone: to LLVM bitcode, which an entry point links.

It builds on internals of Numba: `compiled` imports it only for the versions that it is tested with. Numba makes machine
code of every compiled function, together with a wrapper that unpacks Python's arguments. An inlined function is never
called by itself, so that all of this is thrown away. It took three quarters of the time: the 71 functions below
`runner.run` were linked, optimised and translated, each with all functions that it calls.

Example: `run` calls `_item`, and `_item` calls `gate_backward`. Numba would optimise `gate_backward`, then `_item` with
`gate_backward` in it, then `run` with both, and make machine code of each. Here `run` links what both were written down
as, and is optimised and translated once.
"""

from collections.abc import Callable, Iterator
from typing import Any

from llvmlite.binding import (
    Linkage,
    Target,
    create_pass_builder,
    create_pipeline_tuning_options,
    get_process_triple,
    parse_bitcode,
)
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import register_pass
from numba.core.funcdesc import ExternalFunctionDescriptor
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.typing import signature
from numba.core.untyped_passes import (
    FindLiterallyCalls,
    InlineClosureLikes,
    InlineInlinables,
    LiteralUnroll,
    MakeFunctionToJitFunction,
)

from difflogic.cpu.codegen import shipped

_UNUSED = (
    *(FindLiterallyCalls, InlineClosureLikes, InlineInlinables, LiteralUnroll),
    *(MakeFunctionToJitFunction, NopythonRewrites),
)
"""Passes for closures, unrolled literals and expressions of whole arrays: there are none in inlined functions."""


class LinkedCompiler(CompilerBase):
    """Numba's usual passes, but for the last step, that to machine code."""

    def compile_extra(self, func: Any) -> Any:
        """As Numba does, but for a function whose code the package brings: nothing is left to be found out of it."""
        state, path = self.state, shipped.path_of(func, self.state.args)
        if not path.is_file():
            return super().compile_extra(func)
        module, library = parse_bitcode(path.read_bytes()), _Library(state.targetctx.codegen(), path.stem)
        module.triple = get_process_triple()
        library.add_llvm_module(module)
        library.finalize()
        described = ExternalFunctionDescriptor(path.stem, types.none, state.args)
        state.targetctx.insert_user_function(library, described, [library])
        return compile_result(
            typing_context=state.typingctx,
            target_context=state.targetctx,
            entry_point=library,
            library=library,
            signature=signature(types.none, *state.args),
            objectmode=False,
            fndesc=described,
        )

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        # Types and optimisations of Numba's own code stay: only what follows them is left out.
        kept = [(each, why) for each, why in pipeline.passes if each not in _UNUSED]
        pipeline.passes = [(_Lowering if each is NativeLowering else each, why) for each, why in kept]
        pipeline.finalize()
        return [pipeline]


def _simplify(module: Any, name: str) -> None:
    """Inline what a function calls, and optimise it as far as no processor is preferred.

    LLVM's usual passes, which follow, then meet one function without calls. A train step takes 2 to 6 % less time than
    with what these passes make by themselves, and a wheel's code is the same as that of the sources.
    """
    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration:
            each.linkage = Linkage.internal
    module.get_function(name).linkage = Linkage.external
    options = create_pipeline_tuning_options(1)
    # How many numbers go into a register, and how long a loop's body may be, the processor says.
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = options.loop_unrolling = False
    builder = create_pass_builder(Target.from_default_triple().create_target_machine(), options)
    builder.getModulePassManager().run(module, builder)


class _Library(JITCodeLibrary):
    """One function as it was written down. The engine of machine code does not get to know it."""

    described: tuple[Callable[..., Any], Any]
    """The function, and what Numba says of it."""

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        # What is called is not linked here, as Numba would: each caller would have a copy, and optimise it again.
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """This function and all that it calls, each once. An entry point alone asks for it."""
        module = self._linkable().clone()
        for library in self._callees({self}):
            linked = library._linkable() if isinstance(library, _Library) else library._get_module_for_linking()
            module.link_in(linked, preserve=True)
        if self._linking_libraries:
            _simplify(module, self.described[1].llvm_func_name)
        return module

    def _linkable(self) -> Any:
        # One definition of a name may then stand in several modules, and goes where nobody calls it.
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        return self._final_module

    def _callees(self, seen: set[Any]) -> Iterator[Any]:
        for library in self._linking_libraries:
            if library not in seen:
                seen.add(library)
                yield library
                if isinstance(library, _Library):
                    yield from library._callees(seen)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        described = state["cr"].fndesc
        state.library.described = state.func_id.func, described
        # Numba knows a compiled function by an object that Python could call, and finds the library by it when a caller
        # is compiled. There is none, and the library does as well.
        state.targetctx.insert_user_function(state.library, described, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=state.library)
        return True
