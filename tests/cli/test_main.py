"""The entry point: help, version, speed, and failures as one sentence."""

import errno
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

import click
import pytest

import difflogic
from difflogic.cli import main as entry
from difflogic.cli import options
from difflogic.cli.request import OF_AGENTS
from difflogic.config import presets
from difflogic.config.schema import Config
from difflogic.errors import ConfigError, DeviceError
from tests.cli.conftest import Said, complaints
from tests.sampled import exhaustive
from tests.train import processes
from tests.train.tiny import tiny_config


def test_greeting_names_three_commands(said: Said) -> None:
    lines = said().out.splitlines()
    begin = [line.split()[1] for line in lines if line.startswith("  difflogic ")]
    assert begin == ["train", "train", "serve"]
    assert max(map(len, lines)) <= 80
    assert "difflogic --help" in lines[-1]


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_lists_every_command(arguments: list[str], said: Said) -> None:
    out = said(*arguments).out
    for name, (_, text) in entry.COMMANDS.items():
        assert name in out
        assert text.split()[0] in out


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_every_command_has_help(name: str, said: Said) -> None:
    out = said(name, "--help").out
    assert f"Usage: difflogic {name}" in out
    assert f"Example: difflogic {name}" in out


@pytest.mark.parametrize(
    ("arguments", "lines"), [(["doctor", "lizard"], False), (["tune", "--reset"], True), (["presets"], True)]
)
def test_help_of_json_describes_the_output(arguments: list[str], lines: bool, said: Said) -> None:
    words = "One JSON object per line" if lines else "One JSON document"
    assert f"{words}, and nothing else." in " ".join(said(arguments[0], "--help").out.split())
    out = said(*arguments, "--json").out
    for each in out.splitlines() if lines else [out]:
        assert isinstance(json.loads(each), dict if lines else list)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in ("train", "train-checkerboard", "init"))]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Time is not asserted, its causes are: NumPy alone takes longer than all of `--help`."""
    code = (
        "import sys; from difflogic.cli.main import main; main(sys.argv[1:]);"
        "print([name for name in ('numpy', 'wgpu', 'matplotlib', 'rich', 'PIL') if name in sys.modules])"
    )
    assert processes.run_code(code, *arguments).stdout.splitlines()[-1] == "[]"


def test_training_help_has_examples_then_sections() -> None:
    for name, absent in (("train", ()), ("train-checkerboard", OF_AGENTS), ("submit", ("starts",)), ("sweep", ())):
        command = entry.group.get_command(click.Context(entry.group), name)
        assert isinstance(command, options.TrainingCommand)
        context = click.Context(command, info_name=name)
        sections = command.sections(context)
        named = {name for names in options.SECTIONS.values() for name in names}
        shown = {each.name for group in sections.values() for each in group}
        assert {each.name for each in command.params if isinstance(each, click.Option)} <= shown & named
        assert shown.isdisjoint(absent)
        text = command.get_help(context)
        places = [text.index(f"\n{title}:\n") for title in sections]
        examples = re.findall(r"^  Example: difflogic (\S+)", text[: places[0]], re.MULTILINE)
        assert examples == [name] * (1 if name == "sweep" else 3)
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("fly", "Unknown command 'fly'. See 'difflogic --help'."),
        ("trian", "Unknown command 'trian' (did you mean train?). See 'difflogic --help'."),
        ("--fly", "No such option '--fly'. See 'difflogic --help'."),
        ("train-checkerboard --qqq", "No such option '--qqq'. See 'difflogic train-checkerboard --help'."),
        ("train --epochs x", "Invalid value for '--epochs': 'x' is not a valid integer. See 'difflogic train --help'."),
    ],
)
def test_unknown_commands_and_options_are_refused(arguments: str, text: str, said: Said) -> None:
    out, errors = said(*arguments.split(), code=2)
    # Versions of click differ in how they name an option.
    assert (out, re.sub(r"option: (\S+)\.", r"option '\1'.", errors)) == ("", f"Error: {text}\n")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ConfigError("Wrong."), 2, "Error: Wrong.\n"),
        (DeviceError("Broken."), 1, "Error: Broken.\n"),
        (OSError(errno.ENOSPC, "No space left on device", "x"), 1, "Error: x: No space left on device.\n"),
        (OSError(errno.EIO, "Input/output error"), 1, "Error: Input/output error.\n"),
        (MemoryError("2 TiB"), 1, "Error: Not enough memory: 2 TiB. Use a smaller batch or model.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (click.Abort(), 130, "Interrupted.\n"),
    ],
)
def test_expected_failures_are_one_sentence(error: BaseException, code: int, text: str, monkeypatch, said) -> None:
    monkeypatch.setattr(entry.group, "main", Mock(side_effect=error))
    assert said(code=code).err == text


LOADING = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "difflogic.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from difflogic.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_during_import_ends_the_command() -> None:
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def test_python_m_difflogic_runs_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "difflogic", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"difflogic {difflogic.__version__}\n")
    script = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert script == {"difflogic": "difflogic.__main__:main"}


@pytest.mark.parametrize("command", [
    "show", "simplify", "evaluate", "render -o x.gif", "export --format verilog -o x.v", "prove", "harden",
    "train --resume", "train-policy --resume", "simulate", "runs", "gallery -o out", "sweep --resume", "worker",
    "gc --keep-days 1", "train --config",
])  # fmt: skip
def test_missing_file_is_a_usage_error(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert entry.main([*command.split(), "nowhere"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_unexpected_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry.group, "main", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        entry.main([])


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell with pipes")
@pytest.mark.parametrize(
    ("command", "code"), [("presets", 1), *exhaustive(("train --config tiny.toml --recipe paper -o run", 0))]
)
def test_closed_pipe_ends_printing_but_not_training(command: str, code: int, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(tiny_config().to_toml())
    with processes.start("difflogic.cli.main", *command.split()) as process:
        process.stdout.close()
        assert complaints(process.stderr.read()) == []
    assert process.returncode == code
    if code == 0:
        assert json.loads(Path("run/manifest.json").read_text())["status"] == "complete"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_reported_in_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        program = [sys.executable, "-m", "difflogic.cli.main", "presets"]
        ended = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"Error: No space left on device.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_stream_is_ignored(closed: str, tmp_path: Path) -> None:
    """Neither the list, which asks whether it is a terminal, nor a file that is opened in its place."""
    program = shlex.join([sys.executable, "-m", "difflogic.cli.main"])
    for arguments in ("presets", "init lizard --recipe paper -o here.toml"):
        shell = ["sh", "-c", f"{program} {arguments} {closed}"]
        done = subprocess.run(shell, cwd=tmp_path, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    assert Config.load(tmp_path / "here.toml") == presets.lizard()


def test_letters_outside_the_encoding_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    folder = tmp_path / "🦎"
    folder.mkdir()
    done = processes.run("difflogic.cli.main", "runs", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\\U0001f98e: no runs found.\n")
