"""Every file that a command can write is named, checked and written in one way."""

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from difflogic.cli import main as cli
from difflogic.cli import options

PACKAGE = Path(cli.__file__).parents[1]
READ_OR_FOLDERS = {
    "backup folder", "bench compare", "bench config_file", "build out", "build what", "doctor config_file",
    "evaluate data", "evaluate runs", "export circuit", "export out", "fetch folder", "gallery out", "gallery runs",
    "gc folder", "harden out", "harden run", "init data", "init from_recording", "init rule_table", "init target",
    "prove check", "prove one", "prove other", "render run", "report circuit", "runs folder", "serve folder",
    "serve log_file", "serve tls_cert", "serve tls_key", "serve token_file", "show run", "simplify circuit",
    "simulate circuit", "submit config_file", "submit data", "submit from_recording", "submit rule_table",
    "submit target", "submit test", "sweep config_file", "sweep out", "sweep resume", "train config_file", "train data",
    "train from_recording", "train out", "train resume", "train rule_table", "train starts", "train target",
    "train test", "train-checkerboard out", "train-checkerboard resume", "train-checkerboard starts",
    "train-policy config_file", "train-policy out", "train-policy resume", "tune config_file",
}  # fmt: skip
"""Parameters that name a file to read, or a folder: those that are written have rules and tests of their own."""

Place = tuple[str, click.Command, click.Parameter]


def paths(command: click.Command, name: str) -> Iterator[Place]:
    for param in command.params:
        if isinstance(param.type, click.Path):
            yield name, command, param
    if isinstance(command, click.Group):
        for child in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), child)
            assert found is not None
            yield from paths(found, f"{name} {child}".strip())


PATHS = list(paths(cli.group, ""))
OUTPUTS = [place for place in PATHS if place[2].callback is options.output]


def arguments(place: Place, file: Path) -> list[str]:
    name, command, param = place
    if isinstance(param, click.Option):
        return [*name.split(), param.opts[-1], str(file)]
    others = [each for each in command.params if isinstance(each, click.Argument)]
    return [*name.split(), *(str(file) if each is param else "absent" for each in others)]


def test_every_path_option_is_an_output_or_listed() -> None:
    """A new option that names a file: give it `options.output_option`, or, where nothing is written, list it above."""
    others = {f"{name} {param.name}" for name, _, param in PATHS if param.callback is not options.output}
    assert others == READ_OR_FOLDERS
    assert len(OUTPUTS) >= 8


@pytest.mark.parametrize("place", OUTPUTS, ids=lambda place: f"{place[0]} {place[2].name}")
@pytest.mark.parametrize("linked", [False, True])
def test_existing_output_is_refused_before_any_work(place: Place, linked: bool, tmp_path, monkeypatch, said) -> None:
    """Nothing else that they need is there: they do not come so far."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "link").symlink_to("precious")
    name = "link" if linked else "precious"
    assert "--force" in [opt for param in place[1].params for opt in param.opts]
    error = f"Error: {name} exists already: choose another name, or replace it with --force.\n"
    assert said(*arguments(place, Path(name)), code=2).err == error
    assert (tmp_path / "precious").read_text() == "precious"
    error = f"Error: Cannot write file: the folder {tmp_path}/none does not exist"
    assert said(*arguments(place, tmp_path / "none/file"), code=2).err.startswith(error)


def test_commands_write_only_through_output() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {node.attr}"
        for path in sorted((PACKAGE / "cli").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in ("write_bytes", "write_text", "savefig", "touch"))
        or (isinstance(node, ast.alias) and node.name == "write_atomically")
    ]  # fmt: skip
    assert found == []


def test_devices_and_links_survive_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "far").mkdir()
    Path("link.toml").symlink_to("far/mine.toml")
    assert cli.main(["init", "lizard", "-o", "link.toml"]) == 0
    assert cli.main(["init", "lizard", "-o", "link.toml", "--force"]) == 0
    assert Path("link.toml").is_symlink()
    assert "lizard" in Path("far/mine.toml").read_text()
    for name in ("lizard.toml", "train.html"):
        Path(name).symlink_to(tmp_path.with_name("absent"))
    assert [cli.main(["init", "lizard"]), cli.main(["export-page"])] == [1, 1], "a name that nobody typed"
    try:
        os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        Path("null").write_bytes(b"")
    except OSError:
        pytest.skip("no devices may be made here")
    assert cli.main(["init", "lizard", "-o", "null"]) == 0
    assert stat.S_ISCHR(Path("null").lstat().st_mode)
