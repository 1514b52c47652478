"""A made-up machine for the set-up scripts: its own root, its own PATH, and an apt that only takes notes."""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

TOOLS = (
    *("bash", "cat", "chmod", "cksum", "cp", "dirname", "env", "flock", "grep", "head", "mkdir", "mktemp"),
    *("readlink", "rm", "sed", "sleep", "tail", "tee", "touch", "tr", "true", "uname"),
)

# Each stub notes how it was called; the FAKE_ variables say how it behaves.
STUBS = {
    "id": "echo ${FAKE_UID:-0}",
    "sudo": '[[ -n ${FAKE_SUDO:-} ]] || exit 1; shift; [[ $1 == true ]] || note "$@"; exec "$@"',
    "apt-cache": """[[ ! -e $FAKE_STATE/backports ]] ||
echo ' mesa-vulkan-drivers | 25.0.7-2~bpo12+1 | http://mirror.example/debian bookworm-backports/main amd64 Packages'""",
    "apt-get": """note "$@"
case " $* " in
  *" indextargets "*) [[ -z ${FAKE_MIRROR:-} ]] || echo "$FAKE_MIRROR" ;;
  *" update "*SourceParts*)
    cp "$DIFFLOGIC_SYSTEM_ROOT"/etc/apt/sources.list.d/*.sources "$FAKE_STATE"/added.sources
    [[ -n ${FAKE_BACKPORTS:-} ]] || { echo 'E: The repository does not have a Release file.'; exit 100; }
    touch "$FAKE_STATE/backports" ;;
  *" -t bookworm-backports "*) [[ ${FAKE_BACKPORTS:-} != broken ]] || { echo 'E: Unmet dependencies.'; exit 100; } ;;
  *" install "*) [[ -z ${FAKE_INSTALL_FAILS:-} ]] || { echo 'E: Unable to locate package.'; exit 100; } ;;
esac""",
    "node": "",
    "npm": """[[ -z ${FAKE_NPM_FAILS:-} ]] || exit 1
mkdir -p node_modules; touch node_modules/.package-lock.json""",
    "python3": """case "$*" in
  *"import ensurepip"*) [[ -n ${FAKE_ENSUREPIP:-} ]] ;;
  *"print("*) echo python3.11-venv ;;
  *"version_info < "*) ;;
  --version) echo Python 3.11.2 ;;
  "-m venv --clear "*) note "$@"; mkdir -p "$4/bin"; cp "$FAKE_BIN/python3" "$4/bin/python" ;;
  "-m pip --version") ;;
  "-m pip install "*) note "$@"; sleep "${FAKE_PIP_SECONDS:-0}"
    [[ -z ${FAKE_PIP_FAILS:-} ]] || { echo 'ERROR: No matching distribution found for wgpu'; exit 1; }
    printf '#!/usr/bin/env bash\\necho "$PWD" "$@"\\n' >"${0%/*}/difflogic"; chmod +x "${0%/*}/difflogic" ;;
esac""",
}


@dataclass
class Machine:
    """A fake system under `root`; `env` holds the FAKE_ variables."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def system(self) -> Path:
        return self.root / "system"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def checkout(self) -> Path:
        return self.root / "checkout"

    @property
    def packages(self) -> Path:
        """Folder of the packages that checks run in Node."""
        return self.checkout / "tests/javascript"

    @property
    def source_file(self) -> Path:
        return self.system / "etc/apt/sources.list.d/difflogic-backports.sources"

    def release(self, distribution: str, version: str) -> None:
        (self.system / "etc/os-release").write_text(f'ID={distribution}\nVERSION_ID="{version}"\n')

    def put(self, *paths: str) -> None:
        for path in paths:
            file = self.system / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    def calls(self) -> list[str]:
        notes = self.root / "calls"
        return notes.read_text().splitlines() if notes.exists() else []

    def installs(self) -> list[str]:
        """Packages that apt was asked to install, as they follow `--no-install-recommends`."""
        words = "--no-install-recommends "
        return [call.split(words)[1] for call in self.calls() if call.startswith("apt-get") and words in call]

    def command(self, *arguments: str | Path, **env: str) -> subprocess.Popen[str]:
        variables = {"PATH": str(self.bin), "HOME": str(self.root), "DIFFLOGIC_SYSTEM_ROOT": str(self.system)}
        variables |= {"FAKE_STATE": str(self.root), "FAKE_BIN": str(self.bin)} | self.env | env
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*map(str, arguments)], env=variables, cwd=self.root, text=True, **streams)

    def run(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        process = self.command(*arguments, **env)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def ensure_vulkan(self, **env: str) -> subprocess.CompletedProcess[str]:
        libraries = self.checkout / "bin/lib"
        script = f"set -euo pipefail; source {libraries}/system.sh; source {libraries}/vulkan.sh; ensure_vulkan"
        return self.run("bash", "-c", script, **env)


def _stub(name: str, body: str) -> str:
    return f'#!/usr/bin/env bash\nnote() {{ echo "{name} $*" >>"$FAKE_STATE/calls"; }}\n{body}\n'


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A bare Debian 12, root, with Python but neither venv nor Vulkan; its checkout is a copy."""
    machine = Machine(tmp_path)
    machine.bin.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is None:
            pytest.skip(f"this system has no {tool}")
        (machine.bin / tool).symlink_to(found)
    for name, body in STUBS.items():
        stub = machine.bin / name
        stub.write_text(_stub(name, body))
        stub.chmod(0o755)
    (machine.system / "etc/apt/sources.list.d").mkdir(parents=True)
    machine.release("debian", "12")
    machine.checkout.mkdir()
    shutil.copytree(CHECKOUT / "bin", machine.checkout / "bin")
    shutil.copy(CHECKOUT / "pyproject.toml", machine.checkout)
    machine.packages.mkdir(parents=True)
    shutil.copy(CHECKOUT / "tests/javascript/package-lock.json", machine.packages)
    return machine
