"""Check the spelling of the documents, and print their ten longest sentences.

    .venv/bin/python bin/lib/prose.py

Fails on a word that is neither in the dictionary of pyspellchecker nor in `words.txt` of this folder. The list of
sentences is only informative: a sentence of more than thirty words should become two.
"""

import re
import sys
from pathlib import Path

from spellchecker import SpellChecker

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("*.md", "docs/**/*.md", "examples/*.md", "shaders/**/*.md", "benchmarks/*.md")
CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`]*`|<!--.*?-->", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|https?://\S+")

checker = SpellChecker(distance=1)
checker.word_frequency.load_words((Path(__file__).parent / "words.txt").read_text(encoding="utf-8").split())
wrong: list[str] = []
sentences: list[tuple[int, str]] = []
for path in sorted({path for pattern in DOCUMENTS for path in CHECKOUT.glob(pattern)}):
    name = path.relative_to(CHECKOUT)
    text = re.sub(r"[*_#>]", " ", LINK.sub(r"\1", CODE.sub("", path.read_text(encoding="utf-8"))))
    # A word in capitals, or with a capital after the first letter, is a name.
    words = [word for word in re.findall(r"[A-Za-z][A-Za-z']+", text) if not word.isupper() and word[1:].islower()]
    wrong += [f"{name}: {word}" for word in sorted(checker.unknown(w.removesuffix("'s").strip("'") for w in words))]
    for block in re.split(r"\n\s*\n|\n(?=[-\d] )", text):
        if not block.lstrip().startswith("|"):  # a table has no sentences
            parts = re.split(r"(?<=[.:;!?])\s+", " ".join(block.split()))
            sentences += [(len(part.split()), f"{name}: {part[:90]}...") for part in parts]
print(*wrong, "The ten longest sentences:", sep="\n")
for count, sentence in sorted(sentences, reverse=True)[:10]:
    print(f"  {count} words, {sentence}")
sys.exit(bool(wrong))
