"""bin/check fails on terms that a newcomer would not search for, in docstrings, comments and documents."""

import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "bin/lib/terms.py"
spec = importlib.util.spec_from_file_location("terms", SCRIPT)
terms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terms)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.py", '"""Return the image.\n\nIts\nTwin.\n"""\n', "4: 'Twin': use reference implementation"),
        ("a.py", "a = '#'  # one\n# of so\n# many\n", "2: 'so many': use the number of"),
        ("a.py", "# A film.\n\n# It\n# is judged.\n", "4: 'judged': use evaluate"),
        ("a.md", "A circuit, the same\nby hand in C.\n", "2: 'by hand in C': use hand-written C"),
        ("a.md", "```\na film\n```\n[It](film.md) shows a\nPicture.\n", "5: 'Picture': use image"),
    ],
)
def test_term_is_reported_with_its_line(name, text, problem, tmp_path, capsys):
    file = tmp_path / name
    file.write_text(text)
    assert terms.main([str(tmp_path)]) == 1
    assert f"{file}:{problem}" in capsys.readouterr().out


@pytest.mark.parametrize("code", ["{}", "class A:\n    {}", "def a():\n    {}", "A = 1\n{}"])
@pytest.mark.parametrize("word", ["Of", "What", "So", "Whose", "Where", "How", "That", "By"])
def test_first_word_of_docstring_is_reported(word, code, tmp_path, capsys):
    file = tmp_path / "a.py"
    file.write_text(code.format(f'"""\n    {word} a run."""\n'))
    assert terms.main([str(file)]) == 1
    assert f"{file}:{code.count(chr(10)) + 1}: docstring begins with '{word}'" in capsys.readouterr().out


@pytest.mark.parametrize(("pattern", "use"), terms.TERMS.items())
def test_each_pattern_finds_a_term(pattern, use, tmp_path, capsys):
    term = re.sub(r"\(([^|)]*)[^)]*\)", r"\1", pattern).split("|")[0].replace("?", "")
    (tmp_path / "a.md").write_text(f"The {term}")
    assert terms.main([str(tmp_path)]) == 1
    assert f"'{term}': use {use}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", '"""Return `picture` of film.gif, and `so many`, as `--from-film` has it."""\n'),
        ("a.py", "twin = 'a picture # of a film'\nOf = {'film': twin}\n"),
        ("a.py", '"""Howl, sob and bypass."""\n'),
        ("a.py", '"""Every `seed` start."""\n'),
        ("a.md", "    film\n\n[It](film/picture) is at https://twins.org/film.\n"),
    ],
)
def test_code_and_names_are_exempt(name, text, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert terms.main([str(tmp_path)]) == 0, capsys.readouterr().out
