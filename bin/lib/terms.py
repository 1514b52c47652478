"""Check docstrings, comments and documents for terms that a newcomer would not search for.

    .venv/bin/python bin/lib/terms.py [FILE...]

Fails on a term of TERMS, and on a docstring that begins with a word of FIRST_WORDS. Prints file, line, term, and its
replacement. Code is exempt: text in backticks, blocks of code, options, and file names.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CHECKED = (
    *("difflogic", "benchmarks", "bin/lib", "examples", "tests"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "shaders/README.md", "shaders/tensor/README.md"),
    *(f"docs/{name}" for name in ("explanation", "how-to", "reference", "tutorial", "results/presets")),
)
"""Folders and files that are checked if the command has no arguments."""
TERMS = {
    "pictur(e|es|ed|ing)": "image",
    "film(s|ed|ing)?": "recording",
    "whoever|nobody|somebody|anybody": "the part or person that is meant, such as the caller",
    "heed(s|ed|ing)?": "handle, take into account",
    "lenders?": "source run",
    "twins?": "reference implementation",
    "(made|makes?|making) small": "simplify",
    "(made|makes?|making) anew": "resynthesize, rebuild",
    "anew": "again",
    "(sets?|setting) right": "repair, correct",
    "wrong values?": "mismatches; to users: wrong cells",
    "(so|how) many": "the number of",
    "by hand in C": "hand-written C",
    "gates that compute nothing": "constants and wires; dead gates",
    "page that trains": "in-browser training",
    "an own|own tasks?|own samples": "custom task, custom data",
    "judg(e|es|ed|ing|e?ments?)": "evaluate; for an outside program: checker",
    "verdicts?": "result",
    "drawn at random": "sampled",
    "every start": "every initial state",
    "(un)?decided gates?": "converged gate, unconverged gate",
    "held channels?": "fixed channels",
    "channels that are alike": "identical channels",
    "follow-ups?": "post-processing job",
    "given up|hopeless": "stopped early",
    "heats": "trials",
    "shortfalls?": "problem, status",
    "probes?": "evaluation grids",
    "rooms": "packages, layers",
}
"""Replacements of terms, by regular expressions, in which a space stands for any white space.

Words that have an ordinary meaning too, such as keep, tell, whole, start, lane and beside, are left to the reader.
"""
TERM = re.compile(rf"\b(?:{'|'.join(TERMS)})\b".replace(" ", r"\s+"), re.IGNORECASE)
FIRST_WORDS = re.compile(r"\s*(of|what|so|whose|where|how|that|by)\b", re.IGNORECASE)
QUOTED = re.compile(
    r"`+[^`]*`+|https?://\S+|--[\w-]+|\w+(?:[./*-]\w+)*\.\w+|^ *>>> .*|^ +\w+:(?= )|\b[A-Z_]{2,}\b|\"\w+\"",
    re.MULTILINE,
)
"""Quoted code, addresses, options, dotted names, examples, names of arguments and constants, and keys."""
BLOCKS = re.compile(r"^ *```.*?^ *```|^ {4}[^\n]*$|<!--.*?-->|(?<=\])\([^)]*\)", re.DOTALL | re.MULTILINE)
"""Blocks of code, comments and targets of links in Markdown."""


def python_texts(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text and whether it is a docstring, for docstrings and for blocks of consecutive comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value, True
    # Python 3.11 takes seconds to tokenize all files, so skip files without a term after any "#".
    if not TERM.search("\n".join(line.partition("#")[2] for line in source.splitlines() if "#" in line)):
        return
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != first + len(lines):
                yield first, "\n".join(lines), False
                first, lines = token.start[0], []
            lines.append(token.string.lstrip("#"))
    yield first, "\n".join(lines), False


def problems(path: Path) -> Iterator[str]:
    """Yield a message for each term to replace in a Python or Markdown file."""
    source = path.read_text(encoding="utf-8")
    texts = python_texts(source) if path.suffix == ".py" else [(1, BLOCKS.sub(_blank, source), False)]
    for line, text, is_docstring in texts:
        if is_docstring and (first := FIRST_WORDS.match(text)):
            yield f"{line}: docstring begins with {first[1]!r}: use a verb or a noun phrase"
        plain = QUOTED.sub(_blank, text)
        for match in TERM.finditer(plain):
            term = " ".join(match[0].split())
            use = next(use for pattern, use in TERMS.items() if re.fullmatch(pattern, term, re.IGNORECASE))
            yield f"{line + plain.count(chr(10), 0, match.start())}: {term!r}: use {use}"


def _blank(match: re.Match[str]) -> str:
    """Return a mark with the match's line breaks, which separates the words on both sides and keeps line numbers."""
    return "|" + "\n" * match[0].count("\n")


def main(arguments: list[str]) -> int:
    """Print the problems in the files `arguments`, or else in CHECKED, and return 1 if there are any."""
    roots = [Path(argument) for argument in arguments] or [CHECKOUT / name for name in CHECKED]
    paths = {path for root in roots for path in (root.rglob("*.[mp][dy]") if root.is_dir() else [root])}
    own = sorted(path for path in paths if "node_modules" not in path.parts)
    lines = [f"{path}:{problem}" for path in own for problem in problems(path)]
    print(*lines, sep="\n", end="\n" if lines else "")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
