"""Add the CPU engine's code, translated by Numba to LLVM, to a wheel: see `difflogic.cpu.codegen.shipped`.

Hatchling runs this file when a wheel is built. The translation runs in a separate process, and writes to a folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NEEDED = ("filelock", "numba", "numpy", "platformdirs", "tomli-w")
"""Packages that the engine imports."""
PARTS = ("8", "16")
"""Values of `difflogic.cpu.codegen.processor.PART`, repeated here since the package cannot be imported yet."""


class CustomBuildHook(BuildHookInterface):
    """Build hook that translates the CPU engine's code and adds the result to the wheel."""

    def dependencies(self) -> list[str]:
        return [package for package in self.metadata.core.dependencies if package.startswith(NEEDED)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # the sources will change
            return
        self._folder = tempfile.TemporaryDirectory()
        command = [sys.executable, __file__, self._folder.name]
        if any(subprocess.run([*command, part], cwd=self.root, check=False).returncode for part in PARTS):
            # Numba may not support this kind of machine. A wheel without translated code only starts more slowly.
            self.app.display_warning("The CPU engine is not in this wheel: it is compiled where it is first used.")
            return
        build_data["force_include"][f"{self._folder.name}/llvm"] = "difflogic/cpu/codegen/llvm"


class Written(Exception):  # noqa: N818 - no error
    """Exception that ends a compilation when all code that an entry point calls is written."""


def write_all(folder: Path, part: int) -> None:
    os.environ["NUMBA_CACHE_DIR"] = str(folder / "nothing")  # an empty cache, so that all code is translated
    sys.path.insert(0, str(Path.cwd()))
    import numba

    from difflogic.cpu.codegen import processor

    processor.PART = part  # before other modules import it

    from difflogic.cpu import engine
    from difflogic.cpu.codegen import compiled, linked, shipped

    assert compiled.IS_LINKED, f"difflogic is not tested with Numba {numba.__version__}"

    def write(library: Any) -> None:
        function, described = library.described
        assert described.restype == numba.types.none, "the package takes it for granted that nothing is returned"
        path = folder / shipped.path_of(function, described.argtypes).relative_to(shipped.FOLDER.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(in_general(linked_module(library), described.llvm_func_name, path.stem))
        raise Written

    linked_module = linked._Library._get_module_for_linking
    linked._Library._get_module_for_linking = write
    for part in (engine.warm_up_soft, engine.warm_up_hard):
        try:
            part()
        except Written:
            continue
        raise AssertionError(f"{part.__name__} compiles no function that its entry point would link")


def in_general(module: Any, function: str, name: str) -> bytes:
    """Return bitcode for any processor of the architecture, with `function` renamed to `name`."""
    from llvmlite import binding

    module.get_function(function).name = name
    machine = binding.Target.from_default_triple().create_target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(0))
    names = binding.create_new_module_pass_manager()
    names.add_strip_symbols_pass()
    names.run(module, builder)
    special = [word for word in ("inttoptr (i64", "llvm.x86.", "llvm.aarch64.") if word in str(module)]
    assert not special, f"an address of this process, or an instruction of this machine: {special}"
    return module.as_bitcode()


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), int(sys.argv[2]))
