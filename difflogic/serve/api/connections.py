"""The connections that clients hold: so many in all, so many of one address, and none that waits for nothing.

uvicorn's own limit counts requests that have arrived: a client that sends half a head, or half a TLS handshake, holds a
connection for as long as it likes. Here connections are counted where the system hands them over, and each is always in
one of four states:

    idle            its last request was answered, and no other has begun: it has `head_s` in all
    awaits a head   since it was opened or a part of one came: the same
    awaits a body   the middleware limits the time of that
    answers         as long as that takes, which is days for a stream of events; only the client must go on reading

Where room is needed the one that has been idle for longest is closed, else the one that has waited for its head for
longest, else for its body. A client that means it has sent all long before it is the oldest of a flood.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter, OrderedDict
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from difflogic.serve.api.settings import ConnectionLimits, network_of
from difflogic.serve.api.telemetry import Telemetry
from difflogic.serve.log import log_event

Peer = tuple[str, int]


class Connections:
    """The connections that are open; all calls come from the server's event loop."""

    def __init__(self, limits: ConnectionLimits, proxies: Iterable[str], telemetry: Telemetry) -> None:
        self._limits, self._telemetry = limits, telemetry
        self._proxies = [ip_network(each) for each in proxies]
        self._open: dict[Peer, Accepted] = {}
        self._by_network: Counter[str] = Counter()
        self._idle: OrderedDict[Peer, None] = OrderedDict()
        self._heads: OrderedDict[Peer, None] = OrderedDict()
        self._bodies: OrderedDict[Peer, None] = OrderedDict()

    def admit(self, connection: Accepted, peer: Peer) -> bool:
        """Take a new connection, where there is room or room can be made."""
        network = network_of(peer[0])
        if self._by_network[network] >= self._limits.per_address and not self._is_proxy(peer[0]):
            has_room = self._make_room(network)
        else:
            has_room = len(self._open) < self._limits.all or self._make_room(None)
        if not has_room:
            self._telemetry.turned_away.labels("full").inc()
            log_event("no room for a connection", logging.WARNING, client=peer[0], open=len(self._open))
            return False
        connection.begin(self, peer, network)
        self._open[peer] = connection
        self._by_network[network] += 1
        self._telemetry.connections.set(len(self._open))
        self.await_head(peer, is_idle=False)
        return True

    def release(self, connection: Accepted) -> None:
        """Forget a connection that is closed."""
        connection.limit(None)
        self._by_network[connection.network] -= 1
        if not self._by_network[connection.network]:
            del self._by_network[connection.network]
        # A client may use the same port again before its old connection is closed here.
        if self._open.get(connection.peer) is connection:
            self._leave(connection.peer)
            del self._open[connection.peer]
        self._telemetry.connections.set(len(self._open))

    def await_head(self, peer: Peer, is_idle: bool) -> None:
        """Nothing is to be answered; `is_idle`: nor has anything come since the last answer."""
        # A part of the next head ends the idleness, and not the time that was left: else a byte now and then would keep
        # the connection for ever.
        was_idle = peer in self._idle
        if peer not in self._open or peer in self._heads or (was_idle and is_idle):
            return
        if was_idle:
            del self._idle[peer]
        else:
            self._leave(peer)
            self._limit(peer, self._limits.head_s)
        (self._idle if is_idle else self._heads)[peer] = None

    def await_body(self, peer: Peer) -> None:
        """A head has come, and not yet all of the body."""
        if peer in self._open and peer not in self._bodies:
            self._leave(peer)
            self._bodies[peer] = None

    def answer(self, peer: Peer) -> None:
        """A request has come, and is being answered."""
        self._leave(peer)

    def await_reader(self, peer: Peer) -> None:
        """The client does not take what it asked for."""
        if peer in self._open:
            self._limit(peer, self._limits.write_s)

    def _limit(self, peer: Peer, seconds: float) -> None:
        connection = self._open[peer]
        connection.limit(asyncio.get_running_loop().call_later(seconds, self._end, peer, "late"))

    def _leave(self, peer: Peer) -> None:
        for state in (self._idle, self._heads, self._bodies):
            state.pop(peer, None)
        if peer in self._open:
            self._open[peer].limit(None)

    def _make_room(self, network: str | None) -> bool:
        """Close a connection that answers nothing, of a network or of anybody; False where all of them do."""
        for state in (self._idle, self._heads, self._bodies):
            for peer in state:
                if network in (None, self._open[peer].network):
                    self._end(peer, "room")
                    return True
        return False

    def _end(self, peer: Peer, why: str) -> None:
        self._telemetry.turned_away.labels(why).inc()
        self._leave(peer)
        # The transport reads the end of the connection and closes it in good order, in a TLS handshake too.
        with contextlib.suppress(OSError):
            self._open[peer].shutdown(socket.SHUT_RDWR)

    def _is_proxy(self, host: str) -> bool:
        address = ip_address(host.partition("%")[0])
        return any(address in network for network in self._proxies)


class Accepted(socket.socket):
    """A client's connection, which says when it is closed."""

    _of: Connections | None = None
    _timer: asyncio.TimerHandle | None = None
    peer: Peer
    network: str

    def begin(self, of: Connections, peer: Peer, network: str) -> None:
        """Note who is told of the end."""
        self._of, self.peer, self.network = of, peer, network

    def limit(self, timer: asyncio.TimerHandle | None) -> None:
        """Take the place of the timer that was set before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer

    def close(self) -> None:
        super().close()
        of, self._of = self._of, None
        if of is not None:
            of.release(self)


class Listener(socket.socket):
    """A socket that hands over no connection for which there is no room."""

    door: Connections | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        plain, address = super().accept()
        connection = Accepted(fileno=plain.detach())
        if self.door is not None and not self.door.admit(connection, address[:2]):
            connection.close()
            # What asyncio expects where a client has gone before it was accepted: it goes on with the next.
            raise ConnectionAbortedError
        return connection, address


class Connection(H11Protocol):
    """uvicorn's protocol, which says in what state it is."""

    door: ClassVar[Connections]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._tell(is_idle=False)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._tell(is_idle=True)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.client is not None:
            self.door.await_reader(self.client)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._tell(is_idle=True)

    def _tell(self, is_idle: bool) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        if self.client is None:
            return
        if cycle is None or cycle.response_complete:
            self.door.await_head(self.client, is_idle)
        elif cycle.more_body:
            self.door.await_body(self.client)
        else:
            self.door.answer(self.client)
