"""Requests for post-processing jobs. The docstring of a class is the help of its command; JOB is the processed job."""

from difflogic.config.choices import EXPORTS
from difflogic.config.fields import section
from difflogic.config.limits import COUNT, Limits
from difflogic.config.request import Request, option
from difflogic.config.values import Size


@section
class HardenRequest(Request):
    """Queue training of JOB until its gates converge, as `difflogic harden` does."""

    search: bool = option("Search over gates of the hard circuit instead of training", default=False, group="harden")
    epochs: int | None = option("Epochs of the hardening", COUNT, group="harden", usual="a quarter of the run's")


@section
class SimplifyRequest(Request):
    """Queue a job that simplifies the circuit of JOB and proves that the result is equivalent."""

    from_start: bool = option(
        "Only preserve the behaviour from the task's initial state. This is proved for all sizes, or for `size` only",
        default=False, group="simplify",
    )  # fmt: skip
    size: Size | None = option(
        "Only preserve the behaviour on a grid of this size, with all cells updated in each step. This is proved",
        Limits("WIDTHxHEIGHT, of 1 to 99999 cells each", lambda size: all(1 <= side < 100_000 for side in size),
               schema={"pattern": "^[0-9]{1,5}x[0-9]{1,5}$"}),
        group="simplify", metavar="WIDTHxHEIGHT", needs="from_start", excludes={"task": "it uses the task's own grid"},
    )  # fmt: skip
    task: bool = option(
        "Only preserve what the task compares. This is tested, not proved", default=False, group="simplify"
    )


@section
class BuildRequest(Request):
    """Queue a job that builds a circuit for the task of JOB without training."""


@section
class ProveRequest(Request):
    """Queue a job that proves what the circuit of JOB does, or that a simplified circuit is equal to its original."""

    every_start: bool = option(
        "If JOB trained a circuit: prove that all initial states lead to its target", default=False, group="prove"
    )


@section
class ExportRequest(Request):
    """Queue a job that writes the circuit of JOB in the formats of `difflogic export`."""

    formats: tuple[str, ...] = option(
        "A format of `difflogic export`",
        Limits(f"one or more of {', '.join(EXPORTS)}", lambda names: bool(names) and {*names} <= EXPORTS.keys(),
               schema={"minItems": 1, "maxItems": len(EXPORTS), "items": {"enum": [*EXPORTS]}}),
        default=(), group="export", metavar="FORMAT",
    )  # fmt: skip


@section
class EvaluateRequest(Request):
    """Queue a job that tests the circuit of JOB far beyond its training."""

    quick: bool = option("Use fewer initial states, and shorten long tests to a tenth", default=True, group="evaluate")


REQUESTS: dict[str, type[Request]] = {
    "harden": HardenRequest,
    "simplify": SimplifyRequest,
    "build": BuildRequest,
    "prove": ProveRequest,
    "export": ExportRequest,
    "evaluate": EvaluateRequest,
}
"""Mapping from actions to the classes of their requests."""
