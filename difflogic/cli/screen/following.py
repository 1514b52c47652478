"""Reports about jobs on a server, in the form of reports about training on this machine."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import INTERRUPTED, echo
from difflogic.cli.screen.sinks import Event
from difflogic.cli.screen.training import TrainingReporter
from difflogic.config import schedule
from difflogic.config.document import is_policy
from difflogic.config.policy import any_config
from difflogic.config.request import TrainRequest
from difflogic.engine.api import EngineInfo
from difflogic.errors import ServiceError
from difflogic.policies.rows import PolicyRow
from difflogic.runs.attempts import Attempt
from difflogic.runs.journal import Row
from difflogic.serve.client import Client, JobJson
from difflogic.serve.store.jobs import ENDED
from difflogic.train import summary
from difflogic.train.observer import Beginning, Standing

BEFORE = 10
"""Maximum number of log lines shown for epochs that ended before the command began."""


def follow(client: Client, job: str, as_json: bool, log_interval: int = 10) -> int:
    """Report a job until it ends, and return the exit code. Raises ServiceError if the job failed."""
    record = client.job(job)
    try:
        if as_json:
            return _repeat(client, record)
        follower, unit = _Follower, "epoch"
        if record["kind"] == "sweep":
            follower, unit = _SweepFollower, "trial"
        elif is_policy(record["config"]):
            follower, unit = _AgentFollower, "step"
        with sinks.choose(as_json, unit) as sink:
            return follower(client, sink, log_interval).follow(record)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ServiceError(f"The server at {client.server} sent unexpected data: {error!r:.80}.") from error
    except KeyboardInterrupt:
        echo(f"\nDetached: the job continues. To watch it again: difflogic watch {job}", err=True)
        return INTERRUPTED


def _repeat(client: Client, job: JobJson) -> int:
    status, sink = job["status"], sinks.JsonLines()
    for event in client.events(job["id"]):
        if event.name == "job":
            job, status = event.data, event.data["status"]
        sink.show(Event(event.name, {event.name: event.data}))
    return _code(job) if status == "done" else 1


class _Follower:
    _title = ""  # above the summary

    def __init__(self, client: Client, sink: sinks.Lines, log_interval: int) -> None:
        self._client, self._sink, self._log_interval = client, sink, log_interval
        self._reporter = TrainingReporter(sink)
        self._status = ""
        self._began = False
        self._attempt = 0
        self._ended: set[int] = set()
        """Numbers of the attempts whose end has been shown."""
        self._was_shown = False
        self._waits_for: str | None = None
        self._evaluated: dict[int, Row] = {}

    def follow(self, job: JobJson) -> int:
        """Report the job until it ends, and return the exit code."""
        # Only the last lines of earlier epochs are shown, including one with an evaluation.
        after = max(0, job["progress"] - self._back(job))
        self._lost_tries = job["lost_tries"]
        for event in self._client.events(job["id"], after, self._lost):
            if event.name == "job":
                job = event.data
                self._show_job(job)
            elif event.name == "rows":
                self._rows(job, event.data)
            elif event.name == "end":
                # The last event has the final state, which may be newer than that of the last job event.
                job = {**job, **event.data}  # the status may be `deleted`, which job events never have
        return self._end(job)

    def _back(self, job: JobJson) -> int:
        return max(BEFORE * self._log_interval, job["config"]["train"]["eval_interval"]) if job["config"] else 0

    def _lost(self, reason: str) -> None:
        self._reporter.noticed(f"Lost the connection to {self._client.server} ({reason}): trying again.")

    def _show_job(self, job: JobJson) -> None:
        # The status alone does not show a lost worker: another worker may take the job before the next poll.
        if job["lost_tries"] > self._lost_tries:
            self._lost_tries = job["lost_tries"]
            self._reporter.noticed(job["reason"] or f"Its worker was lost; this is try {self._lost_tries + 1}.")
        if job["status"] != self._status:
            self._status = job["status"]
            if self._status in ("queued", "paused"):
                # Events do not have the place in the queue, which depends on other jobs.
                turn = self._client.job(job["id"])["words"]["turn"] if self._status == "queued" else None
                self._sink.write(f"Job {job['id']} ({job['name']}) is {turn or self._status}.")
        # An event has all fields of the job, so only changes are printed.
        if job["waits_for"] not in (None, self._waits_for):
            self._sink.write(job["waits_for"])
        self._waits_for = job["waits_for"]
        if job["status"] != "done":  # a job that is done shows them after the summary
            self._show_ended_attempts(job)
        if job["attempt"] != self._attempt:
            # A job that ends becomes its best attempt, and the server sends that attempt's rows again. Such rows are
            # skipped, unless the reports have only begun.
            self._was_shown = self._attempt > 0 and job["status"] in ENDED
            self._attempt, self._began = job["attempt"], self._was_shown
            self._evaluated.clear()
        # A job has no device until a worker takes it, and a post-processing job has no configuration.
        if not self._began and job["config"] is not None and job["device"] is not None:
            self._began = True
            self._begin(job)

    def _begin(self, job: JobJson) -> None:
        info = EngineInfo(engine=job["device"], adapter=f"at {self._client.server}")
        config = any_config(job["config"])
        if self._attempt:
            config = schedule.attempt_of(config, self._attempt - 1, job["goal"])
            most = _request(job).most_attempts(self._attempt)
            self._reporter.attempted(Attempt(self._attempt, most, config.seed, job["goal"], ""))
        progress = job["progress"], job["goal"], _request(job).population
        self._reporter.began(Beginning(config, info, f"job {job['id']}", None, *progress))

    def _show_ended_attempts(self, job: JobJson) -> None:
        """Show each ended attempt only once, although every event lists all attempts."""
        for attempt in (Attempt(**values) for values in (job["result"] or {}).get("attempts", ())):
            if not attempt.is_open and attempt.number not in self._ended:
                self._ended.add(attempt.number)
                self._reporter.attempted(attempt)

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        if self._was_shown:
            return
        # A population has one row per model and epoch.
        for epoch, values in groupby(rows, key=lambda row: int(row["epoch"])):
            members = list(values)
            self._reporter.advanced(epoch)
            parsed = [Row.from_dict(member) for member in members]
            # Most epochs have no evaluation, so their lines repeat the last evaluation.
            self._evaluated |= {index: row for index, row in enumerate(parsed) if row.accuracy is not None}
            # As for training on this machine, every n-th epoch, evaluated epochs and the last epoch are shown.
            if epoch % self._log_interval == 0 or parsed[0].hard_loss is not None or epoch == job["goal"]:
                evaluated = tuple(map(self._evaluated.get, range(len(parsed))))
                if len(parsed) == 1:
                    self._reporter.logged(parsed[0], evaluated[0])
                else:
                    seeds = tuple(int(member["seed"]) for member in members)
                    self._reporter.compared(Standing(seeds, tuple(parsed), evaluated))

    def _end(self, job: JobJson) -> int:
        if job["status"] == "failed":
            raise ServiceError(f"The job {job['id']} failed: {job['reason']} Its log: difflogic logs {job['id']}")
        if job["status"] != "done":
            self._sink.write(f"The job {job['id']} is {job['status']}.")
            return 1
        # A training job has a summary file; a post-processing job has its result in `words`.
        text, words = self._client.text(job["id"], "summary.txt"), job["words"]
        lines = [self._title, *summary.brief(text).split("\n")] if text else list(words["results"])
        if words["outcome"] is not None:
            if not any(line.startswith(words["state"]) for line in lines):
                lines.append(words["remark"] or f"{words['state']}.")
            elif _request(job).until_solved and words["remark"]:  # the summary does not name the limit
                lines = [words["remark"] if line.startswith(words["state"]) else line for line in lines]
        self._sink.write("\n".join(lines))
        self._show_ended_attempts(job)
        self._sink.write(f"Download the job's files: difflogic fetch {job['id']} DIR")
        return _code(job)


class _AgentFollower(_Follower):
    def _back(self, job: JobJson) -> int:
        return BEFORE * int(job["config"]["evaluation"]["interval"])

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        for steps, members in groupby(rows, key=lambda row: int(row["steps"])):
            self._reporter.advanced(steps)
            self._reporter.iterated([PolicyRow.from_dict(member) for member in members])


class _SweepFollower(_Follower):
    _trials = 0

    def _back(self, job: JobJson) -> int:
        return int(job["goal"])

    def _begin(self, job: JobJson) -> None:
        self._sink.write(f"{job['name']}: {job['goal']} trials, job {job['id']} at {self._client.server}")

    def _show_job(self, job: JobJson) -> None:
        super()._show_job(job)
        if job["progress"] > self._trials:
            self._trials = job["progress"]
            best = job["result"]["best"]
            self._title = "" if best is None else f"\nSummary of the best trial, {best['trial']}:"
            self._sink.write(" ".join([f"{job['words']['progress']} have ended.", *job["words"]["results"]]))

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        """Ignore rows: for a sweep, the server sends only those of the best trial, at the end."""


def _code(job: JobJson) -> int:
    """Return the exit code for a completed job: 1 if it should train until solved, but ended unsolved; otherwise 0."""
    return int(_request(job).until_solved and job["words"]["outcome"] == "unsolved")


def _request(job: JobJson) -> TrainRequest:
    return TrainRequest.from_dict(job["request"])
