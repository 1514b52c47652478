"""Observer that records its calls."""

from difflogic.runs.journal import Row
from difflogic.train.observer import Beginning, Observer, Standing


class Diary(Observer):
    """Notices, saves, logs of one model and standings of several, in order."""

    def __init__(self) -> None:
        self.began_with: Beginning | None = None
        self.advances: list[int] = []
        self.logs: list[tuple[int, float]] = []
        self.standings: list[Standing] = []
        self.notices: list[str] = []
        self.saves: list[int] = []

    def began(self, beginning: Beginning) -> None:
        self.began_with = beginning

    def advanced(self, epoch: int) -> None:
        self.advances.append(epoch)

    def logged(self, row: Row, judged: Row | None) -> None:
        assert judged is not None
        assert judged.accuracy is not None
        self.logs.append((row.epoch, judged.accuracy))
        assert judged.epoch <= row.epoch

    def compared(self, standing: Standing) -> None:
        self.standings.append(standing)

    def noticed(self, text: str) -> None:
        self.notices.append(text)

    def saved(self, epoch: int) -> None:
        self.saves.append(epoch)
