"""Options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from difflogic.errors import MissingPackagesError, UsageError

if TYPE_CHECKING:
    from difflogic.engine import Engine

Function = TypeVar("Function", bound=Callable[..., Any])

MAX_SIDE = 128
"""Cells a side of a picture, as in `train.picture_file`, whose import would slow down `--help`."""


def engine_options(function: Function) -> Function:
    """`--gpu`, `--engine`, `--require-hardware`; read them with `engine_selector`."""
    for option in (
        click.option("--require-hardware", is_flag=True, help="Refuse everything but hardware GPUs."),
        click.option(
            "--engine",
            metavar="auto|gpu[:INDEX|:NAME]|cpu|reference",
            help="What computes. auto (the default): a hardware GPU, else the CPU engine.",
        ),
        click.option("--gpu", is_flag=True, help="The same as --engine gpu."),
    ):
        function = option(function)
    return function


def circuit_options(function: Function) -> Function:
    """`--periodic/--zero` and `--visible`, None where they are not given: what a file may leave unsaid."""
    for option in (
        click.option("--visible", type=int, metavar="V", help="So many channels are the picture [as the file says]."),
        click.option("--periodic/--zero", default=None, help="The boundary of the grid [as the file says, else zero]."),
    ):
        function = option(function)
    return function


def json_option(function: Function) -> Function:
    """`--json`, which reaches the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON object per line, and nothing else.")(function)


def json_document_option(function: Function) -> Function:
    """`--json` of commands that print one document, over several lines."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document, and nothing else.")(function)


def policy_option(function: Function) -> Function:
    """`--policy`, None where it is not given; `checked_policy` reads it."""
    return click.option(
        "--policy",
        type=click.Choice(["auto", "gpu", "cpu", "sticky"]),
        help="How --engine auto chooses. auto (the default): where there is a hardware GPU, by measuring the first "
        "epochs on it and on the CPU engine, or as found before; gpu, cpu: that one, unmeasured; sticky: where the "
        "last run of this shape was.",
    )(function)


def precision_option(function: Function) -> Function:
    """`--precision`, None where it is not given: a field of `train`."""
    return click.option(
        "--precision",
        type=click.Choice(["float32", "f16-storage"]),
        help="How the GPU keeps gate values for the backward pass. f16-storage: rounded to 16 bits, in 9/16 of the "
        "memory [float32].",
    )(function)


def checked_policy(policy: str | None, selector: str | None, resume: bool) -> Any:
    """The policy, `auto` where none was given. Raises UsageError where there is nothing to choose."""
    if policy is not None and selector not in (None, "auto"):
        raise UsageError(f"--policy says how --engine auto chooses, but {selector} was asked for: give one of them.")
    if policy is not None and resume:
        raise UsageError("--resume stays on the run's engine, or takes the --engine given: drop --policy.")
    return policy or "auto"


def megabytes(text: str) -> int:
    """A positive number of MB as bytes: a type for click."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise click.BadParameter(f"{text!r} is not a positive number of MB.")
    return round(value * 1e6)


def picture_size(text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT in cells: a type for click."""
    sides = _sides(text)
    if sides is None or not all(1 <= side <= MAX_SIDE for side in sides):
        raise click.BadParameter(f"{text!r} is not WIDTHxHEIGHT of 1 to {MAX_SIDE} cells each, say 32x32.")
    return sides


def grid_size(text: str) -> tuple[int, int]:
    """WIDTHxHEIGHT in cells, as `(height, width)`: a type for click."""
    sides = _sides(text)
    if sides is None:
        raise click.BadParameter(f"{text!r} is not WIDTHxHEIGHT, say 64x64.")
    return sides[1], sides[0]


def _sides(text: str) -> tuple[int, int] | None:
    """Width and height."""
    found = re.fullmatch(r"([0-9]{1,9})[xX]([0-9]{1,9})", text)
    return None if found is None else (int(found[1]), int(found[2]))


def engine_selector(engine: str | None, gpu: bool) -> str | None:
    """The engine asked for, None where none was. Raises UsageError where the two options disagree."""
    if gpu and engine is not None and engine.partition(":")[0] != "gpu":
        raise UsageError(f"--gpu means --engine gpu, but --engine {engine} was given too: give one of them.")
    return engine or ("gpu" if gpu else None)


def asked_engine(engine: str | None, gpu: bool, require_hardware: bool) -> Engine | None:
    """The engine asked for; None where none was."""
    from difflogic.train import placement

    selector = engine_selector(engine, gpu)
    if selector is None and not require_hardware:
        return None
    return placement.place(selector or "auto", require_hardware, trusted=True).engine


@contextmanager
def service(command: str) -> Iterator[None]:
    """For imports of what the extra `serve` brings. Raises MissingPackagesError where it is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "difflogic":
            raise
        raise MissingPackagesError(
            f"`difflogic {command}` needs the packages of `pip install 'difflogic-ca[serve]'`: {error.name} is missing."
        ) from error
