"""`difflogic bench`: how fast is this machine, and what holds it back?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import force_option, json_document_option, output_option
from difflogic.cli.screen import sinks, table
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.bench.results import Line, Ratio, Results
    from difflogic.system.files import Output

FILE = click.Path(path_type=Path, dir_okay=False)
PICTURES = (".png", ".svg", ".pdf")
FAILED = 1


@click.group("bench", invoke_without_command=True)
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="gpu[:INDEX|:NAME]|cpu|reference",
    help="Measure this engine. May be repeated. Default: all that this machine has.",
)
@click.option("--require-hardware", is_flag=True, help="Refuse everything but hardware GPUs.")
@click.option(
    "--case", "patterns", multiple=True, metavar="NAME", help="Run only this case, group or pattern. May be repeated."
)
@click.option("--list", "only_list", is_flag=True, help="List the cases and stop.")
@click.option("--quick", is_flag=True, help="Fewer cases and short rounds. Takes seconds and is less exact.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds in which the engines take turns [7; quick 3].")
@output_option(help="Write a results file, for bench compare.")
@output_option("--picture", help="Draw the scaling curves (PNG, SVG or PDF).")
@force_option
@json_document_option
@click.pass_context
def command(ctx: click.Context, /, only_list: bool, as_json: bool, **settings: Any) -> int:
    """Measure the engines that are here, side by side in one run: each is verified first, then timed.

    The engines take turns in each round, and so do the points of a curve. So a machine whose speed drifts treats
    all alike. Quote medians and ratios. The command does not need a GPU.

    Example: difflogic bench --quick
    """
    # Click runs the group's own function before `bench compare` too.
    if ctx.invoked_subcommand is not None:
        return 0
    if only_list:
        _list_cases()
        return 0
    results = _measure(as_json, **settings)
    click.echo(results.to_json(), nl=False) if as_json else _show(results)
    return FAILED if results.wrong else 0


@command.command("compare")
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@json_document_option
def compare_command(old: Path, new: Path, as_json: bool) -> int:
    """Compare two results files case by case, where they are of the same machine, adapters and drivers.

    Example: difflogic bench compare before.json after.json
    """
    import json
    from dataclasses import asdict

    from difflogic.bench.results import Results, compare

    ratios = compare(Results.load(old), Results.load(new))
    if as_json:
        click.echo(json.dumps([asdict(each) | {"ratio": each.ratio} for each in ratios], indent=1))
    else:
        _show_ratios(ratios)
    return 0


def _list_cases() -> None:
    from difflogic.bench.cases import all_cases

    # Of arrays there are no gates to evaluate.
    rows = [(case.name, case.unit, _millions(getattr(case, "evaluations", None))) for case in all_cases()]
    table.show(("case", "what is timed", "million gate evaluations"), rows)


def _millions(count: float | None) -> str:
    return "" if count is None else f"{count / 1e6:.1f}"


def _measure(
    as_json: bool,
    engines: tuple[str, ...],
    require_hardware: bool,
    patterns: tuple[str, ...],
    quick: bool,
    rounds: int | None,
    out: Output | None,
    picture: Output | None,
) -> Results:
    from dataclasses import replace

    from difflogic.bench import cases, runner, scaling
    from difflogic.bench.engines import open_benches

    selected = cases.select(patterns, quick)
    if picture is not None and picture.path.suffix.lower() not in PICTURES:
        raise UsageError(f"--picture draws {', '.join(PICTURES)}: {picture} is named as none of them.")
    effort = runner.QUICK if quick else runner.Effort()
    effort = replace(effort, rounds=rounds or effort.rounds)
    # Progress goes to standard error anyway, but a program that asks for JSON wants neither.
    say = (lambda text: None) if as_json else sinks.working
    say("opening the engines and measuring how fast their memory is copied")
    results = runner.measure(selected, open_benches(engines, require_hardware), effort, say)
    if out:
        out.write(results.to_json().encode())
    if picture:
        picture.write(scaling.draw(results, picture.path.suffix[1:]))
    return results


def _show(results: Results) -> None:
    machine = results.data["machine"]
    click.echo(f"{machine['processor']}, {machine['cores']} cores, load {machine['load_1min']}")
    for name, engine in results.engines.items():
        click.echo(_engine_line(name, engine))
    click.echo("")
    table.show(_HEADERS, [_row(line, results) for line in results.cases])
    for line in results.cases:
        if "limiter" in line:
            click.echo(f"{line['case']} on {line['engine']} is limited by: {line['limiter']}")
    # Parts are matched by name, so that the same kernel of two engines stands in one row.
    if kernels := [line for line in results.cases if line["case"].startswith("train/") and "profile" in line]:
        click.echo("")
        table.show(
            ("kernel", *(f"{line['case']} {line['engine']}" for line in kernels)),
            _kernel_rows(kernels),
            "ms per train step:",
        )
        for line in kernels:
            _say_what_is_missing(line)
    for sentence in _conclusions(results):
        click.echo(sentence)
    for each in results.skipped:
        click.echo(f"Not measured: {each['case']} on {each['engine']} ({each['kind']}): {each['why']}", err=True)


def _conclusions(results: Results) -> Iterator[str]:
    """Return what several cases say together."""
    from difflogic.bench.scaling import curves, logging_share, overtaking

    for curve in curves(results):
        growth = ", ".join(f"{each:.2f}" for each in curve.growth)
        yield f"4 times the {curve.axis} on {curve.engine} costs {growth} times as much"
    yield from overtaking(results)
    for name in results.engines:
        if (share := logging_share(results, name)) is not None:
            yield f"Logging every epoch on {name} keeps {share:.0%} of the speed"


_HEADERS = (
    *("case", "engine", "median ms", "min", "max", "times as fast", "M gates/s", "GFLOP/s", "GB/s", "of copy rate"),
    *("dispatches", "transfer", "memory MB", "on device MB"),
)


def _engine_line(name: str, engine: Line) -> str:
    parts = [f"{name}: {engine['adapter']} ({engine['driver']}), memory copied at {engine['copy_gb_per_s']:.1f} GB/s"]
    if engine["timestamps"] is not None:
        parts.append(f"empty dispatch {engine['dispatch_us']:.1f} us, round trip {engine['round_trip_us']:.0f} us")
        parts.append(f"device opened in {engine['open_ms']:.0f} ms")
    if engine["timestamps"] is False:
        parts.append("no timestamp queries: kernels are timed by the host's clock")
    return "; ".join(parts)


def _row(line: Line, results: Results) -> tuple[str, ...]:
    # The slowest engine of the case is 1.0, and the others are so many times as fast.
    slowest = max(each["median_ms"] for each in results.cases if each["case"] == line["case"])
    return (
        line["case"],
        line["engine"],
        _number(line["median_ms"]),
        _number(line["min_ms"]),
        _number(line["max_ms"]),
        f"{slowest / line['median_ms']:.1f}",
        f"{line['gate_evaluations_per_s'] / 1e6:.0f}" if "gate_evaluations_per_s" in line else "",
        _number(line.get("gflop_per_s")),
        _number(line.get("traffic_gb_per_s")),
        _percent(line.get("share_of_copy_rate")),
        "" if line.get("dispatches") is None else str(line["dispatches"]),
        _percent(line.get("transfer_share")),
        _number(line["peak_mb"]),
        _number(line.get("device_mb")),
    )


def _number(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _kernel_rows(lines: list[Line]) -> list[tuple[str, ...]]:
    from difflogic.bench.profile import PHASES

    times = [{part["name"]: part["ms"] for part in line["profile"]["parts"]} for line in lines]
    found = dict.fromkeys(name for each in times for name in each)
    order = list(PHASES)
    # In the order of a train step; what has no phase comes last.
    names = sorted(found, key=lambda name: order.index(name) if name in order else len(order))
    return [(name, *(_number(each.get(name)) for each in times)) for name in names]


def _say_what_is_missing(line: Line) -> None:
    from difflogic.bench.profile import ATTRIBUTED

    share = line["profile"]["attributed"]
    if share < ATTRIBUTED:
        click.echo(f"{line['case']} on {line['engine']}: only {share:.0%} of the time is accounted for by its parts")


def _show_ratios(ratios: list[Ratio]) -> None:
    rows = [
        (
            each.case,
            each.engine,
            _number(each.old_ms),
            _number(each.new_ms),
            f"{each.ratio:.2f}",
            "" if each.clear else "within the spread",
        )
        for each in ratios
    ]
    table.show(("case", "engine", "old ms", "new ms", "times as fast", ""), rows)
