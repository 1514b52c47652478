"""The words of the page and the terminal are plain, or are in the glossary's table of shown words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = sorted((ROOT / "difflogic" / "serve" / "web").glob("*.js"))
PYTHON = [ROOT / "difflogic" / "serve" / "api" / "words.py"]
GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
PRIVATE = re.compile(
    r"\b(tts|kept|prob(?:e|es|ing)|habitats?|judg(?:e|ed|ing)|soft|hard|logits?|rollouts?|censuses|loss(?:es)?|verdicts?"
    r"|adjoints?|netlists?|perception|heat|members?|leaders?|replicas?|undecided|epochs?|seeds?|channels?|trials?|sweeps?"
    r"|attempts?|returns?|active|mixtures?)\b",
    re.IGNORECASE,
)
"""Words with a special meaning in this project, or with none for readers who have not seen the code."""
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
CODE = re.compile(r"[a-z0-9_./#?=&:,;{}()\[\]<>*$@!|^%+'-]*")
"""A name, a selector or an address: a text that is shown has a space or a capital."""


def terms() -> set[str]:
    """The words of the first column of the table."""
    table = GLOSSARY.partition("## Words on the screen")[2]
    cells = re.findall(r"^\| ([a-z ,]+) \|", table, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"[a-z]+", cell)}


def shown(path: Path) -> list[str]:
    """The texts of a script that a person may read."""
    text = re.sub(
        r'^\s*//.*$|"""(?:.|\n)*?"""|^\s*#.*$|^import .*$', "", path.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    text = re.sub(r'\b(class|style): (".*?"|`.*?`)', "", text)
    found = [re.sub(r"\$?\{[^{}]*\}", " ", "".join(each)) for each in TEXT.findall(text)]
    return [each for each in found if not CODE.fullmatch(each) and "querySelector" not in each]


def singular(word: str) -> str:
    return word if word == "loss" else word.removesuffix("es") if word.endswith("sses") else word.removesuffix("s")


@pytest.mark.parametrize("path", [*WEB, *PYTHON], ids=lambda path: path.name)
def test_shown_words_are_plain_or_in_the_glossary(path: Path) -> None:
    known = {singular(term) for term in terms()}
    private = {
        (word, text)
        for text in shown(path)
        for word in PRIVATE.findall(text)
        if singular(word.lower()) not in known and not re.search(rf"[-.]{word}|{word}[-.(=_]", text)
    }
    assert private == set()


def test_table_of_shown_words_is_sorted() -> None:
    table = GLOSSARY.partition("## Words on the screen")[2]
    first = re.findall(r"^\| ([a-z ,]+) \|", table, re.MULTILINE)[1:]
    assert first == sorted(first)
    assert {"soft", "unconverged", "tests"} <= terms()


def test_private_word_in_a_script_is_found(tmp_path: Path) -> None:
    script = tmp_path / "a.js"
    script.write_text('h("p", { class: "hard" }, "The hard loss on `${n}` probes")')
    assert PRIVATE.findall(" ".join(shown(script))) == ["hard", "loss", "probes"]
