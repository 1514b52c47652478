"""Answers kept in the user's cache: whole or absent, and never in the way."""

import os
from pathlib import Path

import platformdirs
import pytest

from difflogic.system import cache as caches
from difflogic.system.cache import JsonCache, key_of

COLOURS = JsonCache("colours")


pytestmark = pytest.mark.usefixtures("cache")


def test_entries_are_saved_next_to_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert COLOURS.read() == {}
    COLOURS.write("sky", {"is": "blue"})
    COLOURS.write("grass", {"is": "green"})
    COLOURS.write("sky", {"is": "grey"})
    assert COLOURS.read() == {"sky": {"is": "grey"}, "grass": {"is": "green"}}
    assert [path.name for path in COLOURS.path.parent.iterdir()] == ["colours.json"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"format": "difflogic-sounds", "version": 1, "entries": {}}',
        b'{"format": "difflogic-colours", "version": 2, "entries": {}}',
        b'{"format": "difflogic-colours", "version": 1, "entries": []}',
        b'{"format": "difflogic-colours", "version": 1, "entries": {"sky": "blue"}}',
    ],
)
def test_corrupt_or_foreign_file_is_ignored_with_a_warning(content: bytes, cache: Path, capsys) -> None:
    cache.mkdir()
    COLOURS.path.write_bytes(content)
    assert COLOURS.read() == {}
    assert f"difflogic: The file {COLOURS.path} cannot be used (" in capsys.readouterr().err
    COLOURS.write("sky", {"is": "blue"})
    assert COLOURS.read() == {"sky": {"is": "blue"}}


def test_unwritable_file_causes_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    COLOURS.path.mkdir(parents=True)
    COLOURS.write("sky", {"is": "blue"})
    assert f"difflogic: Cannot write {COLOURS.path} (" in capsys.readouterr().err


@pytest.mark.parametrize("usual", [None, "~/.cache/difflogic", "file/difflogic"])
def test_unusable_folder_causes_one_warning(usual: str | None, tmp_path, monkeypatch, capsys) -> None:
    """The user has no home, as the newest platformdirs says it and as older ones do; or it cannot be written."""

    def user_cache_dir(*_: object, **__: object) -> str:
        if usual is None:
            raise RuntimeError("could not determine the home directory")
        return usual

    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    monkeypatch.delenv(caches.VARIABLE)
    monkeypatch.setattr(platformdirs, "user_cache_dir", user_cache_dir)
    COLOURS.write("sky", {"is": "blue"})
    assert COLOURS.read() == {"sky": {"is": "blue"}}
    assert os.environ[caches.VARIABLE] == str(caches.user_cache()), "child processes share it"
    warnings = capsys.readouterr().err.splitlines()
    assert [each.endswith("Set DIFFLOGIC_CACHE_DIR to choose another folder.") for each in warnings] == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_drop_deletes_one_entry() -> None:
    COLOURS.write("sky", {"is": "blue"})
    COLOURS.write("grass", {"is": "green"})
    COLOURS.drop("sky")
    COLOURS.drop("sea")
    assert COLOURS.read() == {"grass": {"is": "green"}}


def test_keys_of_different_parts_differ() -> None:
    assert len({key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "c", None)}) == 4
    assert key_of("ab", 1) == key_of("ab", 1)


def test_forget_deletes_selected_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path))
    some = JsonCache("some")
    for key, name in (("1", "a"), ("2", "b"), ("3", "a")):
        some.write(key, {"adapter": name})
    assert some.forget(lambda entry: entry["adapter"] == "a") == 2
    assert some.read() == {"2": {"adapter": "b"}}
    assert some.forget(lambda entry: entry["adapter"] == "a") == 0
