"""Hooks of mkdocs: add generated pages and pages outside docs/, resolve links between pages, and draw diagrams."""

from __future__ import annotations

import html
import os
import posixpath
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import graphviz
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import gallery
import reference

from difflogic.page.export import training_page

CHECKOUT = Path(__file__).resolve().parents[2]
LOG = get_plugin_logger("difflogic")

ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "tutorial/train-test-and-render.md",
    "shaders/README.md": "explanation/kernels.md",
    "shaders/tensor/README.md": "explanation/tensor-kernels.md",
    "benchmarks/README.md": "results/protocol.md",
}
"""Documents outside docs/, with their paths on the site."""
ORIGINS = {site: origin for origin, site in ELSEWHERE.items()}

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)


TRAINING = ("checkerboard-small", "game-of-life", "colored-g", "draw", "draw-small")
"""Presets that visitors can train on the front page; software devices use the smaller image."""
FRONT = """
<p><a href="train.html">Train one here, on your own graphics card</a>: choose what it should learn, and press Train.</p>
<iframe class="train" src="train.html" title="Train logic gates in this page"></iframe>

"""


BOOSTS = {"tutorial": 16, "how-to": 3, "results": 0.5, "reference": 0.3, "changelog.md": 0.1}
"""Weights of pages in the search, by their folders: pages that a newcomer needs come first."""


def on_post_page(output: str, **_: Any) -> str:
    """Add an accessible name to the search dialog, which has no name in the theme."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_files(files: Any, config: Any) -> Any:
    """Add pages and images that are not in docs/ to the files of the site."""
    files.append(File.generated(config, "train.html", content=training_page(TRAINING)))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(CHECKOUT / "difflogic/serve/web/icon.svg")))
    for path, content in gallery.pictures().items():
        files.append(File.generated(config, path, content=content))
    for origin, site in ELSEWHERE.items():
        files.append(File.generated(config, site, content=(CHECKOUT / origin).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Add generated text to a page, and resolve its links; a link to a file that the site lacks becomes its label."""
    known = {file.src_uri for file in files}
    uri = page.file.src_uri
    page.meta.setdefault("search", {"boost": BOOSTS.get(uri.partition("/")[0], 1)})
    generated = reference.PAGES | {gallery.PAGE: gallery.page}
    if uri in generated:
        markdown += "\n" + generated[uri]()
    if uri == "index.md":  # after the first paragraph, before the first image
        first, rest = markdown.split("\n![", 1)
        markdown = f"{first}{FRONT}![{rest}"
    origin = ORIGINS.get(uri, f"docs/{uri}")

    def link(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        if file.endswith(".ipynb") and (repository := os.environ.get("GITHUB_REPOSITORY")):
            colab = f"https://colab.research.google.com/github/{repository}/blob/main/{file}"
            return f"{label} [Open in Colab]({colab})"
        goal = ELSEWHERE.get(file, file.removeprefix("docs/"))
        if goal in known:
            return f"{mark}[{label}]({posixpath.relpath(goal, posixpath.dirname(uri) or '.')}{hash_}{anchor})"
        if not (CHECKOUT / file).exists():
            LOG.warning("%s links to %s, which is not there.", origin, target)
        return f"`{label}`" if "`" not in label else label

    # Every second part of the split is fenced code.
    parts = FENCED.split(markdown)
    return "".join(drawn(part) if index % 2 else LINK.sub(link, part) for index, part in enumerate(parts))


NODE = r'(\[\*\]|\w+)(?:\["([^"]*)"\])?'
ARROW = re.compile(rf'{NODE}\s*-->(?:\|"?([^|"]*)"?\|)?\s*(?={NODE}(?:: (.*))?)')


def drawn(block: str) -> str:
    """Convert a Mermaid diagram to SVG with Graphviz, so that the page needs no script."""
    if not block.startswith("```mermaid"):
        return block
    labels = {name: label for name, label in re.findall(NODE, block) if label}
    arrows = [
        # Mermaid writes both the initial and the final state as `[*]`, but they are two nodes.
        (start.replace("*", "begin"), end.replace("*", "end"), words or after)
        for line in block.splitlines()
        for start, _, words, end, _, after in ARROW.findall(line)
    ]
    font = {"fontname": "sans", "fontsize": "11"}
    graph = graphviz.Digraph(
        graph_attr={"bgcolor": "transparent"}, node_attr={"shape": "box", "style": "rounded", **font}, edge_attr=font
    )
    for name in sorted({name for start, end, _ in arrows for name in (start, end)}):
        graph.node(name, **({"shape": "point"} if "[" in name else {"label": _wrapped(labels.get(name, name))}))
    for start, end, words in arrows:
        graph.edge(start, end, label=_wrapped(words))
    try:
        svg = graph.pipe("svg", encoding="utf-8")
    except graphviz.ExecutableNotFound:
        LOG.warning("Diagrams need the program dot: install the package graphviz of your system.")
        return block
    svg = re.sub(r"<title>.*?</title>\n|\n(?=\s*\n)", "", svg[svg.index("<svg") :]).replace('"black"', '"currentColor"')
    label = html.escape("; ".join(f"{labels.get(a, a)} to {labels.get(b, b)}" for a, b, _ in arrows))
    return f'<div class="diagram" role="img" aria-label="{label}">\n{svg}</div>'


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 20))
