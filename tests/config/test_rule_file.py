"""Rule tables in files."""

from pathlib import Path

import numpy as np
import pytest

from difflogic.config import customise
from difflogic.core import rules
from difflogic.errors import ConfigError

ENTRIES = rules.table("B36/S23")
DIGITS = np.packbits(ENTRIES).tobytes().hex()


@pytest.mark.parametrize(
    "text",
    [
        "".join(map(str, ENTRIES)),
        "\n".join(" ".join(map(str, row)) for row in ENTRIES.reshape(32, 16)) + "\n",
        DIGITS,
        DIGITS.upper() + "\r\n",
        "\ufeff" + DIGITS,
    ],
)
def test_text_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "rule").write_text(text)
    assert np.array_equal(rules.table(customise.load_rule(tmp_path / "rule")), ENTRIES)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_arrays_are_read(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "rule.npy", ENTRIES.reshape((2,) * 9).astype(dtype))
    assert np.array_equal(rules.table(customise.load_rule(tmp_path / "rule.npy")), ENTRIES)


@pytest.mark.parametrize("content", [b"", b"01" * 255, b"2" * 512, b"g" * 128, b"\xff" * 128, b"\x93NUMPY\x01\x00"])
def test_other_text_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "rule").write_bytes(content)
    sentence = "is not a rule table: expected 512 digits 0 and 1, or 128 hexadecimal digits"
    with pytest.raises(ConfigError, match=sentence):
        customise.load_rule(tmp_path / "rule")


@pytest.mark.parametrize("array", [np.zeros(511), np.full(512, 2), np.full(512, np.nan)])
def test_other_arrays_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "rule.npy", array, allow_pickle=True)
    with pytest.raises(ConfigError, match="is not a rule table: "):
        customise.load_rule(tmp_path / "rule.npy")


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "No such file or directory"), ("", "Is a directory")])
def test_unreadable_files_are_refused(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        customise.load_rule(tmp_path / name)
    assert str(raised.value) == f"Cannot read the rule table {tmp_path / name}: {reason}."
