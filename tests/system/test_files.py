"""Files that the user names: never destroyed unasked, followed where they are links, written to where they are none."""

import os
import stat
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from difflogic.errors import DifflogicError, RunFolderError, UsageError
from difflogic.system.files import Output, append, check_links, replace_folder, write_atomically, written_beside


def test_output_writes_a_new_file(tmp_path: Path) -> None:
    Output(tmp_path / "a").write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_existing_file_stays_without_force(tmp_path: Path) -> None:
    output = Output(tmp_path / "a")
    (tmp_path / "a").write_text("precious")
    for write in (lambda: Output(tmp_path / "a"), lambda: output.write(b"new")):
        with pytest.raises(UsageError, match=r"a exists already: choose another name, or replace it with --force\."):
            write()
    assert (tmp_path / "a").read_text() == "precious"
    Output(tmp_path / "a", force=True).write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_file_with_similar_name_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "a.tmp").symlink_to("precious")
    Output(tmp_path / "a").write(b"new")
    Output(tmp_path / ("n" * 255)).write(b"as long as a name may be")
    write_atomically(tmp_path / "a", b"newer")
    assert (tmp_path / "a.tmp").read_text() == "precious"


def test_append_refuses_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("rows")
    for row in (b"1\n", b"2\n"):
        append(tmp_path / "rows", row)
        with pytest.raises(OSError, match="symbolic links"):
            append(tmp_path / "link", row)
    assert (tmp_path / "rows").read_text() == "1\n2\n"


def test_next_write_removes_leftovers_of_killed_writers(tmp_path: Path) -> None:
    """A file that is being written is locked, and one that has just been made is empty: both stay."""
    for name in ("a.0.tmp", "b.0.tmp", "a.1.txt"):
        (tmp_path / name).write_text("half")
    (tmp_path / "a.2.tmp").touch()
    with written_beside(tmp_path / "a", b"slow") as slow:
        write_atomically(tmp_path / "a", b"quick")
        assert {each.name for each in tmp_path.iterdir()} == {"a", "b.0.tmp", "a.1.txt", "a.2.tmp", slow.name}
        slow.replace(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "slow"


def test_links_out_of_a_folder_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "deep").mkdir(parents=True)
    (run / "deep/here").symlink_to("../deep")
    (run / "absent").symlink_to("gone")
    check_links(run)
    for name, target in (("deep/out", "../../secret"), ("folder", ".."), ("deep/far", tmp_path)):
        (run / name).symlink_to(target)
        with pytest.raises(RunFolderError, match=f"{name} leads out of .*run through a link: replace the link"):
            check_links(run)
        (run / name).unlink()


@pytest.mark.parametrize("exists", [True, False])
def test_output_follows_a_link(exists: bool, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/a")
    if exists:
        (tmp_path / "far/a").write_text("precious")
        with pytest.raises(UsageError, match="link exists already"):
            Output(tmp_path / "link")
    Output(tmp_path / "link", force=exists).write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far/a").read_bytes() == b"new"


@pytest.mark.parametrize("force", [True, False])
def test_output_writes_to_a_pipe(force: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    output = Output(tmp_path / "link", force)
    assert output.is_stream
    output.write(b"through")
    reader.join()
    assert found == [b"through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


@pytest.mark.parametrize("force", [True, False])
def test_output_keeps_a_device(force: bool, tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (tmp_path / "null").write_bytes(b"")
    except OSError:
        pytest.skip("no devices may be made here")
    Output(tmp_path / "null", force).write(b"gone")
    assert stat.S_ISCHR((tmp_path / "null").lstat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_block_device_is_refused_without_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").write_text("")
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: True)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: False)
    with pytest.raises(UsageError, match="exists already"):
        Output(tmp_path / "disk")


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_text("precious")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DifflogicError, match=r"Cannot write .*a: No space left on device\."):
        Output(tmp_path / "a", force=True).write(b"new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "precious"}


def test_permissions_of_written_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret")
    (tmp_path / "a").chmod(0o640)
    Output(tmp_path / "a", force=True).write(b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    with Output(tmp_path / "a", force=True).open(private=True) as file:
        file.write(b"newer")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("folder", "folder is a folder."),
        ("none/a", "none does not exist. Create it first."),
        ("dangling", "none does not exist. Create it first."),
        ("circle", "circle: Too many levels of symbolic links."),
        ("n" * 300, ": File name too long."),
        ("file/a", "file/a: Not a directory."),
    ],
)
def test_unwritable_output_is_refused_at_once(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("none/a")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(UsageError) as caught:
        Output(tmp_path / name)
    assert sentence in str(caught.value)


def test_output_in_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match=f"The folder {tmp_path} is not writable"):
        Output(tmp_path / "a")


def test_dash_is_refused_as_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="Expected a file, got '-'"):
        Output(Path("-"))


def test_replace_folder_replaces_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old folder stays if the new one cannot be moved to its place."""
    made, place = tmp_path / "made", tmp_path / "place"
    for folder in (made, place):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", Mock(side_effect=OSError("busy")))
        with pytest.raises(OSError, match="busy"):
            replace_folder(made, place)
    assert (place / "file").read_text() == "place"
    replace_folder(made, place)
    assert [(place / "file").read_text(), *(each.name for each in tmp_path.iterdir())] == ["made", "place"]
