"""Format text: plurals, lines of a summary, paths, and text that is safe to print on a terminal."""

import re


def path_text(text: str) -> str:
    """Replace slashes by underscores if `text` is a rule in MAP notation, since a path would merge double slashes.

    >>> path_text("MAP//" + "A" * 84)[:8]
    'MAP__AAA'
    """
    is_map = re.fullmatch(r"map([\w+/-]{86}|[\w+/-]{22}|[\w+/-]{6})={0,2}(:[\w,]+)?", text, re.IGNORECASE)
    return text.replace("/", "_") if is_map and (len(text) > 88 or "//" in text) else text


def counted(count: int, noun: str) -> str:
    """Return a number with a noun in the singular or plural, such as `1 gate` or `2 gates`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def line(label: str, text: str) -> str:
    """Return a line of a summary with an aligned text, such as `Gates:           12 per cell`."""
    return f"{label + ':':16} {text}"


def visible(text: str) -> str:
    r"""Escape control characters, bidirectional marks and other invisible characters in `text`, as `repr` does.

    On a terminal, these could clear the screen, set its title, or make one name look like another. Line ends and tabs
    are not escaped.

        >>> visible("\x1b[2J\u202efig.exe")
        '\\x1b[2J\\u202efig.exe'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
