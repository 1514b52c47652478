"""What a worker hears while it trains, and passes on: signs of life, progress, state frames, the wish to stop."""

from __future__ import annotations

import json
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence

from difflogic import files
from difflogic.engine import Engine
from difflogic.serve.frames import frame_of
from difflogic.serve.gate_history import GateHistory
from difflogic.serve.job_log import say
from difflogic.serve.lease import Lease
from difflogic.train.evaluation.census import census
from difflogic.train.journal import Row
from difflogic.train.member import Member, leader
from difflogic.train.observer import Beginning, Observer, Standing

FRAME_S = 0.5
"""Between two state frames, at least."""
SHARE = 0.05
"""Of the time, that making frames may take."""
SPEED_S = 5.0
"""Epochs per second are measured over so long."""


class Watch(Observer):
    """Of one try at one job. Its calls come from the thread that trains, so that a hang of it is seen."""

    def __init__(self, lease: Lease, engine: Engine, stopping: Callable[[], bool]) -> None:
        """`stopping`: whether this worker is to end, job or no job."""
        self._lease, self._engine, self._stopping = lease, engine, stopping
        self._place = lease.store.place(lease.job.id)
        self.began_at: int | None = None
        """The epoch that this try went on from; None before it did."""
        self._pace: deque[tuple[float, int]] = deque()
        self._advances = 0
        self._next_frame = 0.0
        self._asked_at = 0.0
        self._judged: Sequence[Member] = ()
        self._obeyed = False

    def began(self, beginning: Beginning) -> None:
        self.began_at = beginning.epoch
        say(f"on {beginning.engine.adapter or beginning.engine.engine}, from epoch {beginning.epoch}")
        self._gates = GateHistory(self._place.gates, beginning.epoch)
        self._lease.progress |= {"epoch": beginning.epoch, "saved_epoch": beginning.epoch}
        self._lease.enter("compiling")
        self._obey()

    def advanced(self, epoch: int) -> None:
        self._advances += 1
        if self._lease.phase != "training" and self._advances > 1:  # a GPU has only been given the first epochs
            self._lease.enter("training", warm=True)
        now = time.monotonic()
        self._pace.append((now, epoch))
        while now - self._pace[0][0] > SPEED_S and len(self._pace) > 2:
            self._pace.popleft()
        seconds = now - self._pace[0][0]
        speed = (epoch - self._pace[0][1]) / seconds if seconds else None
        self._lease.alive(epoch=epoch, epochs_per_s=speed)
        self._obey()

    def wants_states(self) -> bool:
        self._asked_at = time.monotonic()
        return self._lease.watched and self._asked_at >= self._next_frame

    def shown(self, members: Sequence[Member]) -> None:
        if not self._lease.is_warm("drawing"):
            self._lease.enter("drawing")
        self._draw(members)
        if self._lease.phase == "drawing":
            self._lease.warm()
        now = time.monotonic()
        self._next_frame = now + max(FRAME_S, (now - self._asked_at) / SHARE)

    def _draw(self, members: Sequence[Member]) -> None:
        frame = frame_of(self._engine, members[leader(members)])
        if frame is not None:
            try:
                files.write_atomically(self._place.frame, json.dumps(frame).encode())
            except OSError as error:
                say(f"the state frame cannot be written: {error.strerror}")

    def logged(self, row: Row, accuracy: float) -> None:
        self._report(row.soft_loss, [row])

    def compared(self, standing: Standing) -> None:
        self._report(standing.soft_losses[0], standing.rows)

    def _report(self, soft_loss: float, rows: Sequence[Row]) -> None:
        self._lease.progress["soft_loss"] = soft_loss if math.isfinite(soft_loss) else None
        wrong = [row.hard_loss for row in rows if row.hard_loss is not None]
        if wrong:
            self._lease.progress |= {"hard_loss": min(wrong), "solved": wrong.count(0)}
            say(f"epoch {rows[0].epoch}: soft loss {soft_loss:.4g}, hard loss {min(wrong)}")

    def noticed(self, text: str) -> None:
        say(text)

    def judging(self, epoch: int) -> None:
        self._lease.enter("evaluating")

    def judged(self, members: Sequence[Member]) -> None:
        self._judged = members
        best = members[leader(members)]
        layers = census(best.circuit)
        self._gates.append(best.state.epoch, layers)
        self._lease.alive(active_gates=sum(layer.active for layer in layers))

    def saved(self, epoch: int) -> None:
        self._lease.tell(epoch=epoch, saved_epoch=epoch)
        self._lease.warm()
        if self._lease.phase == "evaluating" and self._advances > 1:
            self._lease.enter("training", warm=True)
        self._obey()

    def ending(self) -> None:
        self._lease.enter("finishing")
        if self._judged:  # whoever comes later sees what became of it
            self._draw(self._judged)

    def _obey(self) -> None:
        """What was asked of the job ends its training as a signal would."""
        if not self._obeyed and (self._lease.wanted is not None or self._stopping()):
            self._obeyed = True
            signal.raise_signal(signal.SIGTERM)
