"""Files of arrays that are damaged or made to harm: one sentence each, whichever reader opens them."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from difflogic.circuits.readers import layers, notebook
from difflogic.config import dataset
from difflogic.config.customise import load_rule
from difflogic.errors import UsageError
from difflogic.system import array_files

PLAIN = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2)}"
HEADERS = ["{'descr': (", f"  {PLAIN}\n x", "-" * 9000 + "1", PLAIN.replace("'|u1'", "()"), PLAIN.replace("|u1", "|O"),
           *(PLAIN.replace("(2, 2)", shape) for shape in ("(True, True)", "(-1, 2)", "(2, 999999999999)"))]  # fmt: skip


def numbers(path: Path) -> object:
    return array_files.numbers_in(path, "start", "[H, W]")


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
@pytest.mark.parametrize("read", [numbers, load_rule, dataset.load, notebook.load, layers.load])
def test_malformed_header_is_one_error(read: Callable[[Path], object], header: str, tmp_path: Path) -> None:
    path, content = tmp_path / "given", b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + b"\1\1"
    if read in (numbers, load_rule):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as file:
            for name in ("x", "y", "logits/perceive/0", "0.weight"):
                file.writestr(f"{name}.npy", content)
    with pytest.raises(UsageError, match=r"given.*\.$"):
        read(path)


def test_damaged_lzma_archive_is_one_error(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(500) % 251)
    with zipfile.ZipFile(tmp_path / "given.npz", "w", zipfile.ZIP_LZMA) as file:
        file.write(tmp_path / "x.npy", "x.npy")
        file.write(tmp_path / "x.npy", "y.npy")
    data = (tmp_path / "given.npz").read_bytes()
    (tmp_path / "given.npz").write_bytes(data[:50] + b"\x77" * 8 + data[58:])
    with pytest.raises(UsageError, match="Cannot read the arrays in "):
        dataset.load(tmp_path / "given.npz")


def test_npy_file_is_refused_if_npz_is_expected(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    with pytest.raises(UsageError, match=r"expected an \.npz file or a folder of \.npy files"):
        dataset.load(tmp_path / "x.npy")
