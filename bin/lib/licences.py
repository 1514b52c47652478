"""Fails where a package that difflogic asks for, or one that this asks for, has a licence that nobody has accepted.

    .venv/bin/python bin/lib/licences.py            one line
    .venv/bin/python bin/lib/licences.py --list     every package and its licence

Looks at what is installed here, of all extras; nothing is fetched.
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
    "MPL-2.0",  # binds who changes these packages, which we do not
    # The same in the words of those who do not write SPDX.
    *("Apache 2.0", "Apache Software License", "BSD", "BSD License", "BSD 2-Clause License", "BSD 3-Clause License"),
    "3-Clause BSD License",
    *("MIT License", "Mozilla Public License 2.0 (MPL 2.0)", "Python Software Foundation License"),
}
PROPRIETARY = ("nvidia-", "cuda-")
"""What PyTorch and JAX need for NVIDIA's cards: used for measurements where it is installed, and not passed on."""


def main(arguments: list[str]) -> int:
    extras = distribution(NAME).metadata.get_all("Provides-Extra", [])
    found = {package.name: licence(package) for package in required(NAME, extras)}
    wrong = {name: words for name, words in found.items() if not is_accepted(name, words)}
    for name, words in sorted(found.items() if "--list" in arguments else wrong.items()):
        print(f"{name}: {words}")
    words = f"not accepted: {', '.join(sorted(wrong))}" if wrong else "all licences are accepted"
    print(f"{len(found)} packages: {words}.")
    return int(bool(wrong))


def required(name: str, extras: Iterable[str]) -> list[Distribution]:
    """A package with these extras, and all that it needs here, as far as it is installed."""
    found: dict[str, Distribution] = {}
    seen, waiting = set(), [(name, frozenset(extras))]
    while waiting:
        name, extras = waiting.pop()
        asked = (canonicalize_name(name), extras)
        if asked in seen:
            continue
        seen.add(asked)
        try:
            package = found[asked[0]] = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        for each in map(Requirement, package.requires or ()):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((each.name, frozenset(each.extras)))
    return list(found.values())


def licence(package: Distribution) -> str:
    """The SPDX expression, else the classifiers, else the first line of the licence; empty where there is none."""
    if expression := package.metadata.get("License-Expression"):
        return str(expression)
    classifiers = [each.split(" :: ") for each in package.metadata.get_all("Classifier", [])]
    if named := [each[-1] for each in classifiers if each[0] == "License"]:
        return " AND ".join(named)
    files = (package.read_text(f"licenses/{each}") for each in package.metadata.get_all("License-File", []))
    texts = [package.metadata.get("License"), *files]
    return next((text.strip().splitlines()[0].strip() for text in texts if text and text.strip()), "")


def is_accepted(name: str, words: str) -> bool:
    """Whether all parts of one alternative are accepted; an expression with brackets has to be looked at."""
    return name.startswith(PROPRIETARY) or any(
        all(part in ACCEPTED for part in choice.split(" AND ")) for choice in words.split(" OR ")
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
