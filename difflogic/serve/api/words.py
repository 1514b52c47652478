"""What is said of a job: how it stands, how far it is, what it came to. The page and the command line show these words.

An example, of a training until solved that reached its limit:

    outcome   unsolved                          progress   attempt 3, the best of 7, 1,200 of 2,000 epochs
    state     Ended unsolved                    pace       5 min of training
    remark    Not solved within 5 min: the best circuit has 9 wrong cells of 256.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from difflogic.config.document import is_classifier, is_policy
from difflogic.config.policy import ClassifierConfig
from difflogic.config.schema import Config
from difflogic.config.values import Within
from difflogic.errors import DifflogicError
from difflogic.runs.attempts import Attempt
from difflogic.serve.store.jobs import ON_DEVICES, JobRecord
from difflogic.serve.store.queue import Turn

Outcome = Literal["solved", "unsolved"]
OUTCOMES: dict[Outcome, str] = {"solved": "Solved", "unsolved": "Not solved"}
WANTED = {"cancel": "Cancelling", "pause": "Pausing", "requeue": "Moving"}
PHASES = {"starting": "Starting", "compiling": "Compiling", "saving": "Saving"}
METRICS = {
    "tts": "gate evaluations per solution (billions)",
    "hard_loss": "wrong cells",
    "gates": "gates",
    "return": "mean return",
}


@dataclass(frozen=True)
class JobWords:
    """How a job stands, in words."""

    outcome: Outcome | None
    """What a training that is done came to, by the circuit that it keeps; null where that is no question."""
    state: str
    """One or two words."""
    progress: str
    """How far a training or a sweep is; empty for other jobs."""
    pace: str
    """How fast it goes and what is left, or what it took."""
    standing: str
    """How far it is, in one line without its full stop that anybody understands."""
    remark: str
    """Why it waits, failed or was taken up again, or what it lacks; empty where there is nothing to say."""
    results: list[str]
    """What became of each attempt, or what a follow-up or a sweep found, in sentences."""
    turn: str | None
    """Where it stands in the queue; null of a job that does not wait, in events, and where no worker takes it."""


@dataclass(frozen=True, kw_only=True)
class JobReply(JobRecord):
    """A job, and what is said of it."""

    words: JobWords
    can_build: bool
    """Whether a circuit may be built for its task without training."""


def told(job: JobRecord, turn: Turn | None = None) -> dict[str, Any]:
    """A job as the interface gives it."""
    return job.to_dict() | {"words": vars(words_of(job, turn)), "can_build": can_build(job)}


def can_build(job: JobRecord) -> bool:
    """Return whether a circuit may be built for the task of a training without training."""
    return job.kind == "train" and not is_policy(job.config) and _can_build(json.dumps(job.config))


@lru_cache(maxsize=1024)  # a page asks for hundreds of jobs at once
def _can_build(config: str) -> bool:
    from difflogic.actions import build

    with suppress(DifflogicError):  # a task in Python that is not installed here
        return build.can_build(Config.from_dict(json.loads(config)))
    return False


def words_of(job: JobRecord, turn: Turn | None = None) -> JobWords:
    """What is said of a job; `turn`: where it stands in the queue, as far as that is known."""
    outcome, state = outcome_of(job), _state(job)
    progress = ", ".join([*_attempt(job), f"{job.progress:,} of {job.goal:,} {_unit(job)}"]) if _counts(job) else ""
    results = list(_results(job))
    standing = _standing(job, state, progress, results)
    return JobWords(outcome, state, progress, ", ".join(_pace(job)), standing, _remark(job), results, turn_words(turn))


def _standing(job: JobRecord, state: str, progress: str, results: list[str]) -> str:
    """One line: `Solved: 9 gates, after 25 s of training`, `Running: 9 wrong cells of 256, 45 s left at most`."""
    outcome, parts = outcome_of(job), [_judged(job)]
    if outcome == "unsolved":
        return _remark(job).rstrip(".")
    if outcome is None and job.status == "done" and results and not _attempts(job):
        return results[0].rstrip(".")
    if outcome == "solved":
        gates = "" if job.active_gates is None else f"{job.active_gates:,} gates"
        parts = [gates if job.score is None else _score(job)]
        parts += [f"after {duration(job.trained_s)} of training"] if job.trained_s else []
    elif job.status == "running" and job.progress_per_s:
        parts.append(next(_pace(job)))
    elif job.status in ("paused", "cancelled"):
        parts.append(progress)
    told = ", ".join(filter(None, parts))
    return f"{state}: {told}" if told else state


def turn_words(turn: Turn | None) -> str | None:
    """Where a job stands that waits; None where nothing is known of it."""
    if turn is None or turn.position is None:
        return None
    return "next in the queue" if turn.position == 1 else f"position {turn.position:,} in the queue"


def outcome_of(job: JobRecord) -> Outcome | None:
    """What a training that is done came to; None where that is no question."""
    if job.kind != "train" or job.status != "done":
        return None
    # An environment need not say from which return on it is solved.
    if is_policy(job.config):
        judged = job.score is not None and "threshold" in (job.config or {})["evaluation"]
    else:
        judged = job.hard_loss is not None
    return None if not judged else "solved" if job.solved else "unsolved"


def shortfall(job: JobRecord) -> str:
    """What the best circuit or agent lacks of a training that ended without a solution."""
    if is_policy(job.config):
        least = (job.config or {})["evaluation"]["threshold"]
        return f"the best agent's mean return is {_number(job.score)}, below {least:g}"
    if not job.hard_loss:
        return "the best circuit is right on the starts of its tests, but not on fresh ones"
    return f"the best circuit has {_wrong_cells(job.hard_loss, job.compared)}"


def duration(seconds: float) -> str:
    """`12 s`, `5 min`, `2 h 10 min`, `3 days`."""
    if seconds < 90:
        return "under 1 s" if seconds < 1 else f"{round(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h{f' {rest} min' if rest else ''}" if minutes < 48 * 60 else f"{round(minutes / 1440)} days"


def limit(within: Within | None) -> str:
    """A limit of a training until solved, as people read it."""
    found = within or Within()
    parts = [] if found.seconds is None else [duration(found.seconds)]
    return " or ".join([*parts, *([] if found.epochs is None else [f"{found.epochs:,} epochs"])])


def _counts(job: JobRecord) -> bool:
    return job.kind in ON_DEVICES


def _unit(job: JobRecord) -> str:
    of_agents = "rows" if is_classifier(job.config) else "steps"
    return "trials" if job.kind == "sweep" else of_agents if is_policy(job.config) else "epochs"


def _score(job: JobRecord) -> str:
    if not is_classifier(job.config):
        return f"mean return {_number(job.score)}"
    of = f" on rows {ClassifierConfig.from_dict(job.config or {}).table.final_rows}" if job.status == "done" else ""
    return f"accuracy {100 * (job.score or 0):.1f} %{of}"


def _state(job: JobRecord) -> str:
    outcome = outcome_of(job)
    if outcome is not None:
        return OUTCOMES[outcome]
    if job.status != "running":
        return job.status.capitalize()
    return WANTED.get(job.wanted or "") or PHASES.get(job.phase or "", "Running")


def _attempts(job: JobRecord) -> list[dict[str, Any]]:
    return list((job.result or {}).get("attempts", ()))


def _attempt(job: JobRecord) -> list[str]:
    """Which attempt this is; of a training that is done the best."""
    if not job.attempt:
        return []
    if job.status == "done" and _attempts(job):
        return [] if len(_attempts(job)) == 1 else [f"attempt {job.attempt}, the best of {len(_attempts(job))}"]
    most = job.asked.most_attempts(job.attempt)
    return [f"attempt {job.attempt}{'' if most is None else f' of at most {most}'}"]


def _judged(job: JobRecord) -> str:
    if outcome_of(job) is not None or not _counts(job):
        return ""
    if job.score is not None:
        return _score(job)
    if job.hard_loss is None:
        return ""
    return "all cells right" if job.solved else _wrong_cells(job.hard_loss, job.compared)


def _wrong_cells(count: int, of: int | None = None) -> str:
    return f"{count:,} wrong cell{'s' * (count != 1)}{f' of {of:,}' if of else ''}"


def _pace(job: JobRecord) -> Iterator[str]:
    if job.status == "running" and job.progress_per_s:
        most = " at most" if job.asked.until_solved or job.asked.stop_when_solved else ""
        yield f"{duration(_left(job))} left{most}"
        yield f"{_number(job.progress_per_s)} {_unit(job)} a second"
    wrong = [each for each in [job.hard_loss, *(each.get("wrong") for each in _attempts(job))] if each is not None]
    if len(_attempts(job)) > 1 and not job.is_over and wrong:
        yield f"{_wrong_cells(min(wrong))} in the best attempt so far"
    if job.asked.until_solved:
        took = duration(job.trained_s)
        yield f"{took} of training" if job.is_over else f"until solved, {took} of at most {limit(job.asked.within)}"


def _left(job: JobRecord) -> float:
    """Return the seconds that a job goes on at most, as fast as it goes now, in all attempts that it may still make."""
    within, pace = job.asked.within or Within(), job.progress_per_s or 1.0
    limits = [] if within.seconds is None else [within.seconds - job.trained_s]
    if within.epochs is not None:
        earlier = sum(each["epoch"] for each in _attempts(job) if each["number"] != job.attempt)
        limits.append((within.epochs // job.asked.population - earlier - job.progress) / pace)
    return max(0.0, min(limits or [(job.goal - job.progress) / pace]))


def _remark(job: JobRecord) -> str:
    outcome = outcome_of(job)
    if outcome == "unsolved":
        ended = f"Not solved within {limit(job.asked.within)}" if job.asked.until_solved else "Not solved"
        return f"{ended}: {shortfall(job)}."
    if outcome == "solved" and job.asked.population > 1:
        return f"Solved: {job.solved} of {job.asked.population} models."
    return job.waits_for or job.reason or ""


def _results(job: JobRecord) -> Iterator[str]:
    found = job.result or {}
    for each in _attempts(job):
        yield str(Attempt(**each)).capitalize()
    if "gates" in found:
        start = found.get("from_start")
        equal = found["equal"] and (start is None or start["equal"])
        where = " from its own start" if start else ""
        before, after = found["gates"]["before"], found["gates"]["after"]
        yield f"{before:,} gates became {after:,}, {'' if equal else 'not '}proved equal{where}."
        if found.get("note"):
            yield f"Now {found['note']}"
    if "text" in found:
        yield found["text"]
    if "metric" in found:
        yield from _trials(found)
    for name, text in found.get("measures", {}).items():
        yield f"{name.replace('-', ' ')}: {text}"
    for name, names in found.get("formats", {}).items():
        yield f"{name}: {', '.join(names)}"
    for name, why in found.get("left_out", {}).items():
        yield f"{name} was left out: {why}"


def _trials(found: Mapping[str, Any]) -> Iterator[str]:
    metric, best = METRICS.get(found["metric"], found["metric"]), found["best"]
    if "solved" in found and found["metric"] != "return":  # version 0.1.0 did not count them
        near = found["nearest"]
        which = "" if near is None else ", ".join(f"{path} {value}" for path, value in near["values"].items())
        nearest = "" if near is None else f"; nearest: {which}, {_wrong_cells(round(near['wrong']))}"
        yield f"{found['solved']} of {found['ended']} trials solved{nearest}."
    elif best is None:
        yield "No trial is solved yet." if found["metric"] in ("tts", "gates") else f"No trial has a {metric} yet."
    if best is not None and (found["metric"] != "hard_loss" or "solved" not in found):
        values = ", ".join(f"{path} {value}" for path, value in best["values"].items())
        yield f"The best is trial {best['trial']}, {metric} {_number(best['value'])}, with {values}."
    if found["failed"]:
        yield f"{found['failed']} trial{'s' * (found['failed'] > 1)} failed."


def _number(value: float | None) -> str:
    """Three digits of a measure, a whole number as it is."""
    return "–" if value is None else f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
