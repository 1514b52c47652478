"""Compile inlined functions only to LLVM bitcode; an entry point links the bitcode of all its callees.

Numba generates machine code for every compiled function, and a wrapper that unpacks Python's arguments. Inlined
functions are never called from Python, so this work would be wasted. It took three quarters of the compile time:
the 71 functions below `runner.run` were linked, optimised and translated, each together with all its callees.

Example: `run` calls `_item`, and `_item` calls `gate_backward`. Numba would optimise `gate_backward`, then `_item` with
`gate_backward` in it, then `run` with both, and generate machine code for each. Here `run` links the bitcode of both,
and is optimised and translated once.

This uses internals of Numba: `compiled` imports this module only for the versions of Numba that it is tested with.
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
"""Numba passes that are skipped, as inlined functions have no closures, unrolled literals or array expressions."""


class LinkedCompiler(CompilerBase):
    """Numba compiler that runs the usual passes but generates bitcode instead of machine code."""

    def compile_extra(self, func: Any) -> Any:
        """Load the bitcode of a function if the wheel contains it; otherwise compile the function as Numba does."""
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
        # Type inference and Numba's own optimisations stay; only the lowering that follows is replaced.
        passes = [(step, why) for step, why in pipeline.passes if step not in _UNUSED]
        pipeline.passes = [(_Lowering if step is NativeLowering else step, why) for step, why in passes]
        pipeline.finalize()
        return [pipeline]


def _simplify(module: Any, name: str) -> None:
    """Inline all calls in the function `name`, and run the optimisations that do not depend on the processor.

    LLVM's usual passes run afterwards, on one function without calls. A train step is thus 2 to 6 % faster than after
    the usual passes alone, and the code from a wheel equals that from the sources.
    """
    for symbol in [*module.functions, *module.global_variables]:
        if not symbol.is_declaration:
            symbol.linkage = Linkage.internal
    module.get_function(name).linkage = Linkage.external
    options = create_pipeline_tuning_options(1)
    # Vectorising and unrolling depend on the width and number of the processor's registers.
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = options.loop_unrolling = False
    builder = create_pass_builder(Target.from_default_triple().create_target_machine(), options)
    builder.getModulePassManager().run(module, builder)


class _Library(JITCodeLibrary):
    """Bitcode of one function, which is not added to Numba's execution engine."""

    described: tuple[Callable[..., Any], Any]
    """Python function and its Numba function descriptor."""

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        # Unlike Numba, do not link the callees here: every caller would contain a copy, and optimise it again.
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the linked bitcode of this function and all its callees; Numba calls this only for entry points."""
        module = self._linkable().clone()
        for library in self._callees({self}):
            linked = library._linkable() if isinstance(library, _Library) else library._get_module_for_linking()
            module.link_in(linked, preserve=True)
        if self._linking_libraries:
            _simplify(module, self.described[1].llvm_func_name)
        return module

    def _linkable(self) -> Any:
        # With this linkage several modules may define the same function, and unused definitions are dropped.
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        return self._final_module

    def _callees(self, visited: set[Any]) -> Iterator[Any]:
        for library in self._linking_libraries:
            if library not in visited:
                visited.add(library)
                yield library
                if isinstance(library, _Library):
                    yield from library._callees(visited)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        described = state["cr"].fndesc
        state.library.described = state.func_id.func, described
        # Numba identifies a compiled function by its Python wrapper, and uses that to find the library when it compiles
        # a caller. There is no wrapper here, so the library itself is the key.
        state.targetctx.insert_user_function(state.library, described, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=state.library)
        return True
