"""How often an address gave a wrong token of late: whoever guesses has to wait."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

MOST = 10
"""Wrong tokens within a window."""
WINDOW_S = 60.0
ADDRESSES = 10_000
"""That are remembered; the one that failed longest ago is forgotten first."""


class Failures:
    """Wrong tokens by address, an IPv6 one by its network of 64 bits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> int:
        """Whole seconds until this address may try again; 0 where it may."""
        with self._lock:
            times = self._times.get(_group(address), deque[float]())
            now = self._clock()
            recent = [each for each in times if now - each < WINDOW_S]
            return 0 if len(recent) < MOST else math.ceil(recent[-MOST] + WINDOW_S - now)

    def add(self, address: str) -> None:
        """One more."""
        with self._lock:
            group = _group(address)
            self._times.setdefault(group, deque(maxlen=MOST)).append(self._clock())
            self._times.move_to_end(group)
            while len(self._times) > ADDRESSES:
                self._times.popitem(last=False)


def _group(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))
