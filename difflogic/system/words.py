"""Words that agree with numbers, and text that a terminal shows as it is."""

import re


def path_text(text: str) -> str:
    """Return a text as a path keeps it: the slashes of a rule as MAP, which a path would merge, as low lines.

    >>> path_text("MAP//" + "A" * 84)[:8]
    'MAP__AAA'
    """
    is_map = re.fullmatch(r"map([\w+/-]{86}|[\w+/-]{22}|[\w+/-]{6})={0,2}(:[\w,]+)?", text, re.IGNORECASE)
    return text.replace("/", "_") if is_map and (len(text) > 88 or "//" in text) else text


def counted(count: int, noun: str) -> str:
    """`1 gate`, `2 gates`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def line(label: str, text: str) -> str:
    """Return a line of a summary: `Gates:           12 per cell`."""
    return f"{label + ':':16} {text}"


def visible(text: str) -> str:
    r"""Return a text with its escape sequences, bidirectional marks and other invisible characters as `repr` has them.

    On a terminal they would clear the screen, set its title, or make one name look like another. Line ends and tabs
    stay.

        >>> visible("\x1b[2J\u202efig.exe")
        '\\x1b[2J\\u202efig.exe'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode() for each in text
    )
