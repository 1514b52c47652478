"""Learn custom images by a user's command, and evaluate the circuits independently.

`python -m benchmarks.pictures 52001`                   # twenty images of a generator seed; --save stores the rows
`python -m benchmarks.pictures 52001 --only 0,3`        # two of these images
`python -m benchmarks.pictures 52001 --draw FOLDER`     # only write the images as files
`python -m benchmarks.pictures 52001 --stays`           # twenty smaller images that must persist, without a preset

Each image is learned by `difflogic train lizard --target PICTURE --until-solved --within 240s`; with `--stays`, without
`lizard`. NumPy runs circuit.json from a single cell, or from zeros, and compares the result with the image. With
`--stays`, it also runs further steps, in which the image must stay, and sets 3x3 squares at random places to zero.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from benchmarks.films import stepped, trained
from benchmarks.store import Line, append

Pixels = npt.NDArray[np.uint8]
Generator = np.random.Generator
COUNT, SECONDS = 20, 240
BLOCKS = {False: ((12, 32), (2, 8, 64)), True: ((12, 24), (2, 8))}
"""Range of sides and numbers of colours, by whether images must persist."""
SQUARE, PLACES = 3, 25
"""Side of a square that is set to zero, and number of its random places."""
KINDS = ("shapes", "letters", "emoji", "gradient")
FONT = Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf")
EMOJI = [*range(0x1F600, 0x1F641), 0x1F42D, 0x1F42E, 0x1F431, 0x1F435, *range(0x2600, 0x2624), *range(0x2654, 0x2670)]
"""Code points of characters in FONT: faces, animals, weather, chess pieces, cards."""
BRIGHT = {2: (255,), 8: (0, 255), 64: (0, 85, 170, 255)}
"""Values of red, green and blue by number of colours; the two colours are black and white."""


class Picture:
    """Random image `pixels [H, W, 3]`; `number` determines its kind and its number of colours."""

    def __init__(self, rng: Generator, number: int, stays: bool = False) -> None:
        sides, colors = BLOCKS[stays]
        # This formula combines each kind with both numbers of colours.
        self.colors = colors[(number // len(KINDS) + number) % 2 if stays else number % len(colors)]
        kind = KINDS[number % len(KINDS)]
        height, width = rng.integers(sides[0], sides[1] + 1, 2).tolist()
        self.name = f"{kind} {width}x{height}"
        page = Image.new("RGB", (width, height))
        getattr(self, f"_{kind}")(rng, ImageDraw.Draw(page), page)
        self.pixels: Pixels = np.asarray(page)

    @property
    def bits(self) -> Pixels:
        """Bits `[H, W, channels]`: one channel, or the high bits of red, green and blue, then their low bits."""
        if self.colors == 2:
            return self.pixels.any(axis=-1, keepdims=True).astype(np.uint8)
        level: Pixels = (self.pixels // (255 if self.colors == 8 else 85)).astype(np.uint8)
        return level if self.colors == 8 else np.concatenate([level >> 1, level & 1], axis=-1)

    def _color(self, rng: Generator) -> tuple[int, ...]:
        while not any(color := rng.choice(BRIGHT[self.colors], 3).tolist()):
            pass
        return tuple(color)

    def _shapes(self, rng: Generator, pen: ImageDraw.ImageDraw, page: Image.Image) -> None:
        for _ in range(int(rng.integers(3, 7))):
            x, y, side = (
                int(rng.integers(page.width - 4)),
                int(rng.integers(page.height - 4)),
                int(rng.integers(4, 12)),
            )
            draw = (pen.rectangle, pen.ellipse)[rng.integers(2)]
            # Images of two colours also have black shapes, since white shapes alone would merge into a spot.
            color = self._color(rng) if self.colors > 2 or rng.random() < 0.7 else (0, 0, 0)
            draw((x, y, x + side, y + int(rng.integers(4, 12))), fill=color)

    def _letters(self, rng: Generator, pen: ImageDraw.ImageDraw, page: Image.Image) -> None:
        letters = [chr(65 + int(rng.integers(26))) for _ in range(2 if page.width > page.height else 1)]
        self._write(rng, pen, page, letters)

    def _emoji(self, rng: Generator, pen: ImageDraw.ImageDraw, page: Image.Image) -> None:
        self._write(rng, pen, page, [chr(int(rng.choice(EMOJI)))])

    def _write(self, rng: Generator, pen: ImageDraw.ImageDraw, page: Image.Image, letters: list[str]) -> None:
        """Draw letters next to each other, each in a random colour, without antialiasing."""
        room = page.width / len(letters)
        font = ImageFont.truetype(str(FONT), int(min(1.1 * room, page.height)))
        pen.fontmode = "1"
        for place, letter in enumerate(letters):
            pen.text(((place + 0.5) * room, page.height / 2), letter, self._color(rng), font, anchor="mm")

    def _gradient(self, rng: Generator, pen: ImageDraw.ImageDraw, page: Image.Image) -> None:
        """Draw a gradient with a direction for each of red, green and blue, in a disc or on the entire page."""
        y, x = np.indices((page.height, page.width))
        steep = rng.uniform(-1, 1, (3, 2)) if self.colors > 2 else np.repeat(rng.uniform(-1, 1, (1, 2)), 3, axis=0)
        slope = np.stack([a * y / page.height + b * x / page.width for a, b in steep], axis=-1)
        slope = (slope - slope.min((0, 1))) / np.ptp(slope, axis=(0, 1))
        levels = len(BRIGHT[self.colors]) if self.colors > 2 else 2
        made = np.minimum(levels - 1, (slope * levels).astype(int)) * (255 // (levels - 1))
        if rng.random() < 0.5:
            made[(2 * y / page.height - 1) ** 2 + (2 * x / page.width - 1) ** 2 > 1] = 0
        page.paste(Image.fromarray(made.astype(np.uint8)))


def pictures(seed: int, stays: bool = False) -> list[Picture]:
    """Return the twenty images of a seed."""
    rng, block = np.random.default_rng(seed), list[Picture]()
    while len(block) < COUNT:
        picture = Picture(rng, len(block), stays)
        # The command refuses images of a single colour, and inverts images on a white background.
        white = (picture.pixels == 255).all(axis=-1)
        if not stays or (np.ptp(picture.pixels, axis=(0, 1)).any() and white.mean() < 0.5):
            block.append(picture)
    return block


def run(picture: Picture, seed: int, number: int, seconds: int = SECONDS, stays: bool = False) -> Line:
    """Train on the image, compare the circuit's output with the image, and return the row."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "picture.png")
        Image.fromarray(picture.pixels).save(file)
        asked = ["--target", str(file)] if stays else ["lizard", "--target", str(file), "--colors", str(picture.colors)]
        circuit, attempts, line = trained(asked, Path(folder, "run"), number, seconds)
        summary = Path(folder, "run", "summary.txt").read_text(encoding="utf-8")
    target, steps = picture.bits, circuit["habitat"]["steps"]
    target = target[..., : circuit["visible"]]  # one channel if the image is black and white
    state = np.zeros((1, *target.shape[:2], len(circuit["outputs"])), dtype=np.uint8)
    if not stays:
        state[:, target.shape[0] // 2, target.shape[1] // 2] = 1
    for _ in range(steps):
        state = stepped(circuit, state)
    wrong = state[0, ..., : target.shape[-1]] != target
    return {
        "seed": seed,
        "picture": picture.name,
        "colors": picture.colors,
        "wrong": int(np.count_nonzero(wrong)),
        "values": target.size,
        "repaired": "Repaired:" in summary,
        "tried": [[attempt["epoch"], attempt["wrong"]] for attempt in attempts],
        **({"preset": "image", **_later(circuit, state, target, number)} if stays else {}),
        **line,
    }


def _later(circuit: dict[str, Any], state: Pixels, target: Pixels, number: int) -> Line:
    """Check that the image stays in later steps, then damage copies of the state; return the fields of the result."""
    steps, channels, stays = circuit["habitat"]["steps"], target.shape[-1], True
    for _ in range(4 * steps):
        before, state = state, stepped(circuit, state)
        stays = stays and np.array_equal(before[0, ..., :channels], target)
    if not (stays and np.array_equal(before, state)):
        return {"stays": False}
    rng, damaged = np.random.default_rng(number), np.repeat(state, PLACES, axis=0)
    for each in damaged:
        y, x = (int(rng.integers(side - SQUARE + 1)) for side in target.shape[:2])
        each[y : y + SQUARE, x : x + SQUARE] = 0
    for _ in range(4 * steps):
        damaged = stepped(circuit, damaged)
    returned = (damaged[..., :channels] == target).all(axis=(1, 2, 3))
    return {"stays": True, "returns": float(returned.mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int, help="what the pictures are drawn from")
    parser.add_argument("--only", help="only these, counted from 0, with commas")
    parser.add_argument("--within", type=int, default=SECONDS, help="seconds for each")
    parser.add_argument("--draw", type=Path, help="only write the pictures into this folder")
    parser.add_argument("--stays", action="store_true", help="pictures of 12x12 to 24x24 cells, without a preset")
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results/pictures.jsonl")
    options = parser.parse_args()
    block = pictures(options.seed, options.stays)
    for number in map(int, options.only.split(",")) if options.only else range(len(block)):
        if options.draw is not None:
            Image.fromarray(block[number].pixels).save(options.draw / f"{number:02}.png")
            continue
        line = run(block[number], options.seed, number, options.within, options.stays)
        print(json.dumps(line), flush=True)
        if options.save:
            append("pictures", [line])


if __name__ == "__main__":
    main()
