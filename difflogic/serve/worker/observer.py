"""Report a training's heartbeats, progress and state frames to the store, and receive stop requests.

The file `gates.jsonl` of a job has a line per evaluation: the number of gates by most probable kind, in the order of
`difflogic.core.gates.NAMES`. In a population, the gates are those of the best model.

    {"epoch": 50, "layers": [{"name": "perceive 0", "counts": [16 numbers]}, ...]}
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis.function import live_gates
from difflogic.engine.api import Engine
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.statistics import census
from difflogic.runs import attempts, jsonl
from difflogic.runs.attempts import Attempt, Record
from difflogic.runs.journal import Row
from difflogic.serve.worker.lease import Lease
from difflogic.serve.worker.log import say
from difflogic.sweeps.trial import PAUSED
from difflogic.system import files
from difflogic.train.observer import Beginning, Observer, Standing
from difflogic.train.replica import Replica, best_of
from difflogic.train.signals import Stop

if TYPE_CHECKING:  # not imported at run time: only agents need these packages
    from difflogic.policies.member import Member
    from difflogic.policies.rows import PolicyRow

FRAME_S = 0.5
"""Minimum seconds between state frames."""
SHARE = 0.05
"""Maximum share of the training time that is spent on frames."""
UNTRAINED = {
    "progress": 0, "saved_progress": 0, "solved": 0, "soft_loss": None, "hard_loss": None, "active_gates": None,
    "score": None,
}  # fmt: skip
"""Values of the job's columns at the beginning of an attempt."""
SPEED_S = 5.0
"""Length in seconds of the interval over which the training speed, in epochs per second, is measured."""
SIGN_S = 1.0
"""Minimum seconds between heartbeats while an agent plays."""
SIDE = 64
VISIBLE = 6
FILM = 24
TILES = 16
MOST_VALUES = 1 << 24
"""Maximum number of values in all states of a frame's rollout; larger rollouts are not shown."""


class ServiceObserver(Observer):
    """Observer of one try at a training job. The training thread calls it, so the lease ends if this thread hangs."""

    def __init__(self, lease: Lease, engine: Engine, stopping: Callable[[], bool]) -> None:
        """Compute state frames with `engine`, and stop the training if the lease or `stopping` requests it."""
        self._lease, self._engine, self._stopping = lease, engine, stopping
        self.stop = self._end = Stop()
        self._folder = lease.store.job_folder(lease.job)
        self.began_at: int | None = None
        """Epoch from which this try continues; None before the training has begun."""
        self._pace: deque[tuple[float, int]] = deque()
        self._since = self._signed = time.monotonic()
        """Start time of this try, and time of its last heartbeat, on the monotonic clock."""
        self._epoch = self._advances = 0
        self._next_frame = 0.0
        self._asked_at = 0.0
        self._judged: Sequence[Replica] = ()

    def _moved(self, epoch: int) -> None:
        """Report progress and speed at `epoch`, and check for a stop request."""
        now = time.monotonic()
        self._pace.append((now, epoch))
        # At least two entries are kept, even if they are old, so that the speed of slow epochs is known too.
        while now - self._pace[0][0] > SPEED_S and len(self._pace) > 2:
            self._pace.popleft()
        seconds = now - self._pace[0][0]
        speed = (epoch - self._pace[0][1]) / seconds if seconds else None
        self._lease.alive(progress=epoch, progress_per_s=speed, trained_s=self.trained_s)
        self._check_stop()

    def _check_stop(self) -> None:
        # A user's request has precedence over the end of the worker, since it determines the status of the job.
        if self._lease.wanted is not None:
            self._end.ask(self._lease.wanted)
        elif self._stopping():
            self._end.ask("the worker ends")

    @property
    def trained_s(self) -> float:
        """Seconds of training over all tries at this job."""
        return round(self._lease.job.trained_s + time.monotonic() - self._since, 1)

    def attempted(self, attempt: Attempt) -> None:
        # The result of the earlier attempts is reported while the next attempt runs.
        result = result_of_attempts(attempts.read(self._folder.whole))
        if attempt.status != "running":
            say(str(attempt))
            self._lease.report(result=result)
            return
        most = "" if attempt.of is None else f" of at most {attempt.of}"
        say(f"attempt {attempt.number}{most}, because {attempt.reason}")
        self._judged = ()
        fresh = {} if self._folder.attempt == attempt.number else UNTRAINED
        self._folder = replace(self._folder, attempt=attempt.number)
        self._folder.gates.parent.mkdir(parents=True, exist_ok=True)
        self._pace.clear()
        self._lease.report(**fresh | {"attempt": attempt.number, "goal": attempt.epochs, "result": result})

    def began(self, beginning: Beginning) -> None:
        self.began_at = beginning.epoch
        say(f"on {beginning.engine.adapter or beginning.engine.engine}, from epoch {beginning.epoch}")
        # Remove the lines that an earlier try wrote after its last checkpoint: their epochs are trained again.
        files.write_atomically(self._folder.gates, jsonl.until(self._folder.gates, beginning.epoch))
        self._epoch = beginning.epoch
        self._lease.progress |= {"progress": self._epoch, "saved_progress": self._epoch, "goal": beginning.epochs}
        self._lease.enter("compiling")

    def advanced(self, epoch: int) -> None:
        self._epoch, self._signed = epoch, time.monotonic()
        self._advances += 1
        if self._lease.phase != "training" and self._advances > 1:  # a GPU may still be compiling at the first call
            self._lease.enter("training", warm=True)
        self._moved(epoch)

    def working(self) -> None:
        # Without heartbeats, an iteration of thousands of steps would look like a hang.
        if time.monotonic() - self._signed >= SIGN_S:
            self._signed = time.monotonic()
            self._lease.alive(trained_s=self.trained_s)
            self._check_stop()

    def iterated(self, rows: Sequence[PolicyRow]) -> None:
        if self._lease.phase == "compiling":
            self._lease.enter("training", warm=True)
        scores = [row.score for row in rows if row.score is not None]
        if scores:
            say(f"step {rows[0].steps}: mean return {max(scores):.1f}")
            self._lease.progress["score"] = max(scores)

    def wants_states(self) -> bool:
        self._asked_at = time.monotonic()
        # A frame costs a rollout. Frames are only made while a web page shows the job: see HeartbeatReply.
        return self._lease.watched and self._asked_at >= self._next_frame

    def shown(self, members: Sequence[Replica]) -> None:
        if not self._lease.is_warm("drawing"):
            self._lease.enter("drawing")
        self._draw(members)
        if self._lease.phase == "drawing":
            self._lease.warm()
        now = time.monotonic()
        # After a frame that took 0.1 s, the next one follows after 2 s: frames take at most a twentieth of the time.
        self._next_frame = now + max(FRAME_S, (now - self._asked_at) / SHARE)

    def _draw(self, members: Sequence[Replica]) -> None:
        frame = frame_of(self._engine, members[best_of(members)])
        if frame is not None:
            try:
                files.write_atomically(self._folder.frame, json.dumps(frame).encode())
            # A full disk must not end a training for the sake of an image.
            except OSError as error:
                say(f"cannot write the state frame: {error.strerror}")

    def logged(self, row: Row, evaluated: Row | None) -> None:
        self._report(row.soft_loss, [row])

    def compared(self, standing: Standing) -> None:
        self._report(standing.soft_losses[0], standing.rows)

    def _report(self, soft_loss: float, rows: Sequence[Row]) -> None:
        self._lease.progress["soft_loss"] = soft_loss if math.isfinite(soft_loss) else None
        # Rows without an evaluation do not change the job's last evaluation.
        wrong = [row.hard_loss for row in rows if row.hard_loss is not None]
        if wrong:
            # With `until_solved`, correct evaluation grids do not suffice: the test after each attempt decides.
            solved = 0 if self._lease.job.asked.until_solved else wrong.count(0)
            self._lease.progress |= {"hard_loss": min(wrong), "solved": solved}
            say(f"epoch {rows[0].epoch}: soft loss {soft_loss:.4g}, hard loss {min(wrong)}")

    def noticed(self, text: str) -> None:
        say(text)

    def judging(self, epoch: int) -> None:
        self._lease.enter("evaluating")

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        replicas = [member for member in members if isinstance(member, Replica)]
        if replicas:
            self._judged = replicas
            self._lease.progress["compared"] = replicas[0].job.values
            best = replicas[best_of(replicas)]
            circuit: Circuit | None = best.circuit
            netlist: CellNetlist | FunctionNetlist | None = CellNetlist.of_run(best.circuit, best.job.config)
        else:
            from difflogic.policies.results import netlist_of

            agents = [member for member in members if not isinstance(member, Replica)]
            # With `until_solved`, the final episodes decide whether the job is solved.
            solved = 0 if self._lease.job.asked.until_solved else sum(agent.solved for agent in agents)
            self._lease.progress["solved"] = solved
            best_agent = max(agents, key=lambda agent: -math.inf if agent.score is None else agent.score.mean)
            circuit, netlist = best_agent.circuit, netlist_of(best_agent)
        if circuit is not None:
            counts = [{"name": layer.name, "counts": layer.kinds} for layer in census(circuit)]
            # Each line is written in one call, so that a reader sees a complete line or nothing.
            files.append(self._folder.gates, f"{json.dumps({'epoch': self._epoch, 'layers': counts})}\n".encode())
        if netlist is not None:
            self._lease.alive(active_gates=live_gates(netlist))

    def saved(self, epoch: int) -> None:
        self._lease.report(progress=epoch, saved_progress=epoch)
        self._lease.warm()
        if self._lease.phase == "evaluating" and self._advances > 1:
            self._lease.enter("training", warm=True)

    def ending(self) -> None:
        self._lease.enter("finishing")
        if self._judged:  # a page that is opened later shows the result
            self._draw(self._judged)


class TrialObserver(ServiceObserver):
    """Observer of a sweep's trial, of automata or agents, that pauses the trial at the end of its rung."""

    def __init__(self, lease: Lease, engine: Engine, stopping: Callable[[], bool]) -> None:
        super().__init__(lease, engine, stopping)
        self.stop = self._rung_end = Stop(self._end)
        self._until = lease.job.options["until"]

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        """Store the models for drawing the final state, but no gate history, which is rarely viewed for a trial."""
        self._judged = [member for member in members if isinstance(member, Replica)]

    def saved(self, epoch: int) -> None:
        super().saved(epoch)
        if self._until is not None and epoch >= self._until:
            self._rung_end.ask(PAUSED)

    def wants_pictures(self) -> bool:
        return False


def result_of_attempts(record: Record) -> dict[str, Any]:
    """Return the attempts so far as the `result` of a job with restarts."""
    return {"attempts": [asdict(attempt) for attempt in record.attempts]}


# state frames -----------------------------------------------------------------------------------------


def frame_of(engine: Engine, member: Replica) -> dict[str, Any] | None:
    """Return a state frame small enough to be sent twice a second, or None if the rollout would be too large.

        {"epoch": 70, "seed": 23, "height": 16, "width": 16, "visible": 1,
         "film": {"steps": [0, 1, ..., 20], "bits": "..."},
         "tiles": {"step": 20, "channels": [0, 1, ...], "bits": "..."}}

    The frame shows a hard rollout of the first evaluation grid. `film` contains the visible channels of up to FILM
    steps, as uint8 `[steps, visible, height, width]`; `tiles` contains up to TILES channels after the last step, as
    `[channels, height, width]`. `bits` is base64 of packed bits, the highest bit of a byte first. Only the
    middle SIDE x SIDE cells of a larger grid are shown.
    """
    job, task = member.job, member.job.config.task
    if (task.steps + 1) * task.height * task.width * job.circuit.channels > MOST_VALUES:
        return None
    damage = job.damage_of_probes(1)
    states = engine.rollout(member.circuit, job.probes[:1], task.steps, "hard", job.probe_masks, damage)
    shown = _middle(states[:, 0].astype(np.uint8)).transpose(0, 3, 1, 2)
    # At most FILM steps are shown, including the first and the last, or all steps of a short rollout.
    steps = np.unique(np.linspace(0, task.steps, min(FILM, task.steps + 1)).round().astype(int))
    visible, channels = min(task.loss_channels, VISIBLE), min(shown.shape[1], TILES)
    return {
        "epoch": member.state.epoch,
        "seed": member.seed,
        "height": shown.shape[2],
        "width": shown.shape[3],
        "visible": visible,
        "film": {"steps": steps.tolist(), "bits": _packed(shown[steps, :visible])},
        "tiles": {"step": task.steps, "channels": list(range(channels)), "bits": _packed(shown[-1, :channels])},
    }


def _middle(states: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the middle SIDE rows and columns of states `[T+1, H, W, C]`, or all if there are fewer."""
    top, left = (max(0, (side - SIDE) // 2) for side in states.shape[1:3])
    return states[:, top : top + SIDE, left : left + SIDE]


def _packed(bits: npt.NDArray[np.uint8]) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()
