"""Generate the site's page of all circuits in the zoo, with image, gates, proof, seed and command."""

from __future__ import annotations

import html
import io
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.zoo.__main__ import picture
from difflogic.circuits.readers import zoo
from difflogic.cli.commands.zoo import what

PAGE = "results/gallery.md"


def pictures() -> dict[str, bytes]:
    """Return the images of the page as PNG files, by their paths on the site."""
    images = {}
    for name in zoo.names():
        picture(name).save(file := io.BytesIO(), "PNG")
        images[f"images/zoo/{name}.png"] = file.getvalue()
    return images


def page() -> str:
    """Return the page in Markdown: thumbnails of all circuits, then a section for each circuit."""
    wall = "\n".join(f"- [{_thumbnail(name, '')}<br>{name}](#{name})" for name in zoo.names())
    return f'<div class="wall" markdown>\n\n{wall}\n\n</div>\n\n' + "\n".join(map(_card, zoo.names()))


def _thumbnail(name: str, alt: str) -> str:
    return f"![{html.escape(alt)}](../images/zoo/{name}.png){{ width=62 height=62 }}"


def _card(name: str) -> str:
    data = zoo.entry(name)
    before, after = data["learned"]["gates"]
    command = data["learned"]["command"]
    seed = f" Seed {command.rpartition(' ')[2]}." if " --seed " in command else ""
    about = f"{what(data)}. {before} gates at first, {after} simplified.{seed}"
    picture = _thumbnail(name, what(data))
    return f"## {name}\n\n{picture}\n\n{about[0].upper()}{about[1:]}\n\n{data['text']}\n\n    {command}\n"


if __name__ == "__main__":
    print(page())
