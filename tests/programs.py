"""The optional programs: what each is called, which package has it, and how a test skips without it.

`.ci/run` installs the packages that `python -m tests.programs` prints.
"""

import os
import sys

import pytest

from difflogic.circuits.synthesis import tools

UNUSED = {"nextpnr-ice40", "verilator"}
"""Programs that difflogic can run but no test needs."""
PACKAGES = {program: package for program, package in tools.PACKAGES.items() if program not in UNUSED} | {
    "objdump": "binutils",
    "shellcheck": "shellcheck",
    "spirv-val": "spirv-tools",
}
"""The Debian package of each program without which some tests skip."""


def needs(*programs: str) -> None:
    """Skip the test if a program is missing; fail in CI, unless CI plays a bare machine."""
    for program in programs:
        if tools.missing(program):
            lacking(f"{program} is not installed: install the package {PACKAGES[program]} on Debian or Ubuntu.")


def lacking(advice: str, is_optional: bool = True) -> None:
    """Skip the test with this advice; fail in CI, unless CI plays a bare machine and this is optional."""
    is_accepted = "CI" not in os.environ or (is_optional and "DIFFLOGIC_EXPECT_BARE" in os.environ)
    (pytest.skip if is_accepted else pytest.fail)(advice)


if __name__ == "__main__":
    sys.stdout.write("\n".join(sorted(set(PACKAGES.values()))) + "\n")
