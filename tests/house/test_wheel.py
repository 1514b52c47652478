"""The wheel, built from the sdist as a downstream packager would, carries what it needs and runs on its own."""

import email
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path

import pytest
from safetensors.numpy import load_file

import difflogic
from difflogic.cpu.codegen.processor import PARTS

pytestmark = pytest.mark.exhaustive

CHECKOUT = Path(__file__).resolve().parents[2]
SHADERS = CHECKOUT / "shaders"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built without isolation: hatchling is among the development tools, so no network is needed."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, CHECKOUT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(path))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` folder of an environment that has this wheel; its dependencies are borrowed from ours.

    A `.pth` file lends them: unlike this environment's own, it does not lead on to the checkout.
    """
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False)
    python = home / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--quiet", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"


def test_wheel_has_every_file_and_shader(wheel):
    package = Path(difflogic.__file__).parent
    files = {f"difflogic/{path.relative_to(package)}": path for path in package.rglob("*") if path.is_file()}
    files |= {f"difflogic/_shaders/{path.relative_to(SHADERS)}": path for path in SHADERS.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name: archive.read(name) for name in archive.namelist() if name.startswith("difflogic/")}
    code = {name for name in shipped if name.endswith(".bc")}
    assert {name: shipped[name] for name in shipped.keys() - code} == {
        name: path.read_bytes() for name, path in files.items() if not {"__pycache__", "llvm"} & {*path.parts}
    }
    # What the two entry points of the engine call, for both widths of a part.
    called = sorted(name.rsplit(".", 2)[0].rpartition("/")[2] for name in code)
    assert called == ["difflogic.cpu.hard.hard_forward._steps"] * 2 + ["difflogic.cpu.runner._work"] * 2
    assert len({name.rsplit("/", 2)[1] for name in code}) == len(PARTS)


def test_wheel_installs_only_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        roots = {name.split("/")[0] for name in archive.namelist()}
    assert roots == {"difflogic", f"difflogic_ca-{difflogic.__version__}.dist-info"}


def test_wheel_metadata_is_complete(metadata):
    assert metadata["Name"] == "difflogic-ca"
    assert metadata["Version"] == difflogic.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert "wgpu<0.33,>=0.32" in metadata.get_all("Requires-Dist")


@pytest.fixture
def far_away(installed, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program of the clean environment in an empty folder."""

    def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command, environment = [installed / program, *arguments], {**os.environ, **variables}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_installed_package_uses_its_own_shaders(installed, far_away):
    program = "import difflogic.gpu.shaders as s; print(s.__file__); print(s.shader_root())"
    done = far_away("python", "-c", program)
    (packages,) = installed.parent.glob("lib/python*/site-packages")
    assert done.stdout.split() == [str(packages / "difflogic" / path) for path in ("gpu/shaders.py", "_shaders")]


def test_installed_command_prints_the_version(far_away):
    done = far_away("difflogic", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"difflogic {difflogic.__version__}\n", "")


def test_only_first_use_compiles(far_away, tmp_path):
    """The first is left to translate what the wheel brings, which trains to the same bits as what is compiled here."""
    announced = "difflogic: compiling the CPU engine for this processor, which takes about 5 seconds, once.\n"
    cache = tmp_path / "cache"
    names = "from difflogic.cpu import engine; from difflogic.cpu.kernels.gate_backward import gate_backward as inner"
    program = f"{names}; engine.compile_all(); print(len(inner.overloads))"
    done = far_away("python", "-c", program, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", announced)
    assert list(cache.rglob("*.nbc"))
    training = "train-checkerboard", "--small", "--epochs", "2", "--seed", "3", "--engine", "cpu", "--out"
    done = far_away("difflogic", *training, "there", NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stderr) == (0, "")
    subprocess.run([sys.executable, "-m", "difflogic", *training, tmp_path / "here"], check=True)
    here, there = (load_file(tmp_path / out / "attempt-1/checkpoint.safetensors") for out in ("here", "there"))
    assert here.keys() == there.keys()
    assert {name for name in here if here[name].tobytes() != there[name].tobytes()} <= {"elapsed_s"}
