"""Check that the licences of all packages that difflogic needs, directly or indirectly, are accepted.

    .venv/bin/python bin/lib/licences.py            one line
    .venv/bin/python bin/lib/licences.py --list     every package and its licence

Reads the packages that are installed here, for all extras, and downloads nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "difflogic-ca"
ACCEPTED = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
    ),
    "Zlib",
    "Apache-2.0 WITH LLVM-exception",
    "MPL-2.0",  # applies to changes of these packages, which we do not change
    # Names of the same licences in packages without SPDX expressions.
    *("Apache 2.0", "Apache Software License", "BSD", "BSD License", "BSD 2-Clause License", "BSD 3-Clause License"),
    "3-Clause BSD License",
    *("MIT License", "Mozilla Public License 2.0 (MPL 2.0)", "Python Software Foundation License"),
}
PROPRIETARY = ("nvidia-", "cuda-")
"""Prefixes of packages that PyTorch and JAX need for NVIDIA's cards; we use these only in measurements."""


def main(arguments: list[str]) -> int:
    extras = distribution(NAME).metadata.get_all("Provides-Extra", [])
    licences = {package.name: licence(package) for package in required(NAME, extras)}
    refused = {name: text for name, text in licences.items() if not is_accepted(name, text)}
    for name, text in sorted(licences.items() if "--list" in arguments else refused.items()):
        print(f"{name}: {text}")
    result = f"not accepted: {', '.join(sorted(refused))}" if refused else "all licences are accepted"
    print(f"{len(licences)} packages: {result}.")
    return int(bool(refused))


def required(name: str, extras: Iterable[str]) -> list[Distribution]:
    """Return a package and all installed packages that it needs with `extras`, directly or indirectly."""
    installed: dict[str, Distribution] = {}
    seen, waiting = set(), [(name, frozenset(extras))]
    while waiting:
        name, extras = waiting.pop()
        asked = (canonicalize_name(name), extras)
        if asked in seen:
            continue
        seen.add(asked)
        try:
            package = installed[asked[0]] = distribution(name)
        except PackageNotFoundError:  # it belongs to an extra that is not installed
            continue
        for needed in map(Requirement, package.requires or ()):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((needed.name, frozenset(needed.extras)))
    return list(installed.values())


def licence(package: Distribution) -> str:
    """Return a package's SPDX expression, else its classifiers, else the licence's first line, else an empty text."""
    if expression := package.metadata.get("License-Expression"):
        return str(expression)
    classifiers = [classifier.split(" :: ") for classifier in package.metadata.get_all("Classifier", [])]
    if names := [parts[-1] for parts in classifiers if parts[0] == "License"]:
        return " AND ".join(names)
    files = (package.read_text(f"licenses/{name}") for name in package.metadata.get_all("License-File", []))
    texts = [package.metadata.get("License"), *files]
    return next((text.strip().splitlines()[0].strip() for text in texts if text and text.strip()), "")


def is_accepted(name: str, text: str) -> bool:
    """Return whether a licence has an accepted alternative (`A OR B`); brackets in expressions are not supported."""
    return name.startswith(PROPRIETARY) or any(
        all(part in ACCEPTED for part in choice.split(" AND ")) for choice in text.split(" OR ")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
