"""Spelling of the documents, and their ten longest sentences.

    .venv/bin/python bin/lib/prose.py

Fails on a word that is neither in the dictionary of pyspellchecker nor in `words.txt` beside this file. The sentences
only inform: where one has more than thirty words, two would be read more easily.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from spellchecker import SpellChecker

CHECKOUT = Path(__file__).resolve().parents[2]
WORDS = Path(__file__).parent / "words.txt"
DOCUMENTS = ("*.md", "docs/**/*.md", "examples/*.md", "shaders/*.md", "benchmarks/*.md")

CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|https?://\S+")


def prose(path: Path) -> str:
    """The text of a document without code, addresses and marks."""
    text = LINK.sub(r"\1", CODE.sub("", path.read_text(encoding="utf-8")))
    return re.sub(r"[*_#>]", " ", text)


def words(text: str) -> Iterator[str]:
    for word in re.findall(r"[A-Za-z][A-Za-z']+", text):
        # What is all capitals, or has some inside, is a name.
        if not word.isupper() and word[1:].islower():
            yield word.removesuffix("'s").strip("'")


def sentences(text: str) -> Iterator[str]:
    """Of paragraphs and items of lists; a table has none."""
    for block in re.split(r"\n\s*\n|\n(?=[-\d] )", text):
        if not block.lstrip().startswith("|"):
            yield from re.split(r"(?<=[.:;!?])\s+", " ".join(block.split()))


def main() -> int:
    paths = sorted({path for pattern in DOCUMENTS for path in CHECKOUT.glob(pattern)})
    texts = {path: prose(path) for path in paths}
    checker = SpellChecker(distance=1)
    checker.word_frequency.load_words(WORDS.read_text(encoding="utf-8").split())
    wrong = [(path, word) for path, text in texts.items() for word in sorted(checker.unknown(words(text)))]
    for path, word in wrong:
        print(f"{path.relative_to(CHECKOUT)}: {word}")
    found = [(len(each.split()), path, each) for path, text in texts.items() for each in sentences(text)]
    print("The ten longest sentences:")
    for count, path, each in sorted(found, key=lambda entry: entry[0], reverse=True)[:10]:
        print(f"  {count} words, {path.relative_to(CHECKOUT)}: {each[:90]}...")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
