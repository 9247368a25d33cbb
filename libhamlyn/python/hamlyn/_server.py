# SPDX-License-Identifier: MIT
"""A server of many clients, in one call."""

from __future__ import annotations

import os
import select
import time
from typing import Any, Callable, Iterable, Optional

from ._channel import Channel, Listener, Message
from ._device import Device
from ._errors import Error
from ._handle import Single
from ._manager import Manager

#: Messages of one client, before the others have their turn
_AT_ONCE = 32

#: How often a client is looked at that nothing calls back for, in seconds
_FIRST_LOOK = 0.001
_LONGEST_LOOK = 0.064

#: What is to be sent to a client, or None
Handler = Callable[[Channel, Message], Any]


class _Client:
    """One of them, from its welcome to its end."""

    def __init__(self, server: Server, channel: Channel):
        self._server = server
        self.channel = channel
        self._message: Optional[Message] = None
        self._answer: Any = None
        self._is_answered = False
        self._ending = False
        channel.on_ready(self._ready)

    def _ready(self) -> None:
        try:
            if self._message is not None and not self._handle():
                return
            for _ in range(_AT_ONCE):
                self._message = self.channel.receive(0)
                if self._message is None:
                    self._end()
                    return
                if not self._handle():
                    return
        except BlockingIOError:
            pass
        except OSError as e:
            self.drop(e)
        except BaseException as e:
            self.drop(e)
            raise

    def _handle(self) -> bool:
        """Has the message handled; False: not yet."""
        message = self._message
        assert message is not None
        try:
            if not self._is_answered:
                self._answer = self._server._handler(self.channel, message)
                self._is_answered = True
            if self._answer is None:
                pass
            elif message.is_request:
                self.channel.reply(message, self._answer, 0)
            else:
                self.channel.send(self._answer, 0)
        except BlockingIOError:
            self.channel.pause(True)
            self._server._late.add(self)
            return False
        self._forget()
        if self in self._server._late:
            self._server._late.discard(self)
            self.channel.pause(False)
        return True

    def _forget(self) -> None:
        message, self._message = self._message, None
        self._answer = None
        self._is_answered = False
        if message is not None:
            message.release()

    def look(self) -> None:
        """Nothing else may have told: a handler waits, or an end is not known to have arrived."""
        if self._ending:
            self._end()
        else:
            self._ready()

    def _end(self) -> None:
        self._ending = True
        self.channel.on_ready(None)
        try:
            self.channel.shutdown(0)
        except BlockingIOError:
            self._server._late.add(self)
        except OSError as e:
            self.drop(e)
        else:
            self.drop(None)

    def drop(self, reason: Optional[BaseException]) -> None:
        """There is no such client any more."""
        server = self._server
        if self not in server._clients:
            return
        server._clients.discard(self)
        server._late.discard(self)
        try:
            if server._on_end is not None:
                server._on_end(self.channel, reason)
        finally:
            self._forget()
            self.channel.close(0)


class Server(Single):
    """A device, a manager, a listener, and a channel for each client; see serve().

    One thread at a time calls run(); stop() is for any thread, and for handlers of signals.
    """

    def __init__(self, path: str, handler: Handler, *, device: Optional[str] = None,
                 on_client: Optional[Callable[[Channel], Any]] = None,
                 on_end: Optional[Callable[[Channel, Optional[BaseException]], Any]] = None,
                 mode: int = 0, uids: Optional[Iterable[int]] = None, tickets: bool = False,
                 clients: int = 0, max_message: int = 0, buffers: int = 0, buffer_size: int = 0,
                 max_buffer_size: int = 0):
        self._handler = handler
        self._on_client = on_client
        self._on_end = on_end
        self._most = clients
        self._options = {"max_message": max_message, "buffers": buffers,
                         "buffer_size": buffer_size, "max_buffer_size": max_buffer_size}
        self._clients: set[_Client] = set()
        #: those that are to be looked at although nothing calls back
        self._late: set[_Client] = set()
        self._stopping = False
        self._device = Device(device)
        try:
            self._manager = Manager(self._device, channels=clients)
            self._listener = Listener(self._manager, path, tickets=tickets, mode=mode, uids=uids)
            self._told, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        except BaseException:
            self._device.close()
            raise
        self._deaf_until = 0.0

    @property
    def clients(self) -> int:
        """How many there are."""
        return len(self._clients)

    @property
    def manager(self) -> Manager:
        """Its manager, for end points of one's own."""
        return self._manager

    @property
    def closed(self) -> bool:
        """Was it closed?"""
        return self._device.closed

    def run(self, timeout: Optional[float] = None) -> None:
        """Serves until stop(); raises TimeoutError when the time is over.

        What a handler raises that is no OSError ends its client, and leaves run(), which can
        be called again.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        for fd in self._told, self._manager.fileno(), self._listener.fileno():
            poll.register(fd, select.POLLIN)
        look = _FIRST_LOOK
        while True:
            while self._manager.dispatch():
                pass
            if self._was_told():
                return
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("nobody has stopped the server")
            look = min(2 * look, _LONGEST_LOOK) if self._late else _FIRST_LOOK
            self._turn(poll, min(look if self._late else 60.0, 60.0 if left is None else left))

    def _was_told(self) -> bool:
        try:
            return bool(os.read(self._told, 4096))
        except BlockingIOError:
            return False

    def _turn(self, poll: select.poll, seconds: float) -> None:
        deaf = self._deaf_until > time.monotonic()
        poll.modify(self._listener.fileno(), 0 if deaf else select.POLLIN)
        if deaf:
            seconds = min(seconds, _LONGEST_LOOK)
        ready = [fd for fd, _ in poll.poll(seconds * 1000)]
        if self._listener.fileno() in ready:
            self._accept()
        for client in list(self._late):
            client.look()

    def _accept(self) -> None:
        try:
            channel = self._listener.accept(0, **self._options)
        except BlockingIOError:
            return
        except Error:
            # It was told, or there is no descriptor to take it with: then not at once again.
            self._deaf_until = time.monotonic() + _LONGEST_LOOK
            return
        if self._most and len(self._clients) >= self._most:
            channel.close(0)
            return
        try:
            if self._on_client is not None:
                self._on_client(channel)
        except BaseException as e:
            channel.close(0)
            if not isinstance(e, OSError):
                raise
            return
        self._clients.add(_Client(self, channel))

    def stop(self) -> None:
        """Ends run(), or the next one; clients stay until close()."""
        try:
            os.write(self._tell, b"s")
        except BlockingIOError:
            pass  # it was told often enough

    def close(self, timeout: float = 0) -> None:
        """Ends it, with the channels of its clients, its manager and its device.

        timeout: how long to wait, in all, until what was sent has arrived, in seconds; in
        vain: those clients find a broken channel.
        """
        if self.closed:
            return
        self._listener.close()
        end = time.monotonic() + timeout
        try:
            for client in list(self._clients):
                try:
                    client.channel.shutdown(max(end - time.monotonic(), 0))
                except (OSError, ValueError):
                    pass  # or in a child process
                client.drop(None)
        finally:
            os.close(self._told)
            os.close(self._tell)
            self._device.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(5 if kind is None else 0)


def serve(path: str, handler: Handler, **options: Any) -> Server:
    """A server of many clients: hamlyn.serve(path, handler).run().

    handler(channel, message) is called for each message of each client, in order; what it
    returns is sent back, as a reply if the message is a request; None: nothing. It must not
    wait for a client: if it sends something itself, it does so with a timeout of 0. If the
    client does not take what is sent (BlockingIOError), that is tried again when it does, and
    it is not listened to meanwhile. Another OSError ends that client. The message is given
    back when what was returned has been sent.

    device: as Device's name. on_client(channel): a new client; an OSError sends it away.
    on_end(channel, reason): it ends, well if reason is None. clients: how many there can be,
    0: as HAMLYN_CHANNELS says, or 170. mode, uids, tickets: as Listener's; the rest as
    Channel's.
    """
    return Server(path, handler, **options)
