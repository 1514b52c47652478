"""`difflogic bench`: measure the engines of this machine, find their bottlenecks, and check their gradients."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import force_option, json_document_option, output_option
from difflogic.cli.screen import sinks, table
from difflogic.cli.screen.echo import FAILED, INTERRUPTED, echo
from difflogic.cli.work import is_asked, work, work_options
from difflogic.errors import UsageError
from difflogic.system.words import counted

if TYPE_CHECKING:
    from difflogic.bench.results import Line, Results
    from difflogic.system.files import Output

FILE = click.Path(path_type=Path, dir_okay=False)
SAMPLES = 8
"""Number of logits to check by finite differences; each needs two rollouts in float64."""


@click.command("bench")
@work_options
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="gpu[:INDEX|:NAME]|cpu|reference",
    help="Measure this engine. May be repeated. Default: all available engines. --gradients adds jax and torch.",
)
@click.option("--require-hardware", is_flag=True, help="Measure a hardware GPU, and fail if there is none.")
@click.option(
    "--case", "patterns", multiple=True, metavar="NAME", help="Only this case, group or pattern. May be repeated."
)
@click.option("--list", "only_list", is_flag=True, help="List the cases, and exit.")
@click.option("--gradients", is_flag=True, help="Compare gradients instead of times.")
@click.option("--compare", nargs=2, type=FILE, metavar="OLD NEW", help="Compare two results files case by case.")
@click.option("--quick", is_flag=True, help="Fewer cases and shorter rounds: less accurate, but takes seconds.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds in which the engines take turns [7; quick 3].")
@output_option(help="Write a results file, for --compare.")
@force_option
@json_document_option
def command(only_list: bool, gradients: bool, compare: tuple[Path, Path] | None, as_json: bool, **settings: Any) -> int:
    """Measure the engines of this machine in one run: each is verified first, then timed.

    With PRESET or RUN, the train step of that training is measured, kernel by kernel; otherwise the cases of --list.
    `train` uses the times of a hardware GPU and of the CPU engine to choose between them. The engines take turns in
    each round, and so do the points of a curve, so that all are affected equally if the machine's speed drifts. Rows
    are reported on standard error as they are measured. Ctrl-C ends the run; --out then contains the rows so far, and
    the exit code is 130.

    --gradients compares the gradients of the engines with the reference in float32 and float64, with finite differences
    of the float64 loss for some logits, and with the model in JAX and PyTorch if these are installed. The exit code is
    1 if two differ by more than 1e-4 of the largest gradient of a layer, and by more than float32 rounding explains.

    --compare requires two files from the same machine, adapters and drivers.

    Example: difflogic bench --quick
    """
    modes = {"--list": only_list, "--gradients": gradients, "--compare": compare}
    chosen = [name for name, value in modes.items() if value]
    if len(chosen) > 1:
        raise UsageError("--list, --gradients and --compare cannot be used together: give one of them.")
    timing = {"--case": settings["patterns"], **{f"--{name}": settings[name] for name in ("quick", "rounds", "out")}}
    if chosen and (unused := [name for name, value in timing.items() if value]):
        raise UsageError(f"{chosen[0]} does not measure times: omit {unused[0]}.")
    if only_list:
        _list_cases()
        return 0
    if compare is not None:
        _compare(*compare, as_json)
        return 0
    if gradients:
        return _check_gradients(settings, as_json)
    results = _measure(as_json, **settings)
    echo(results.to_json(), nl=False) if as_json else _show(results)
    return INTERRUPTED if results.lists("stopped") else FAILED if results.lists("wrong") else 0


def _list_cases() -> None:
    from difflogic.bench.cases import all_cases

    counts = [(case, getattr(case, "evaluations", None)) for case in all_cases()]  # None for an ArrayCase
    rows = [(case.name, case.unit, "" if count is None else f"{count / 1e6:.1f}") for case, count in counts]
    table.show(("case", "timed work", "million gate evaluations"), rows)


def _measure(
    as_json: bool,
    engines: tuple[str, ...],
    require_hardware: bool,
    patterns: tuple[str, ...],
    quick: bool,
    rounds: int | None,
    out: Output | None,
    **options: Any,
) -> Results:
    from difflogic.bench import cases, runner
    from difflogic.bench.cases import Case
    from difflogic.bench.engines import open_benches

    effort = runner.QUICK if quick else runner.Effort()
    if is_asked(options):
        if patterns:
            raise UsageError("--case cannot be used with PRESET, RUN or their options: give one or the other.")
        # The reference is slow and only measured if the user names it. Measuring memory needs a case of --list.
        config = work(options).config
        selected: tuple[Any, ...] = (Case(f"train/{config.name}", "train", config, every_engine=bool(engines)),)
        effort = replace(effort, memory=False)
    else:
        selected = cases.select(patterns, quick)
    effort = replace(effort, rounds=rounds or effort.rounds)
    # With --json there is no progress on standard error.
    report = (lambda text: None) if as_json else sinks.working
    report("opening the engines and measuring how fast their memory is copied")
    benches = open_benches(engines, require_hardware)
    results = runner.measure(selected, benches, effort, report)
    runner.keep_faster(selected, benches, results)
    if out:
        out.write(results.to_json().encode())
    return results


def _compare(old: Path, new: Path, as_json: bool) -> None:
    from difflogic.bench.results import Results, compare

    ratios = compare(Results.load(old), Results.load(new))
    if as_json:
        echo(json.dumps([asdict(line) | {"ratio": line.ratio} for line in ratios], indent=1))
    else:
        rows = [
            (line.case, line.engine, _number(line.old_ms), _number(line.new_ms), f"{line.ratio:.2f}",
             "" if line.clear else "within the spread")
            for line in ratios
        ]  # fmt: skip
        table.show(("case", "engine", "old ms", "new ms", "times as fast", ""), rows)


def _check_gradients(options: dict[str, Any], as_json: bool) -> int:
    from difflogic.devices import check_gradients
    from difflogic.devices.check_gradients import Subject

    config, model, data = work(options)
    subject = Subject.start(config) if model is None else Subject.loaded(model, options["batch"], data)
    gradients = check_gradients.find(subject, options["engines"])
    pairs = check_gradients.compare(subject, gradients.found, SAMPLES)
    passed = all(pair.passed for pair in pairs)
    if as_json:
        # JSON has neither NaN nor infinity, which only an engine that fails returns.
        finite = ({"error": pair.error if isfinite(pair.error) else None, "passed": pair.passed} for pair in pairs)
        records = [asdict(pair) | values for pair, values in zip(pairs, finite, strict=True)]
        report: dict[str, Any] = {"passed": passed, "epoch": subject.epoch, "pairs": records}
        echo(json.dumps(report | {"described": gradients.described, "skipped": gradients.skipped}))
        return 0 if passed else FAILED
    echo(
        f"{config.name} after epoch {subject.epoch}: {subject.circuit.gates} gates, {config.task.steps} steps, "
        f"batch {subject.config.train.batch}"
    )
    echo("\n".join(f"{name}: {text}" for name, text in gradients.described.items()))
    headers = ("gradients of", "and of", "largest difference", "allowed", "in layer", "")
    rows = [
        (pair.one, pair.other, f"{pair.error:.1e}", f"{pair.allowed:.1e}", pair.layer, "ok" if pair.passed else "FAIL")
        for pair in pairs
    ]
    table.show(headers, rows)
    echo("Differences are relative to the layer's largest gradient.")
    for name, why in gradients.skipped.items():
        echo(f"Not compared: {name}. {why}")
    echo("All agree." if passed else "NOT ALL AGREE: do not train on an engine that fails; see difflogic doctor.")
    return 0 if passed else FAILED


def _show(results: Results) -> None:
    from difflogic.bench.profile import ATTRIBUTED
    from difflogic.bench.scaling import conclusions

    machine = results.data["machine"]
    echo(f"{machine['processor']}, {machine['cores']} cores, load {machine['load_1min']}")
    for name, engine in results.engines.items():
        echo(_engine_line(results.shown(name), engine))
    echo("")
    headers = ("case", "engine", *(header for header, *_ in _COLUMNS), "times as fast")
    table.show(headers, [_row(line, results) for line in results.cases])
    for line in results.cases:
        if "limiter" in line:
            echo(f"{line['case']} on {results.shown(line['engine'])} is limited by: {line['limiter']}")
    # Rows combine kernels of the same name in different engines.
    if kernels := [line for line in results.cases if line["case"].startswith("train/") and "profile" in line]:
        echo("")
        table.show(
            ("kernel", *(f"{line['case']} {results.shown(line['engine'])}" for line in kernels)),
            _kernel_rows(kernels),
            "ms per train step:",
        )
        for line in kernels:
            if (share := line["profile"]["attributed"]) < ATTRIBUTED:
                echo(f"{line['case']} on {line['engine']}: its parts account for only {share:.0%} of the time")
    for sentence in conclusions(results):
        echo(sentence)
    stopped = [line for line in results.skipped if line["kind"] == "stopped"]
    for line in (line for line in results.skipped if line not in stopped):
        name = results.shown(line["engine"])
        echo(f"Not measured: {line['case']} on {name} ({line['kind']}): {line['why']}", err=True)
    if stopped:
        echo(f"Stopped before the end: {counted(len(stopped), 'measurement')} missing.", err=True)


_COLUMNS = (
    *(("median ms", "median_ms", 1), ("min", "min_ms", 1), ("max", "max_ms", 1)),
    *(("M gates/s", "gate_evaluations_per_s", 1e-6), ("GFLOP/s", "gflop_per_s", 1), ("GB/s", "traffic_gb_per_s", 1)),
    *(("% of copy rate", "share_of_copy_rate", 100), ("dispatches", "dispatches", 1)),
    *(("% transfer", "transfer_share", 100), ("memory MB", "peak_mb", 1), ("on device MB", "device_mb", 1)),
)
"""Columns of the table of results: header, field of a result, and factor by which its value is multiplied."""


def _engine_line(name: str, engine: Line) -> str:
    parts = [f"{name}: {engine['adapter']} ({engine['driver']}), memory copied at {engine['copy_gb_per_s']:.1f} GB/s"]
    if median := engine.get("copy_median_gb_per_s"):
        parts[0] += f" at best, median {median:.1f}"
    if engine["timestamps"] is not None:
        parts.append(f"empty dispatch {engine['dispatch_us']:.1f} us, round trip {engine['round_trip_us']:.0f} us")
        parts.append(f"device opened in {engine['open_ms']:.0f} ms")
    if engine["timestamps"] is False:
        parts.append("no timestamp queries: kernels are timed by the host's clock")
    return "; ".join(parts)


def _row(line: Line, results: Results) -> tuple[str, ...]:
    slowest = max(other["median_ms"] for other in results.cases if other["case"] == line["case"])
    cells = [_number(line.get(name), factor) for _, name, factor in _COLUMNS]
    return line["case"], results.shown(line["engine"]), *cells, f"{slowest / line['median_ms']:.1f}"


def _number(value: float | None, factor: float = 1) -> str:
    if value is None:
        return ""
    return f"{factor * value:.0f}" if factor * value >= 100 else f"{factor * value:.3g}"


def _kernel_rows(lines: list[Line]) -> list[tuple[str, ...]]:
    from difflogic.bench.profile import PHASES

    times = [{part["name"]: part["ms"] for part in line["profile"]["parts"]} for line in lines]
    order = {phase: place for place, phase in enumerate(PHASES)}
    # Kernels follow the order of a train step; parts without a phase come last.
    names = sorted(
        dict.fromkeys(name for parts in times for name in parts), key=lambda name: order.get(name, len(order))
    )
    return [(name, *(_number(parts.get(name)) for parts in times)) for name in names]
