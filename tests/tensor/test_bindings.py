"""A tensor kernel is declared in WGSL, in KERNELS, by its reference and in shaders/tensor/README.md. All agree."""

import importlib
import inspect
import re
from types import ModuleType

import pytest

from difflogic.gpu import arrays as gpu_arrays
from difflogic.gpu.array_kernels import KERNELS, ArrayKernel
from difflogic.gpu.shaders import shader_root
from difflogic.tensor.arrays import HostArrays
from tests.gpu.test_bindings import Header

ROOT = shader_root() / "tensor"


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> ArrayKernel:
    return KERNELS[request.param]


def reference_of(kernel: ArrayKernel) -> ModuleType:
    return importlib.import_module(f"difflogic.tensor.kernels.{kernel.name}")


def test_every_file_is_a_kernel() -> None:
    assert sorted(KERNELS) == sorted(path.stem for path in ROOT.glob("*.wgsl"))


def test_workgroup_memory_is_portable(kernel: ArrayKernel) -> None:
    """16 KiB, which the driver does not check."""
    text = kernel.source.text
    sizes = {name: int(value) for name, value in re.findall(r"const (\w+) = (\d+)u;", text)}
    declared = {"matmul": 16384, "reduce": 256, "softmax": 256, "d_softmax": 256}
    assert kernel.source.workgroup_bytes({}) == declared.get(kernel.name, 0)
    for name in ("SHARERS", "ENTRIES"):
        assert sizes.get(name, getattr(gpu_arrays, name)) == getattr(gpu_arrays, name)


def test_reference_has_the_parameters_of_its_kernel(kernel: ArrayKernel) -> None:
    """Parameters have the same names and order, after those that are chosen when a pipeline or uniform is made."""
    module = reference_of(kernel)
    assert f"`{kernel.name}.wgsl`" in module.__doc__
    parameters = inspect.signature(getattr(module, kernel.name)).parameters
    arguments = [name for name in parameters if "transpose_" not in name]
    in_place = kernel.name == "adam"
    bound = [
        each.name for each in kernel.source.bindings if each.access == "read" or (in_place and each.access != "uniform")
    ]
    assert [name for name in arguments if name not in ("op", "axes", "axis", "hyper")] == bound
    assert getattr(HostArrays, kernel.name) is getattr(module, kernel.name)


def test_operations_have_one_order(kernel: ArrayKernel) -> None:
    assert tuple(getattr(reference_of(kernel), "OPS", ())) == kernel.ops
    if kernel.ops and kernel.name != "reduce":
        cases = re.findall(r"case (\d+)u: ", kernel.source.text)
        assert [int(case) for case in cases] == list(range(len(kernel.ops) - 1))


def test_kernel_header_names_reference_dispatch_and_shapes(kernel: ArrayKernel) -> None:
    header = Header.of(kernel.source.name)
    assert header.reference == f"difflogic/tensor/kernels/{kernel.name}.py"
    for binding in kernel.source.bindings[1:]:
        assert re.search(rf"\b{binding.name}\b", header.shapes), f"{binding.name} has no shape"


def test_the_table() -> None:
    """Compare the rows of shaders/tensor/README.md."""
    rows = ["| kernel | reads | writes | operations | dispatch |", "|--|--|--|--|--|"]
    for name, kernel in KERNELS.items():
        reads = ", ".join(binding.name for binding in kernel.source.bindings if binding.access != "read_write")
        writes = ", ".join(binding.name for binding in kernel.source.bindings if binding.access == "read_write")
        dispatch = Header.of(kernel.source.name).dispatch.partition(".")[0].replace("\n", " ")
        rows.append(f"| `{name}` | {reads} | {writes} | {', '.join(kernel.ops)} | {dispatch} |")
    assert [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")] == rows
