"""Describe a job's state, progress and results in words, for the web page and the command line.

Example of a training until solved that has reached its limit:

    outcome   unsolved                          progress   attempt 3, the best of 7, 1,200 of 2,000 epochs
    state     Not solved                        pace       5 min of training
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
    """Description of a job in words."""

    outcome: Outcome | None
    """Result of a completed training, for its best circuit; null for other jobs and for trainings without a test."""
    state: str
    """State of the job in one or two words."""
    progress: str
    """Progress of a training or a sweep; empty for other jobs."""
    pace: str
    """Speed and remaining time of a running job, and training time with `until_solved`."""
    standing: str
    """Summary of the job in one line, without a full stop."""
    remark: str
    """Reason why the job is queued, has failed, was queued again or is not solved; otherwise empty."""
    results: list[str]
    """Results of attempts, of post-processing or of a sweep, one sentence each."""
    turn: str | None
    """Position in the queue; null in events, for a job that is not queued, and if no worker takes the job."""


@dataclass(frozen=True, kw_only=True)
class JobReply(JobRecord):
    """A job and its description."""

    words: JobWords
    can_build: bool
    """True if a circuit for the job's task can be built without training."""


def reply_of(job: JobRecord, turn: Turn | None = None) -> dict[str, Any]:
    """Return a job and its description as JSON data in the form of a JobReply."""
    return job.to_dict() | {"words": vars(words_of(job, turn)), "can_build": can_build(job)}


def can_build(job: JobRecord) -> bool:
    """Return whether a circuit for a training job's task can be built without training."""
    return job.kind == "train" and not is_policy(job.config) and _can_build(json.dumps(job.config))


@lru_cache(maxsize=1024)  # a page asks for hundreds of jobs at once
def _can_build(config: str) -> bool:
    from difflogic.actions import build

    with suppress(DifflogicError):  # a task in Python that is not installed here
        return build.can_build(Config.from_dict(json.loads(config)))
    return False


def words_of(job: JobRecord, turn: Turn | None = None) -> JobWords:
    """Return the description of a job; `turn` is its position in the queue, if known."""
    state, results, progress = _state(job), list(_results(job)), ""
    if job.kind in ON_DEVICES:
        progress = ", ".join([*_attempt(job), f"{job.progress:,} of {job.goal:,} {_unit(job)}"])
    standing, pace = _standing(job, state, progress, results), ", ".join(_pace(job))
    return JobWords(outcome_of(job), state, progress, pace, standing, _remark(job), results, turn_words(turn))


def _standing(job: JobRecord, state: str, progress: str, results: list[str]) -> str:
    """Return a summary, for example `Solved: 9 gates, after 25 s of training` or `Running: 9 wrong cells of 256`."""
    outcome, parts = outcome_of(job), [_quality(job)]
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
    details = ", ".join(filter(None, parts))
    return f"{state}: {details}" if details else state


def turn_words(turn: Turn | None) -> str | None:
    """Return a position in the queue in words, or None without a position."""
    if turn is None or turn.position is None:
        return None
    return "next in the queue" if turn.position == 1 else f"position {turn.position:,} in the queue"


def outcome_of(job: JobRecord) -> Outcome | None:
    """Return the result of a completed training, or None for other jobs and for a training without a test."""
    if job.kind != "train" or job.status != "done":
        return None
    # Without a threshold, an environment does not define a solution.
    if is_policy(job.config):
        is_tested = job.score is not None and "threshold" in (job.config or {})["evaluation"]
    else:
        is_tested = job.hard_loss is not None
    return None if not is_tested else "solved" if job.solved else "unsolved"


def shortfall(job: JobRecord) -> str:
    """Return why the best circuit or agent of a training is not a solution, as a clause."""
    if is_policy(job.config):
        least = (job.config or {})["evaluation"]["threshold"]
        return f"the best agent's mean return is {_number(job.score)}, below {least:g}"
    if not job.hard_loss:
        return "the best circuit is correct for the initial states of the evaluation, but not for all new ones"
    return f"the best circuit has {_wrong_cells(job.hard_loss, job.compared)}"


def duration(seconds: float) -> str:
    """Return a duration in words, such as `12 s`, `5 min`, `2 h 10 min` or `3 days`."""
    if seconds < 90:
        return "under 1 s" if seconds < 1 else f"{round(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h{f' {rest} min' if rest else ''}" if minutes < 48 * 60 else f"{round(minutes / 1440)} days"


def limit(within: Within | None) -> str:
    """Return the limit of training until solved in words, such as `5 min or 1,000 epochs`."""
    seconds, epochs = (None, None) if within is None else (within.seconds, within.epochs)
    parts = [] if seconds is None else [duration(seconds)]
    return " or ".join([*parts, *([] if epochs is None else [f"{epochs:,} epochs"])])


def _unit(job: JobRecord) -> str:
    if job.kind == "sweep":
        return "trials"
    return "rows" if is_classifier(job.config) else "steps" if is_policy(job.config) else "epochs"


def _score(job: JobRecord) -> str:
    if not is_classifier(job.config):
        return f"mean return {_number(job.score)}"
    rows = f" on rows {ClassifierConfig.from_dict(job.config or {}).table.final_rows}" if job.status == "done" else ""
    return f"accuracy {100 * (job.score or 0):.1f} %{rows}"


def _state(job: JobRecord) -> str:
    if (outcome := outcome_of(job)) is not None:
        return OUTCOMES[outcome]
    if job.status != "running":
        return job.status.capitalize()
    return WANTED.get(job.wanted or "") or PHASES.get(job.phase or "", "Running")


def _attempts(job: JobRecord) -> list[dict[str, Any]]:
    return list((job.result or {}).get("attempts", ()))


def _attempt(job: JobRecord) -> list[str]:
    """Return a list of at most one text: the current attempt in words, or the best attempt of a completed job."""
    if not job.attempt:
        return []
    if job.status == "done" and _attempts(job):
        return [] if len(_attempts(job)) == 1 else [f"attempt {job.attempt}, the best of {len(_attempts(job))}"]
    most = job.asked.most_attempts(job.attempt)
    return [f"attempt {job.attempt}{'' if most is None else f' of at most {most}'}"]


def _quality(job: JobRecord) -> str:
    """Return the quality of an unfinished training's best circuit or agent in words, or "" for other jobs."""
    if outcome_of(job) is not None or job.kind not in ON_DEVICES:
        return ""
    if job.score is not None:
        return _score(job)
    if job.hard_loss is None:
        return ""
    return "all cells right" if job.solved else _wrong_cells(job.hard_loss, job.compared)


def _wrong_cells(count: int, cells: int | None = None) -> str:
    return f"{count:,} wrong cell{'s' * (count != 1)}{f' of {cells:,}' if cells else ''}"


def _pace(job: JobRecord) -> Iterator[str]:
    if job.status == "running" and job.progress_per_s:
        most = " at most" if job.asked.until_solved or job.asked.stop_when_solved else ""
        yield f"{duration(_left(job))} left{most}"
        yield f"{_number(job.progress_per_s)} {_unit(job)} a second"
    counts = [job.hard_loss, *(attempt.get("wrong") for attempt in _attempts(job))]
    wrong = [count for count in counts if count is not None]
    if len(_attempts(job)) > 1 and not job.is_over and wrong:
        yield f"{_wrong_cells(min(wrong))} in the best attempt so far"
    if job.asked.until_solved:
        trained = duration(job.trained_s)
        limits = f"until solved, {trained} of at most {limit(job.asked.within)}"
        yield f"{trained} of training" if job.is_over else limits


def _left(job: JobRecord) -> float:
    """Return the maximum remaining seconds of a job, including all its attempts, at its current speed."""
    within, pace = job.asked.within or Within(), job.progress_per_s or 1.0
    limits = [] if within.seconds is None else [within.seconds - job.trained_s]
    if within.epochs is not None:
        earlier = sum(attempt["epoch"] for attempt in _attempts(job) if attempt["number"] != job.attempt)
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
    result = job.result or {}
    for attempt in _attempts(job):
        yield str(Attempt(**attempt)).capitalize()
    if "gates" in result:
        start = result.get("from_start")
        equal = result["equal"] and (start is None or start["equal"])
        where = " from its own start" if start else ""
        before, after = result["gates"]["before"], result["gates"]["after"]
        yield f"{before:,} gates became {after:,}, {'' if equal else 'not '}proved equal{where}."
        if result.get("note"):
            yield f"Now {result['note']}"
    if "text" in result:
        yield result["text"]
    if "metric" in result:
        yield from _trials(result)
    for name, text in result.get("measures", {}).items():
        yield f"{name.replace('-', ' ')}: {text}"
    for name, names in result.get("formats", {}).items():
        yield f"{name}: {', '.join(names)}"
    for name, why in result.get("left_out", {}).items():
        yield f"{name} was omitted: {why}"


def _trials(result: Mapping[str, Any]) -> Iterator[str]:
    metric, best = METRICS.get(result["metric"], result["metric"]), result["best"]
    if "solved" in result and result["metric"] != "return":  # version 0.1.0 did not count solved trials
        near = result["nearest"]
        nearest = "" if near is None else f"; nearest: {_values(near)}, {_wrong_cells(round(near['wrong']))}"
        yield f"{result['solved']} of {result['ended']} trials solved{nearest}."
    elif best is None:
        yield "No trial is solved yet." if result["metric"] in ("tts", "gates") else f"No trial has a {metric} yet."
    if best is not None and (result["metric"] != "hard_loss" or "solved" not in result):
        yield f"The best is trial {best['trial']}, {metric} {_number(best['value'])}, with {_values(best)}."
    if result["failed"]:
        yield f"{result['failed']} trial{'s' * (result['failed'] > 1)} failed."


def _values(trial: Mapping[str, Any]) -> str:
    return ", ".join(f"{path} {value}" for path, value in trial["values"].items())


def _number(value: float | None) -> str:
    """Return a number as text: no decimals for integers and from 1000 on, otherwise three digits; a dash for None."""
    return "–" if value is None else f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"
