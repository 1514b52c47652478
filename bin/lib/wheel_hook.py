"""Puts into a wheel what the front of Numba makes of the CPU engine: see `difflogic.cpu.codegen.shipped`.

Hatchling runs it when a wheel is built. `python bin/lib/wheel_hook.py MACHINE FOLDER` is one machine's part.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}
"""Where the code is run, the machine's own takes the place of what this says of the system."""
NEEDED = ("filelock", "numba", "numpy", "platformdirs", "tomli-w")
"""What the engine imports."""


class CustomBuildHook(BuildHookInterface):
    """Writes the code down for every machine, in a process for each."""

    def dependencies(self) -> list[str]:
        return [each for each in self.metadata.core.dependencies if each.startswith(NEEDED)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # the sources will change
            return
        self._folder = tempfile.TemporaryDirectory()
        commands = [[sys.executable, __file__, machine, self._folder.name] for machine in TRIPLES]
        processes = [subprocess.Popen(command, cwd=self.root) for command in commands]
        codes = [process.wait() for process in processes]
        if any(codes):
            raise RuntimeError("the CPU engine could not be written down for the wheel")
        build_data["force_include"][f"{self._folder.name}/llvm"] = "difflogic/cpu/codegen/llvm"


class Written(Exception):  # noqa: N818 - no error
    """All is written down that an entry point calls."""


def write_all(machine: str, folder: Path) -> None:
    os.environ["NUMBA_CACHE_DIR"] = str(folder / machine)  # nothing may have been compiled before
    sys.path.insert(0, str(Path.cwd()))
    import numba  # before it can ask what machine this is

    platform.machine = lambda: machine
    from difflogic.cpu import engine
    from difflogic.cpu.codegen import linked, shipped

    def write(library: Any) -> None:
        function, described = library.described
        assert described.restype == numba.types.none, "the package takes it for granted that nothing is returned"
        path = folder / shipped.path_of(function, described.argtypes).relative_to(shipped.FOLDER.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(in_general(linked_module(library), described.llvm_func_name, path.stem, TRIPLES[machine]))
        raise Written

    linked_module = linked._Library._get_module_for_linking
    linked._Library._get_module_for_linking = write
    for part in (engine.warm_up_soft, engine.warm_up_hard):
        try:
            part()
        except Written:
            continue
        raise AssertionError(f"{part.__name__} compiles no function that its entry point would link")


def in_general(module: Any, function: str, name: str, triple: str) -> bytes:
    """Bitcode in which only this function can be seen, optimised as far as no processor is preferred."""
    from llvmlite import binding

    for each in [*module.functions, *module.global_variables]:
        if not each.is_declaration:
            each.linkage = binding.Linkage.internal
    kept = module.get_function(function)
    kept.linkage, kept.name = binding.Linkage.external, name
    binding.initialize_all_targets()
    machine = binding.Target.from_triple(triple).create_target_machine()
    module.triple, module.data_layout = triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(1)
    # How many numbers go into a register, and how long a loop's body may be, the processor says.
    options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = options.loop_unrolling = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    names = binding.create_new_module_pass_manager()
    names.add_strip_symbols_pass()
    names.run(module, builder)
    assert "inttoptr (i64" not in str(module), "an address of this process"
    return module.as_bitcode()


if __name__ == "__main__":
    write_all(sys.argv[1], Path(sys.argv[2]))
