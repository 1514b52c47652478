"""bin/setup installs Vulkan on several kinds of machines; apt is a stub that records its calls."""

import pytest

MIRROR = "http://mirror.example/debian/"
PLAIN = "mesa-vulkan-drivers libvulkan1"
BACKPORTS = "-t bookworm-backports mesa-vulkan-drivers libvulkan1"


def test_debian_12_adds_backports_of_its_own_mirror(machine):
    machine.put("usr/share/keyrings/debian-archive-keyring.gpg")
    result = machine.ensure_vulkan(FAKE_MIRROR=MIRROR, FAKE_BACKPORTS="yes")
    assert result.returncode == 0
    assert machine.installs() == [BACKPORTS]
    assert machine.source_file.read_text().splitlines() == [
        "Types: deb",
        f"URIs: {MIRROR}",
        "Suites: bookworm-backports",
        "Components: main",
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
    ]
    assert f"adding the package source {machine.source_file}" in result.stderr
    assert "installing mesa-vulkan-drivers libvulkan1 with apt" in result.stderr


def test_debian_12_with_backports_adds_no_source(machine):
    (machine.root / "backports").touch()
    assert machine.ensure_vulkan(FAKE_MIRROR=MIRROR).returncode == 0
    assert machine.installs() == [BACKPORTS]
    assert not machine.source_file.exists()


def test_unreadable_backports_leave_no_source(machine):
    result = machine.ensure_vulkan(FAKE_MIRROR=MIRROR)
    assert result.returncode == 0
    assert (machine.root / "added.sources").exists()
    assert not machine.source_file.exists()
    assert machine.installs() == [PLAIN]
    assert "its source was removed again; taking Debian 12's own Mesa" in result.stderr


def test_uninstallable_backports_fall_back(machine):
    result = machine.ensure_vulkan(FAKE_MIRROR=MIRROR, FAKE_BACKPORTS="broken")
    assert machine.installs() == [BACKPORTS, PLAIN]
    assert "could not be installed from (E: Unmet dependencies.)" in result.stderr


def test_no_known_mirror_means_no_source(machine):
    result = machine.ensure_vulkan()
    assert machine.installs() == [PLAIN]
    assert not machine.source_file.exists()
    assert "no Debian mirror is configured" in result.stderr


@pytest.mark.parametrize("release", [("debian", "13"), ("ubuntu", "24.04")])
def test_other_releases_use_their_own_mesa(machine, release):
    machine.release(*release)
    assert machine.ensure_vulkan(FAKE_MIRROR=MIRROR, FAKE_BACKPORTS="yes").returncode == 0
    assert machine.installs() == [PLAIN]
    assert not machine.source_file.exists()


def test_passwordless_sudo_is_used(machine):
    machine.ensure_vulkan(FAKE_UID="1000", FAKE_SUDO="yes", FAKE_MIRROR=MIRROR, FAKE_BACKPORTS="yes")
    assert machine.installs() == [BACKPORTS]
    assert f"sudo tee {machine.source_file}" in machine.calls()


@pytest.mark.parametrize("env", [{"FAKE_UID": "1000"}, {"DIFFLOGIC_NO_APT": "1"}])
def test_command_is_printed_if_apt_is_not_allowed(machine, env):
    result = machine.ensure_vulkan(FAKE_MIRROR=MIRROR, FAKE_BACKPORTS="yes", **env)
    assert result.returncode == 0, "the reference engine works without Vulkan"
    assert "run: sudo apt-get update && sudo apt-get install -y mesa-vulkan-drivers libvulkan1" in result.stderr
    assert machine.calls() == []
    assert not machine.source_file.exists()


def test_failing_apt_is_reported_and_setup_continues(machine):
    machine.release("ubuntu", "24.04")
    temporary = machine.root / "tmp"
    temporary.mkdir()
    result = machine.ensure_vulkan(TMPDIR=str(temporary), FAKE_INSTALL_FAILS="yes")
    assert result.returncode == 0
    assert "E: Unable to locate package." in result.stderr
    assert "sudo apt-get install -y mesa-vulkan-drivers libvulkan1" in result.stderr
    assert list(temporary.iterdir()) == [], "no log is left behind"


def test_hint_is_printed_without_apt(machine):
    (machine.bin / "apt-get").unlink()
    result = machine.ensure_vulkan()
    assert result.returncode == 0
    assert "install it with this system's package manager" in result.stderr


@pytest.mark.parametrize("driver", ["usr/share/vulkan/icd.d/lvp_icd.json", "etc/vulkan/icd.d/nvidia_icd.json"])
def test_installed_driver_is_enough(machine, driver):
    machine.put(driver, "usr/lib/x86_64-linux-gnu/libvulkan.so.1")
    result = machine.ensure_vulkan()
    assert (result.returncode, result.stderr, machine.calls()) == (0, "", [])


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_driver_named_by_the_user_is_enough(machine, variable):
    machine.put("usr/lib/x86_64-linux-gnu/libvulkan.so.1")
    assert machine.ensure_vulkan(**{variable: "/opt/driver.json"}).stderr == ""


def test_driver_without_loader_is_not_enough(machine):
    machine.release("ubuntu", "24.04")
    machine.put("usr/share/vulkan/icd.d/lvp_icd.json")
    machine.ensure_vulkan()
    assert machine.installs() == [PLAIN]
