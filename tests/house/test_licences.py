"""bin/check reads the licences of all required packages, and fails on one that is not in the list."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bin/lib/licences.py"
spec = importlib.util.spec_from_file_location("licences", SCRIPT)
licences = importlib.util.module_from_spec(spec)
spec.loader.exec_module(licences)


def test_licences_of_installed_packages_are_accepted(capsys):
    assert licences.main(["--list"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    named = dict(line.split(": ", 1) for line in lines)
    assert {"numpy", "uvicorn", "h11", "pytest"} <= named.keys(), "of an extra, and what it needs in turn"
    assert all(words for name, words in named.items() if not name.startswith(licences.PROPRIETARY))
    assert last == f"{len(lines)} packages: all licences are accepted."


@pytest.mark.parametrize(
    ("lines", "accepted"),
    [
        (["License-Expression: MIT OR GPL-3.0-only"], True),
        (["License-Expression: MIT AND GPL-3.0-only"], False),
        (["License: GPL-3.0-only", "Classifier: License :: OSI Approved :: MIT License"], True),
        (["License: The MIT/GPL License"], False),
        ([], False),
    ],
)
def test_licence_of_indirect_dependency_is_checked(lines, accepted, tmp_path, monkeypatch, capsys):
    """The package is a dependency of a dependency."""

    def install(name: str, *lines: str) -> None:
        folder = tmp_path / f"{name.replace('-', '_')}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("\n".join([f"Name: {name}", "Version: 1", *lines]) + "\n")

    free = "License-Expression: MIT"
    install(
        "difflogic-ca", free, "Provides-Extra: serve", "Requires-Dist: between; extra == 'serve'", "Requires-Dist: x"
    )
    install("between", free, "Requires-Dist: Far-Off[more]>=1", "Requires-Dist: unwanted; extra == 'docs'")
    install("far-off", *lines)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert licences.main([]) == int(not accepted)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "3 packages: all licences are accepted." if accepted else "3 packages: not accepted: far-off."
    )
