"""Every byte that crosses between host and device, counted by purpose."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class TransferLedger:
    """`uploaded["circuit"]` is the number of bytes sent for that purpose so far; `downloaded` likewise."""

    uploaded: Counter[str] = field(default_factory=Counter)
    downloaded: Counter[str] = field(default_factory=Counter)

    def upload(self, purpose: str, count: int) -> None:
        self.uploaded[purpose] += count

    def download(self, purpose: str, count: int) -> None:
        self.downloaded[purpose] += count
