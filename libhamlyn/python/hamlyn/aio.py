# SPDX-License-Identifier: MIT
"""hamlyn for asyncio.

    from hamlyn import aio

    async with await aio.connect(manager, "/run/echo") as channel:
        await channel.send(b"hello")
        async for message in channel:
            with message:
                print(bytes(message.data))

Devices and managers are those of hamlyn itself. The first wait gives the manager's
descriptor to the running event loop; a manager belongs to one loop at a time. For
time-outs there is asyncio.wait_for(): who is cancelled has received nothing, and has
sent nothing, except for a request that still waits for its reply. Who never has to wait lets the event loop run now and then all the same.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import threading
import time
import weakref
from typing import Any, AsyncIterator, Callable, Iterable, Optional

import hamlyn

from ._handle import Handle, Single
from ._manager import Manager, Turns

#: Longest line that StreamReceiver.readuntil() takes if nothing else is said
LIMIT = 1 << 16

#: Seconds until a listener that is iterated over tries again, where accepting failed
RETRY = 0.1


class Channel(Single):
    """hamlyn.Channel, with coroutines."""

    def __init__(self, channel: hamlyn.Channel):
        #: the hamlyn.Channel
        self.channel = channel

    @classmethod
    def pair(cls, manager: Manager, other: Optional[Manager] = None,
             **options: Any) -> tuple[Channel, Channel]:
        """Both ends, in this process."""
        a, b = hamlyn.Channel.pair(manager, other, **options)
        return cls(a), cls(b)

    @property
    def peer(self) -> Optional[hamlyn.Peer]:
        """Who is at the other end, if they met at a listener."""
        return self.channel.peer

    @property
    def closed(self) -> bool:
        """Was it closed?"""
        return self.channel.closed

    async def send(self, data: Any) -> None:
        """Sends a message; sleeps while the other end's buffers are full."""
        await self.channel._again(lambda: self.channel.send(data, 0), True)

    async def sendmsg(self, pieces: Iterable[Any]) -> None:
        """Sends a message that is in several places."""
        pieces = list(pieces)
        await self.channel._again(lambda: self.channel.sendmsg(pieces, 0), True)

    async def recv(self) -> Optional[hamlyn.Message]:
        """The next message, where it is, to be released; None at the end."""
        return await self.channel._again(lambda: self.channel.receive(0))

    async def recv_bytes(self) -> Optional[bytes]:
        """The next message, copied; None at the end."""
        return await self.channel._again(lambda: self.channel.receive_bytes(0))

    async def request(self, data: Any) -> Optional[hamlyn.Message]:
        """Sends a request and receives its reply; None at the end. For any task.

        If it is cancelled the request may have been sent: its reply is dropped. Other
        messages that come meanwhile are kept for recv(); while nobody takes them, it looks
        for the reply every 5 ms at least, instead of being woken.
        """
        number = await self.request_send(data)
        try:
            return await self.request_wait(number)
        finally:
            self.channel._give_up(number)

    async def request_send(self, data: Any) -> int:
        """Sends a request; the number is for request_wait(), or request_cancel()."""
        return await self.channel._again(lambda: self.channel.request_send(data, 0), True)

    async def request_wait(self, number: int) -> Optional[hamlyn.Message]:
        """The reply to a request; None at the end."""
        return await self.channel._again(lambda: self.channel.request_wait(number, 0))

    def request_cancel(self, number: int) -> None:
        """Gives a request up: its reply is dropped when it comes."""
        self.channel.request_cancel(number)

    async def reply(self, request: hamlyn.Message, data: Any) -> None:
        """Answers a request that was received from this channel, not released yet."""
        await self.channel._again(lambda: self.channel.reply(request, data, 0), True)

    async def __aiter__(self) -> AsyncIterator[hamlyn.Message]:
        while True:
            message = await self.recv()
            if message is None:
                return
            yield message

    async def shutdown(self, timeout: Optional[float] = hamlyn.LINGER) -> None:
        """Sends no more, waits until everything has arrived, and goes on receiving."""
        await _until_arrived(lambda: self.channel.shutdown(0), timeout)

    async def close(self, timeout: Optional[float] = hamlyn.LINGER) -> None:
        """Ends the channel; waits until everything has arrived, and does not raise."""
        try:
            if timeout is None or timeout > 0:
                await _until_arrived(lambda: self.channel.shutdown(0), timeout)
        except (OSError, ValueError):
            pass
        finally:
            self.channel.close(0)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, kind: Any, *exc: Any) -> None:
        await self.close(hamlyn.LINGER if kind is None else 0)


class Listener(Single):
    """hamlyn.Listener, with coroutines. Options are those."""

    def __init__(self, manager: Manager, path: str, **options: Any):
        #: the hamlyn.Listener
        self.listener = hamlyn.Listener(manager, path, **options)
        self._waiting: set[asyncio.Future[None]] = set()
        self._turns = Turns()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._fd = -1
        self.listener._need().when_closed = weakref.WeakMethod(self._closed)

    async def accept(self, **options: Any) -> Channel:
        """The next client. Options are those of hamlyn.Listener.accept().

        Raises hamlyn.Error if a client could not be taken: then the next one may be better.
        Where descriptors have run out every attempt fails at once: pause before the next
        one, as iterating does.
        """
        return Channel(await self._accept(lambda: self.listener.accept(0, **options)))

    async def accept_streams(self) -> tuple[StreamReceiver, StreamSender]:
        """The next client of open_connection(): what to read from it, and to write to it by."""
        return _both(await self._accept(lambda: self.listener.accept_streams(0)))

    async def _accept(self, attempt: Callable[[], Any]) -> Any:
        await self._turns.take()
        while True:
            try:
                return attempt()
            except BlockingIOError:
                pass
            await self._until_readable()

    async def __aiter__(self) -> AsyncIterator[Channel]:
        """Clients, until it is closed: one that cannot be taken does not end the iteration.

        The first of several failures in a row is told to the event loop's exception handler,
        which logs it if nothing else was set; the next attempt is after RETRY seconds. Raises
        Error (ENODEV) if the device is gone.
        """
        failed = False
        while not self.listener.closed:
            try:
                channel = await self.accept()
            except ValueError:
                if not self._is_closed():
                    raise
                return
            except hamlyn.Error as e:
                if e.errno == errno.ENODEV:
                    raise
                if not failed:
                    self._tell(e)
                failed = True
                await asyncio.sleep(RETRY)
            else:
                failed = False
                yield channel

    def _is_closed(self) -> bool:
        """Or what it was made on, which begins to be closed before it."""
        handle: Optional[Handle] = self.listener._need()
        while handle is not None and not handle.closed:
            handle = handle.parent
        return handle is not None

    def _tell(self, error: hamlyn.Error) -> None:
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a client of a hamlyn.aio.Listener could not be accepted",
             "exception": error, "listener": self})

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            self._loop = loop
            self._fd = self.listener.fileno()
            loop.add_reader(self._fd, self._wake)
        elif self._loop is not loop:
            raise RuntimeError("the listener is used by another event loop")
        future = loop.create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            if not self._waiting:
                self._stop()

    def _stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        self._loop = None

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def _closed(self) -> None:
        loop = self._loop
        self._stop()
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """Listens no more; who waits in accept() gets ValueError."""
        self.listener.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self.close()


async def connect(manager: Manager, path: str, timeout: Optional[float] = None,
                  **options: Any) -> Channel:
    """hamlyn.connect(), in a thread of the event loop's.

    If it is cancelled the thread gives up at the end of the attempt it is at: after as
    long again, 5 seconds at most. Raises ValueError for a manager that is for one thread.
    """
    if manager.single:
        raise ValueError("the manager is for one thread (single=True), and aio.connect() "
                         "uses another: make one without that")
    loop = asyncio.get_running_loop()
    gave_up = threading.Event()
    try:
        return Channel(await loop.run_in_executor(
            None, lambda: hamlyn.connect(manager, path, timeout, _gave_up=gave_up.is_set,
                                         **options)))
    finally:
        gave_up.set()


async def open_connection(manager: Manager, path: str, timeout: Optional[float] = None,
                          **options: Any) -> tuple[StreamReceiver, StreamSender]:
    """As asyncio.open_connection(): streams to a server that has them (Listener.accept_streams())."""
    if manager.single:
        raise ValueError("the manager is for one thread (single=True), and "
                         "aio.open_connection() uses another: make one without that")
    loop = asyncio.get_running_loop()
    return _both(await loop.run_in_executor(
        None, lambda: hamlyn.connect_streams(manager, path, timeout, **options)))


class StreamReceiver(Single):
    """hamlyn.StreamReceiver, with coroutines; read() and its kin are asyncio.StreamReader's.

    They are for one task at a time, and not to be mixed with recv().
    """

    def __init__(self, receiver: hamlyn.StreamReceiver):
        #: the hamlyn.StreamReceiver
        self.receiver = receiver
        self._left = bytearray()        # read, and not given to anybody yet
        self._ended = False

    async def recv(self) -> Optional[hamlyn.Record]:
        """The next piece, where it is, to be released; None at the end."""
        return await self.receiver._again(lambda: self.receiver.receive(0))

    async def read(self, size: int = -1) -> bytes:
        """At most size bytes, copied, at least one; b"" at the end. -1: all until the end."""
        if size < 0:
            while await self._more():
                pass
            return self._take(len(self._left))
        if self._left or not size:
            return self._take(size)
        got: bytes = await self.receiver._again(lambda: self.receiver.read(size, 0))
        self._ended = self._ended or not got
        return got

    async def readexactly(self, size: int) -> bytes:
        """size bytes; asyncio.IncompleteReadError with those that came, if it ends before."""
        if size < 0:
            raise ValueError("a size is not negative")
        while len(self._left) < size:
            if not await self._more(size - len(self._left)):
                raise asyncio.IncompleteReadError(self._take(size), size)
        return self._take(size)

    async def readuntil(self, separator: bytes = b"\n", limit: int = LIMIT) -> bytes:
        """All that comes up to a separator, that included.

        asyncio.IncompleteReadError with the rest if there is none; asyncio.LimitOverrunError if
        it would be longer than limit: what came stays to be read.
        """
        if not separator:
            raise ValueError("a separator has at least one byte")
        begin = 0
        while True:
            at = self._left.find(separator, begin)
            if (at if at >= 0 else len(self._left)) > limit:
                raise asyncio.LimitOverrunError("longer than the limit", len(self._left))
            if at >= 0:
                return self._take(at + len(separator))
            begin = max(0, len(self._left) - len(separator) + 1)
            if not await self._more():
                raise asyncio.IncompleteReadError(self._take(len(self._left)), None)

    async def readline(self) -> bytes:
        """A line, and at the end what is left without its end."""
        try:
            return await self.readuntil()
        except asyncio.IncompleteReadError as e:
            return e.partial

    def at_eof(self) -> bool:
        """Has the end been read, and all before it?"""
        return self._ended and not self._left

    async def _more(self, size: int = 16384) -> bool:
        got: bytes = await self.receiver._again(lambda: self.receiver.read(size, 0))
        self._left += got
        self._ended = self._ended or not got
        return bool(got)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._left[:size])
        del self._left[:size]
        return taken

    async def __aiter__(self) -> AsyncIterator[hamlyn.Record]:
        while True:
            record = await self.recv()
            if record is None:
                return
            yield record


class StreamSender(Single):
    """hamlyn.StreamSender, with coroutines; write() and its kin are asyncio.StreamWriter's."""

    def __init__(self, sender: hamlyn.StreamSender):
        #: the hamlyn.StreamSender
        self.sender = sender
        #: who is at the other end, of open_connection() and Listener.accept_streams()
        self.peer: Optional[hamlyn.Peer] = None
        self._written = bytearray()

    def write(self, data: Any) -> None:
        """Keeps a copy, for drain() to send."""
        self._written += data

    def writelines(self, pieces: Iterable[Any]) -> None:
        """Each of them."""
        for piece in pieces:
            self.write(piece)

    async def drain(self) -> None:
        """Sends what was written, all of it. Who is cancelled has sent a part, and may go on."""
        while self._written:
            part = bytes(self._written[:LIMIT])
            taken = await self.sender._again(functools.partial(self.sender.send, part, 0))
            del self._written[:taken]
        await self.flush()

    async def close(self, timeout: Optional[float] = hamlyn.LINGER) -> None:
        """Sends what was written, ends the stream, and waits until everything has arrived."""
        await self.drain()
        await self.shutdown(timeout)

    async def send(self, data: Any) -> None:
        """Sends all of it; little data may stay behind until flush().

        Who is cancelled may have sent a part.
        """
        with memoryview(data) as whole, whole.cast("B") as rest:
            done = 0
            while done < len(rest):
                part = rest[done:]
                done += await self.sender._again(functools.partial(self.sender.send, part, 0))

    async def flush(self) -> None:
        """Forces out what was collected."""
        await self.sender._again(lambda: self.sender.flush(0))

    async def shutdown(self, timeout: Optional[float] = hamlyn.LINGER) -> None:
        """Ends the stream, and waits until everything has arrived."""
        await _until_arrived(lambda: self.sender.shutdown(0), timeout)


def _both(pair: hamlyn.StreamPair) -> tuple[StreamReceiver, StreamSender]:
    sender = StreamSender(pair.sender)
    sender.peer = pair.peer
    return StreamReceiver(pair.receiver), sender


async def receive(endpoint: Any, *args: Any) -> Any:
    """receive() of a DatagramReceiver, a TaggedReceiver or a Group, in an event loop."""
    return await endpoint._again(lambda: endpoint.receive(*args, timeout=0))


async def _until_arrived(attempt: Any, timeout: Optional[float]) -> None:
    """The library does not call back for what has arrived: looks, less and less often."""
    deadline = None if timeout is None else time.monotonic() + timeout
    delay = 0.0005
    while True:
        try:
            return attempt()
        except BlockingIOError:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError("not everything is known to have arrived") from None
        await asyncio.sleep(delay)
        delay = min(2 * delay, 0.02)
