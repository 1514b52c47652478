"""Jobs on a server, reported like a training here."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.sinks import Event
from difflogic.cli.screen.training import TrainingReporter
from difflogic.config import schedule
from difflogic.config.document import is_policy
from difflogic.config.policy import any_config
from difflogic.config.request import TrainRequest
from difflogic.engine.api import EngineInfo
from difflogic.errors import ServiceError
from difflogic.runs.attempts import Attempt
from difflogic.runs.journal import Row
from difflogic.serve.client import Client, JobJson
from difflogic.serve.store.jobs import ENDED
from difflogic.train import summary
from difflogic.train.observer import Beginning, Standing

DETACHED = 130
"""Exit code if Ctrl-C ends the watching."""
BEFORE = 10
"""Number of log lines of earlier epochs."""


def follow(client: Client, job: str, as_json: bool, log_interval: int = 10) -> int:
    """Follow a job until it ends, and return the exit code. Raises ServiceError if it failed."""
    found = client.job(job)
    try:
        if as_json:
            return _repeat(client, found)
        follower, unit = _Follower, "epoch"
        if found["kind"] == "sweep":
            follower, unit = _SweepFollower, "trial"
        elif is_policy(found["config"]):
            follower, unit = _AgentFollower, "step"
        with sinks.choose(as_json, unit) as sink:
            return follower(client, sink, log_interval).follow(found)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ServiceError(
            f"The server at {client.server} sent data that does not fit the job: {error!r:.80}."
        ) from error
    except KeyboardInterrupt:
        echo(f"\nDetached: the job goes on. To watch it again: difflogic watch {job}", err=True)
        return DETACHED


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
        self._attempts = 0
        self._attempt = 0
        self._ended: set[int] = set()
        """Attempts whose end was shown."""
        self._was_shown = False
        self._waits_for: str | None = None
        self._judged: dict[int, Row] = {}

    def follow(self, job: JobJson) -> int:
        """Follow the job until it ends, and return the exit code."""
        # Of earlier epochs only the last few lines are shown, among them one with an evaluation.
        after = max(0, job["progress"] - self._back(job))
        self._lost_tries = job["lost_tries"]
        for event in self._client.events(job["id"], after, self._lost):
            if event.name == "job":
                job = event.data
                self._show_job(job)
            elif event.name == "rows":
                self._rows(job, event.data)
            elif event.name == "end":
                # The last event says how it ended, which may be newer than the job before it.
                job = {**job, **event.data}  # `deleted` is no state of a job
        return self._end(job)

    def _back(self, job: JobJson) -> int:
        return max(BEFORE * self._log_interval, job["config"]["train"]["eval_interval"]) if job["config"] else 0

    def _lost(self, why: str) -> None:
        self._reporter.noticed(f"The connection to {self._client.server} is lost ({why}): trying again.")

    def _show_job(self, job: JobJson) -> None:
        # A status is not enough: a job that is queued again may be taken before the next poll.
        if job["lost_tries"] > self._lost_tries:
            self._lost_tries = job["lost_tries"]
            self._reporter.noticed(job["reason"] or f"Its worker was lost; this is try {self._attempts + 1}.")
        if job["status"] != self._status:
            self._status = job["status"]
            if self._status in ("queued", "paused"):
                # An event has no turn, which changes with the jobs before it.
                turn = self._client.job(job["id"])["words"]["turn"] if self._status == "queued" else None
                self._sink.write(f"Job {job['id']} ({job['name']}) is {turn or self._status}.")
        # A change comes with all fields of the job: only what is new is printed.
        if job["waits_for"] not in (None, self._waits_for):
            self._sink.write(job["waits_for"])
        self._waits_for = job["waits_for"]
        if job["status"] != "done":  # then all come together, after the summary
            self._show_ended_attempts(job)
        if job["attempt"] != self._attempt:
            # In the end the job becomes its best attempt, and the server sends that one's rows once more, which are
            # skipped unless the watching has only begun.
            self._was_shown = self._attempt > 0 and job["status"] in ENDED
            self._attempt, self._began = job["attempt"], self._was_shown
            self._judged.clear()
        # A job has a device once a worker has taken it; a post-processing job has no configuration.
        if not self._began and job["config"] is not None and job["device"] is not None:
            self._began = True
            self._begin(job)

    def _begin(self, job: JobJson) -> None:
        info = EngineInfo(engine=job["device"], adapter=f"at {self._client.server}")
        config = any_config(job["config"])
        if self._attempt:
            config = schedule.attempt_of(config, self._attempt - 1, job["goal"])
            of = _asked(job).most_attempts(self._attempt)
            attempt = Attempt(self._attempt, of, config.seed, job["goal"], "")
            self._reporter.attempted(attempt)
        so_far = job["progress"], job["goal"], _asked(job).population
        self._reporter.began(Beginning(config, info, f"job {job['id']}", None, *so_far))

    def _show_ended_attempts(self, job: JobJson) -> None:
        """Show each attempt that is over, once; the job holds them all."""
        for each in (Attempt(**values) for values in (job["result"] or {}).get("attempts", ())):
            if not each.is_open and each.number not in self._ended:
                self._ended.add(each.number)
                self._reporter.attempted(each)

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        if self._was_shown:
            return
        # A population has a row for each model in an epoch.
        for epoch, values in groupby(rows, key=lambda row: int(row["epoch"])):
            members = list(values)
            self._reporter.advanced(epoch)
            found = [Row.from_dict(each) for each in members]
            for index, row in enumerate(found):
                # Most epochs have no evaluation: their lines repeat the last one.
                if row.accuracy is not None:
                    self._judged[index] = row
            # The lines of a training here: every n-th, all with an evaluation, and the last.
            if epoch % self._log_interval == 0 or found[0].hard_loss is not None or epoch == job["goal"]:
                self._log(members, found)

    def _log(self, members: Sequence[dict[str, Any]], rows: Sequence[Row]) -> None:
        judged = tuple(self._judged.get(index) for index in range(len(rows)))
        if len(rows) == 1:
            self._reporter.logged(rows[0], judged[0])
        else:
            seeds = tuple(int(each["seed"]) for each in members)
            self._reporter.compared(Standing(seeds, tuple(rows), judged))

    def _end(self, job: JobJson) -> int:
        if job["status"] == "failed":
            raise ServiceError(f"The job {job['id']} failed: {job['reason']} Its log: difflogic logs {job['id']}")
        if job["status"] != "done":
            self._sink.write(f"The job {job['id']} is {job['status']}.")
            return 1
        # A training leaves a summary, a post-processing job has its result in its words.
        text, words = self._client.text(job["id"], "summary.txt"), job["words"]
        lines = [self._title, *summary.brief(text).split("\n")] if text else list(words["results"])
        if words["outcome"] is not None:
            if not any(line.startswith(words["state"]) for line in lines):
                lines.append(words["remark"] or f"{words['state']}.")
            elif _asked(job).until_solved and words["remark"]:  # the summary of its best attempt has no limit
                lines = [words["remark"] if line.startswith(words["state"]) else line for line in lines]
        self._sink.write("\n".join(lines))
        self._show_ended_attempts(job)
        self._sink.write(f"Its files: difflogic fetch {job['id']} DIR")
        return _code(job)


class _AgentFollower(_Follower):
    def _back(self, job: JobJson) -> int:
        return BEFORE * int(job["config"]["evaluation"]["interval"])

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        from difflogic.policies.rows import PolicyRow

        for steps, members in groupby(rows, key=lambda row: int(row["steps"])):
            self._reporter.advanced(steps)
            self._reporter.iterated([PolicyRow.from_dict(each) for each in members])


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
            self._title = "" if best is None else f"\nThis is of the best, trial {best['trial']}:"
            self._sink.write(" ".join([f"{job['words']['progress']} are over.", *job["words"]["results"]]))

    def _rows(self, job: JobJson, rows: Sequence[dict[str, Any]]) -> None:
        """Ignore the rows, which in the end are those of the best trial."""


def _code(job: JobJson) -> int:
    """Return the exit code of a job that is done: 1 if it was to be solved and is not."""
    return int(_asked(job).until_solved and job["words"]["outcome"] == "unsolved")


def _asked(job: JobJson) -> TrainRequest:
    return TrainRequest.from_dict(job["request"])
