"""Display a circuit in notebooks: an iframe with the page that runs it.

The page is made by an export, in a higher layer that this one must not import: the package `difflogic` sets `page_of`.
"""

import html
from collections.abc import Callable

HEIGHT = 720
"""Height of the frame in pixels: the automaton and its controls; the diagram of the circuit is below."""


def _unknown(circuit: object) -> str | None:
    return None


page_of: Callable[[object], str | None] = _unknown
"""Function that makes the HTML page of a circuit; None if there is nothing to run."""


def in_frame(circuit: object) -> str | None:
    """Return HTML for a notebook; None if there is no page, so that the notebook shows text."""
    page = page_of(circuit)
    if page is None:
        return None
    # A circuit may be untrusted: the sandbox lets its page run without access to the notebook.
    frame = f'<iframe sandbox="allow-scripts" style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc='
    return f'{frame}"{html.escape(page)}"></iframe>'
