"""Display a circuit in a notebook as an iframe that contains the circuit's interactive page.

The package `difflogic` sets `page_of`, since this module must not import the exports, which belong to a higher layer.
"""

import html
from collections.abc import Callable

HEIGHT = 720
"""Height of the iframe in pixels: fits the automaton and its controls, but not the diagram below them."""


page_of: Callable[[object], str | None] | None = None
"""Function that returns the HTML of a circuit's interactive page, or None if the circuit has no page."""


def in_frame(circuit: object) -> str | None:
    """Return the HTML of an iframe with the circuit's page; None if it has no page (notebooks then show its repr)."""
    if page_of is None or (page := page_of(circuit)) is None:
        return None
    # A circuit may be untrusted: the sandbox lets its page run without access to the notebook.
    frame = f'<iframe sandbox="allow-scripts" style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc='
    return f'{frame}"{html.escape(page)}"></iframe>'
