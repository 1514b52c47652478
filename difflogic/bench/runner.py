"""Measure all cases on all engines: verify, warm up, time in turn, and profile."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from difflogic.bench.arrays import ArrayCase, ArrayContender, open_array_contender, torch_benches
from difflogic.bench.cases import Case
from difflogic.bench.contender import Contender, open_contender
from difflogic.bench.engines import Bench, OtherEngine
from difflogic.bench.machine import stamp
from difflogic.bench.memory import peak_bytes
from difflogic.bench.profile import Profile, bottleneck
from difflogic.bench.results import FORMAT, Results
from difflogic.bench.timed import WrongResultError
from difflogic.devices import choose
from difflogic.devices.cost import duration
from difflogic.errors import LimitError

Line = dict[str, Any]
AnyContender = Contender | ArrayContender


@dataclass(frozen=True)
class Effort:
    """Number of rounds, time limits and extent of a measurement."""

    rounds: int = 7
    round_seconds: float = 0.5
    case_seconds: float = 15.0
    """Target time in seconds for all rounds of a contender; the slowest of a group sets its rounds, at least 3."""
    memory: bool = True
    """True to also measure the peak memory of train steps, in separate processes."""


STOPPED = "stopped"
"""Value of `kind` for cases that were not measured because the run was interrupted."""
QUICK = Effort(rounds=3, round_seconds=0.1, memory=False)


def measure(
    cases: Sequence[Case | ArrayCase],
    benches: Sequence[Bench],
    effort: Effort,
    log: Callable[[str], None] = lambda text: None,
) -> Results:
    """Measure all cases on all engines; cases that cannot be measured are listed with the reason.

    Every round times all cases and engines of a group, so that a drift of the machine's speed does not change their
    ratios. Ctrl-C ends the run with the rows measured so far; all other cases are listed as `STOPPED`.
    """
    if any(isinstance(case, ArrayCase) for case in cases):
        benches = [*benches, *torch_benches()]
    lines: list[Line] = []
    skipped: list[dict[str, str]] = []
    pairs = [(case, bench) for case in cases for bench in benches if _applies(case, bench)]
    rounds_s = len(pairs) * effort.rounds * effort.round_seconds
    log(f"{len(cases)} cases on {len(benches)} engines: about {duration(rounds_s)}, plus preparation")
    begin, done = time.perf_counter(), 0
    try:
        # Only cases of one group are in memory at a time.
        for group in dict.fromkeys(case.turn_group for case in cases):
            entries = [pair for pair in pairs if pair[0].turn_group == group]
            _measure_group(entries, effort, lines, skipped, log)
            done += len(entries)
            seconds_left = (time.perf_counter() - begin) / max(1, done) * (len(pairs) - done)
            log(f"{done} of {len(pairs)} measurements done, {duration(seconds_left)} left")
    except KeyboardInterrupt:
        listed = {(line["case"], line["engine"]) for line in (*lines, *skipped)}
        missing = [pair for case, bench in pairs if (pair := (case.name, bench.name)) not in listed]
        skipped += [{"case": case, "engine": name, "kind": STOPPED, "why": "the run ended"} for case, name in missing]
    engines = {bench.name: bench.to_dict() for bench in benches}
    return Results({"format": FORMAT, **stamp(), "engines": engines, "cases": lines, "skipped": skipped})


def keep_faster(cases: Sequence[Case | ArrayCase], benches: Sequence[Bench], results: Results) -> None:
    """Store, for `--engine auto`, the faster engine for each train step measured on both a hardware GPU and `cpu`."""
    times = {(line["case"], line["engine"]): line["median_ms"] for line in results.cases}
    infos = {bench.name: bench.engine.info for bench in benches}
    for case, card in product(cases, (bench.name for bench in benches if bench.is_card)):
        names = [card, "cpu"]
        if isinstance(case, Case) and case.kind == "train" and all((case.name, name) in times for name in names):
            ms = {name: times[case.name, name] for name in names}
            why = f"difflogic bench measured {ms[card]:.3g} ms per epoch on {card}, {ms['cpu']:.3g} ms on cpu"
            choose.keep_faster(infos[card], case.config, case.models, infos[min(ms, key=ms.__getitem__)], why)


def _measure_group(
    entries: Sequence[tuple[Case | ArrayCase, Bench]],
    effort: Effort,
    lines: list[Line],
    skipped: list[dict[str, str]],
    log: Callable[[str], None],
) -> None:
    """Measure the cases and engines in `entries`; append a row per contender to `lines` as soon as it is complete."""
    opened: list[AnyContender] = []
    try:
        for case, bench in entries:
            log(f"{case.name} on {bench.name}: {case.unit}")
            if (contender := _open(case, bench, skipped)) is not None:
                opened.append(contender)
        _take_turns([each for each in opened if not each.once], effort)
        for each in opened:
            lines.append(_line(each))
            log("{case} on {engine}: median {median_ms:.3g} ms, min {min_ms:.3g}".format(**lines[-1]))
            each.close()
            # The child process starts after this model is closed, so that both need not fit into memory together.
            if effort.memory and each.case.group == "train":
                peak = peak_bytes(each.case.name, each.bench.name)
                lines[-1]["peak_mb"] = None if peak is None else peak / 1e6
    except KeyboardInterrupt:
        complete = {(line["case"], line["engine"]) for line in lines}
        rest = [each for each in opened if (each.case.name, each.bench.name) not in complete and each.seconds]
        lines += [_line(each, is_cut=True) for each in rest]
        raise


def _take_turns(contenders: Sequence[AnyContender], effort: Effort) -> None:
    slowest = max((each.warm_up(effort.round_seconds) for each in contenders), default=1.0)
    is_awake = False
    for _ in range(min(effort.rounds, max(3, int(effort.case_seconds / slowest)))):
        for each in contenders:
            # An untimed round comes first, since a GPU reduces its clock rate while another engine is timed.
            if each.bench.is_card and not is_awake:
                each.repeat(each.per_round)
            is_awake = each.bench.is_card
            # Contenders are timed in turn, so that a machine that becomes slower affects all of them.
            each.seconds.append(each.repeat(each.per_round))


def _applies(case: Case | ArrayCase, bench: Bench) -> bool:
    """Return whether a case is measured on the engine of `bench`."""
    kind = bench.engine.info.engine
    if isinstance(case, ArrayCase):
        # The reference only verifies arrays. PyTorch has no logic gates; `benchmarks.rivals` times libraries that do.
        return kind != "reference" and not (case.what == "logic" and isinstance(bench.engine, OtherEngine))
    if isinstance(bench.engine, OtherEngine) or (kind == "reference" and not case.every_engine):
        return False
    return kind == "gpu" or not case.gpu_only


def _open(case: Case | ArrayCase, bench: Bench, skipped: list[dict[str, str]]) -> AnyContender | None:
    try:
        return open_array_contender(case, bench) if isinstance(case, ArrayCase) else open_contender(case, bench)
    except (LimitError, WrongResultError) as error:
        kind = "wrong" if isinstance(error, WrongResultError) else "does not fit"
        skipped.append({"case": case.name, "engine": bench.name, "kind": kind, "why": str(error)})
        return None


def _line(each: AnyContender, is_cut: bool = False) -> Line:
    """Return the results row of a contender; without a profile if `is_cut`, that is, the run was interrupted."""
    ms = [1e3 * seconds for seconds in each.seconds]
    line: Line = {
        "case": each.case.name,
        "engine": each.bench.name,
        "unit": each.case.unit,
        "median_ms": statistics.median(ms),
        "min_ms": min(ms),
        "max_ms": max(ms),
        "rounds": len(ms),
        "rounds_ms": ms,
        "per_round": each.per_round,
    }
    return line | (_figures(each, is_cut) if isinstance(each, Contender) else each.figures())


def _figures(each: Contender, is_cut: bool) -> Line:
    case, seconds = each.case, statistics.median(each.seconds)
    line: Line = {
        "models": case.models,
        "variant": each.model.info.variant,
        "first_step_ms": 1e3 * each.first_s,
        "first_loss": each.first_loss,
        "gate_evaluations": case.evaluations,
        "gate_evaluations_per_s": case.evaluations / seconds,
        "peak_mb": None,
        **({} if each.once or is_cut else _transfers(each)),
    }
    if case.kind == "train":
        line |= _train_figures(each, seconds)
    profile = each.take_apart() if case.kind == "train" and not (each.once or is_cut) else None
    return line | (_profile_figures(profile, each, seconds) if profile else {})


def _train_figures(each: Contender, seconds: float) -> Line:
    """Return the rates computed from `seconds` per train step and its work, and the GPU memory."""
    case, variant = each.case, each.model.info.variant
    keeps_nodes = each.model.info.engine != "cpu" and bool(variant.get("keep", True))
    traffic = case.models * case.work.traffic(keeps_nodes) / seconds
    plan = getattr(each.model, "plan", None)
    return {
        "gflop_per_s": case.models * case.work.flop / seconds / 1e9,
        "traffic_gb_per_s": traffic / 1e9,
        "share_of_copy_rate": traffic / each.bench.copy_bytes_per_s,
        "device_mb": None if plan is None else plan.total_bytes() / 1e6,
    }


def _transfers(each: Contender) -> Line:
    """Return the numbers of bytes transferred between host and device per repetition, in each direction."""
    device = getattr(each.model, "device", None)
    if device is None:
        return {"uploaded_bytes": 0, "downloaded_bytes": 0}
    # Transfers are counted in an additional, untimed round.
    before = Counter(device.uploaded), Counter(device.downloaded)
    each.repeat(each.per_round)
    up, down = device.uploaded - before[0], device.downloaded - before[1]
    return {"uploaded_bytes": up.total() / each.per_round, "downloaded_bytes": down.total() / each.per_round}


def _profile_figures(profile: Profile, each: Contender, seconds: float) -> Line:
    per_submit = min(each.per_round, each.model.epochs_per_call())
    transfer = each.bench.round_trip_s / per_submit
    is_gpu = each.model.info.engine == "gpu"
    return {
        "profile": profile.to_dict(),
        "dispatches": profile.dispatches if is_gpu else None,
        "transfer_share": min(1.0, transfer / seconds),
        "kernel_share": profile.kernel_seconds / profile.wall,
        "limiter": bottleneck(profile, each.bench.dispatch_s, transfer),
    }
