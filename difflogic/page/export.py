"""Export of in-browser training as one HTML file that trains presets on the visitor's GPU, without network requests."""

import base64
import gzip
import json
import re
from collections.abc import Sequence

from difflogic.circuits.export.html import SCRIPTS as LIVING
from difflogic.circuits.export.text import script, template
from difflogic.errors import UsageError
from difflogic.model.straight_line import EXPRESSIONS
from difflogic.page.bundle import as_json, joined, package_text
from difflogic.page.plans import names, page_data

SCRIPTS = ("seeded.js", "hard.js", "search.js", "repair.js", "player.js", "rules.js", "trainer.js")
"""Names of the page's classic (non-module) scripts in order, after `engines.js`; the entry module is `face.js`."""

STYLES = ("serve/web/style.css", "circuits/export/templates/figure.css", "page/page.css")

_MARK = re.compile(r"@([A-Z]+)@")


def training_page(presets: Sequence[str] | None = None) -> str:
    """Return a web page for in-browser training with WebGPU.

        >>> page = difflogic.training_page(["checkerboard-small"])
        >>> "https://" in page
        False

    Args:
        presets: Names of presets, as listed by `difflogic presets`, and `draw` or `draw-small` for the visitor's own
            image. The page opens with the first preset. The default is all supported presets.

    Returns:
        The contents of one HTML file, which needs no other files.

    Raises:
        UsageError: `presets` is empty, or a preset is repeated or unsupported.
        LimitError: A preset exceeds the limits that every WebGPU device supports.
    """
    presets = names() if presets is None else presets
    if not presets or len(set(presets)) < len(presets):
        raise UsageError(f"Expected one or more different presets, got {', '.join(presets) or 'none'}.")
    # Without a timestamp, the same presets result in the same file.
    data = json.dumps(page_data(list(presets)), separators=(",", ":")).encode()
    packed = base64.b64encode(gzip.compress(data, mtime=0)).decode()
    marks = {
        "STYLE": "".join(package_text(file) for file in STYLES),
        "DATA": f'<script type="text/plain" id="plans">{packed}</script>',
        "LIVING": f'<script type="application/json" id="living">{as_json(_living())}</script>',
        "SCRIPT": "\n".join([template("engines.js"), *(package_text(f"page/{file}") for file in SCRIPTS)]),
        "MODULES": f'<script type="module">\n{joined("page/face.js")}</script>',
    }
    return _MARK.sub(lambda mark: marks[mark[1]], package_text("page/page.html"))


def _living() -> dict[str, object]:
    """Return the templates, by name, from which `living.js` builds a page with the trained circuit in the browser."""
    return {
        "page": template("page.html"),
        "style": template("page.css") + template("figure.css"),
        "engines": template("engines.js"),
        "script": script(*LIVING),
        "shader": template("step.wgsl.txt"),
        "expressions": EXPRESSIONS,
    }
