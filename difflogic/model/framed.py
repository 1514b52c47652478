"""A circuit as notebooks show it: the page on which it lives, in a frame.

Pages are made by the exports, floors above the circuits. So nobody on this floor knows who makes them: `difflogic`
itself, which stands above all floors, says so here.
"""

import html
from collections.abc import Callable

HEIGHT = 720
"""Pixels of a frame: the automaton and its controls; the page scrolls to the drawing of the circuit."""


def _unknown(circuit: object) -> str | None:
    return None


page_of: Callable[[object], str | None] = _unknown
"""Makes the page of a circuit; None where nothing lives."""


def in_frame(circuit: object) -> str | None:
    """HTML for the output of a cell; None where there is no page, so that the notebook shows the circuit as text."""
    page = page_of(circuit)
    if page is None:
        return None
    # A circuit may come from anybody: its page runs, but reaches neither the notebook nor what that may do.
    frame = f'<iframe sandbox="allow-scripts" style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc='
    return f'{frame}"{html.escape(page)}"></iframe>'
