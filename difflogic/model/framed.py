"""Display a circuit in notebooks: an iframe with the page that runs it.

An export makes the page. This module must not import exports, which are a higher layer: `difflogic` sets `page_of`.
"""

import html
from collections.abc import Callable

HEIGHT = 720
"""Height of the frame in pixels: enough for the automaton and its controls, without the diagram below them."""


def _unknown(circuit: object) -> str | None:
    return None


page_of: Callable[[object], str | None] = _unknown
"""Function that returns the HTML page of a circuit, or None if the circuit has no page."""


def in_frame(circuit: object) -> str | None:
    """Return HTML for a notebook; None if the circuit has no page, in which case the notebook shows text."""
    page = page_of(circuit)
    if page is None:
        return None
    # A circuit may be untrusted: the sandbox lets its page run without access to the notebook.
    frame = f'<iframe sandbox="allow-scripts" style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc='
    return f'{frame}"{html.escape(page)}"></iframe>'
