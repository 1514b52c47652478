"""A request becomes a configuration, and that a draft of a job."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from difflogic import presets
from difflogic.config import Config
from difflogic.errors import UsageError
from difflogic.serve import cost
from difflogic.serve.cost import Cost
from difflogic.serve.faults import ApiError, in_fields, one_sentence
from difflogic.serve.jobs import Draft
from difflogic.serve.schemas import JobRequest
from difflogic.serve.settings import Caps
from difflogic.train import picture_file
from difflogic.train.retarget import Changes, Wishes
from difflogic.train.wanted import configured

MAX_CELLS = 1 << 20
"""Of a grid that a picture is put into."""


class Drawn:
    """What a request asks for: the configuration, what a target or start changed in it, and the cost."""

    def __init__(self, request: JobRequest, pictures: Mapping[str, Path], caps: Caps) -> None:
        """Raises ApiError, with one sentence, where it cannot be."""
        self.request = request
        try:
            for path in pictures.values():
                check_picture(path, caps.pixels)
            self.config, self.changed = _configured(request, pictures)
        except UsageError as error:
            raise ApiError(422, "invalid_config", _words(error, pictures)) from error
        if request.stop_when_solved > request.population:
            raise ApiError(
                422, "invalid_request",
                f"stop_when_solved counts models: expected at most {request.population}, the population.",
            )  # fmt: skip
        self.cost: Cost = cost.check(self.config, request.population, caps)

    @property
    def draft(self) -> Draft:
        """As the store takes it."""
        request = self.request
        return Draft(
            kind="train",
            name=request.name or self.config.name,
            config=self.config.to_dict(),
            engine=request.engine,
            population=request.population,
            stop_when_solved=request.stop_when_solved,
            priority=request.priority,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """What a target, rule or start changed, by path."""
        data = self.config.to_dict()
        return {f"{section}.{name}": data[section][name] for section, inside in self.changed.items() for name in inside}


def _configured(request: JobRequest, pictures: Mapping[str, Path]) -> tuple[Config, Changes]:
    if (request.preset is None) == (request.config is None):
        raise UsageError("Say what to train: either preset or config.")
    base = presets.get(request.preset) if request.preset is not None else Config.from_dict(request.config or {})
    fields = nested(request.set)
    if pictures:
        _check_room(base, fields)
    if "start_picture" in pictures and request.start is not None:
        raise UsageError("start and start_picture are both given: give one of them.")
    wishes = Wishes(
        target=pictures.get("target"),
        rule=request.rule,
        start=str(pictures["start_picture"]) if "start_picture" in pictures else request.start,
        colors=request.colors,
        size=_size(request.size),
        threshold=request.threshold,
        padding=request.padding,
    )
    return configured(base, wishes, fields, keep_grid=request.config is not None)


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`{"train.lr": 1}` as `{"train": {"lr": 1}}`. Raises UsageError for paths that are none."""
    data: dict[str, Any] = {}
    for path, value in fields.items():
        *tables, name = path.split(".")
        inside = data
        for table in tables:
            inside = inside.setdefault(table, {})
            if not isinstance(inside, dict):
                raise UsageError(f"set has a value for {path} and another for a part of it.")
        if name in inside:
            raise UsageError(f"set has a value for {path} and another for a part of it.")
        inside[name] = value
    return data


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    width, height = map(int, text.split("x"))
    if not all(1 <= side <= picture_file.MAX_SIDE for side in (width, height)):
        raise UsageError(f"size must be WIDTHxHEIGHT of 1 to {picture_file.MAX_SIDE} cells each, got {text}.")
    return width, height


def _check_room(base: Config, fields: Mapping[str, Any]) -> None:
    """A grid is made for a picture before its cost is known: it must not be endless."""
    task = {"height": base.task.height, "width": base.task.width}
    asked = fields.get("task")
    sides = [(task | (asked if isinstance(asked, dict) else {}))[name] for name in task]
    if all(type(side) is int for side in sides) and sides[0] * sides[1] > MAX_CELLS:
        raise UsageError(f"A picture is put into at most {MAX_CELLS} cells: give a smaller task.height and task.width.")


def check_picture(path: Path, pixels: int) -> None:
    """Raises ApiError where a picture says of itself that it has more pixels; what is no picture is refused later."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged files: they are refused where they are read
        try:
            with Image.open(path, formats=picture_file.FORMATS) as picture:
                width, height = picture.size
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, TypeError, LookupError):
            return
        except Image.DecompressionBombError as error:
            raise ApiError(422, "too_many_pixels", f"A picture may have at most {pixels:,} pixels.") from error
    if width * height > pixels:
        words = f"The picture has {width}x{height} pixels, at most {pixels:,} are taken: scale it down."
        raise ApiError(422, "too_many_pixels", words)


def _words(error: Exception, pictures: Mapping[str, Path]) -> str:
    """Without the server's paths, and with fields where the command line has options."""
    text = str(error)
    for name, path in pictures.items():
        text = text.replace(str(path), f"The picture {name}" if text.startswith(str(path)) else f"the picture {name}")
    return one_sentence(in_fields(text))


def shown_target(config: Config) -> dict[str, Any] | None:
    """The target's cells in colours; None for a rule."""
    from difflogic import raster
    from difflogic.train import pictures, tasks

    target = tasks.target(config.task)
    if target is None:
        return None
    rgb = pictures.colors(target[..., : raster.MAX_BITS].astype(np.uint8))
    return {"width": config.task.width, "height": config.task.height, "rgb": rgb.tolist()}
