"""Test the examples of docs/how-to/tensor.md and of docstrings on the processor and a GPU."""

import doctest
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from difflogic import tensor
from difflogic.tensor import nn, optim

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/tensor.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_examples_of_the_tensor_page() -> None:
    names: dict[str, Any] = {}
    for code in EXAMPLES:
        exec(code, names)
    assert len(EXAMPLES) == 2
    assert names["loss"].shape == ()


def test_every_operation_is_on_the_page() -> None:
    public = {name for name in vars(tensor.Tensor) if not name.startswith("_")}
    undocumented = {"backward", "data", "device", "dtype", "grad", "ndim", "requires_grad", "shape", "size"}
    assert public - undocumented <= set(re.findall(r"a\.(\w+)", PAGE))


@pytest.mark.parametrize("module", [tensor.tensor, nn, optim], ids=lambda module: module.__name__)
def test_docstrings(module: ModuleType) -> None:
    found = doctest.testmod(module, extraglobs={"nn": nn})
    assert found.attempted > 0
    assert found.failed == 0
