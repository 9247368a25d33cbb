# SPDX-License-Identifier: MIT
"""Streams (H 3.3): one way, in order, any amount of bytes."""

from __future__ import annotations

import collections
import errno
import threading
import time
from ctypes import byref, c_void_p
from typing import Any, Iterator, NamedTuple, Optional

from . import _errors, _library
from ._device import check
from ._handle import (MOST_SECONDS, SLICE, Handle, Pin, Single, copy, is_waiting, timeout_ns, view,
                      wait)
from ._library import unsigned
from ._manager import Endpoint, Manager

library = _library.library


class Peer(NamedTuple):
    """Who is at the other end, as the kernel said when they met: see struct h_peer.

    host: None, this one; else the id of another host, which claims that it is its user, and
    takes uid for what an administrator here makes of that.
    """
    pid: int
    uid: int
    gid: int
    host: Optional[int] = None
    user: Optional[int] = None

    @classmethod
    def _of(cls, peer: _library.CPeer) -> "Peer":
        host = None if peer.host == _library.NONE else peer.host
        return cls(peer.pid, peer.uid, peer.gid, host, peer.user)


class Record(Single):
    """A piece of a stream, where it was received: given back by release(), or a context.

    Parts of data that are kept (data[10:20], arrays of numpy) stay valid, and keep the
    sender waiting, until they are gone.
    """
    __slots__ = ("_address", "_length", "_pin", "_view")

    def __init__(self, address: int, length: int, pin: Any):
        self._address = address
        self._length = length
        self._pin = pin
        self._view: Optional[memoryview] = None

    @property
    def data(self) -> memoryview:
        """The bytes, read-only."""
        if self._pin is not None or self._view is None:
            self._check()
        if self._view is None:
            self._view = view(self._address, self._length, self._pin).toreadonly()
        return self._view

    def _check(self) -> Any:
        pin = self._pin
        if pin is None:
            raise ValueError("it was released")
        if not pin._handle.pointer:
            raise ValueError("it is the parent process's")
        return pin

    def release(self) -> None:
        """Gives it back, as far as no part of it is kept; data cannot be used any more."""
        self._pin = None
        if self._view is not None:
            try:
                self._view.release()
            except BufferError:
                self._view = None  # somebody has it: given back when they have not

    def __len__(self) -> int:
        return self._length

    def __bytes__(self) -> bytes:
        pin = self._check()
        data = copy(self._address, self._length)
        del pin  # kept until here
        return data

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.release()


def stream_attr(buffers: int, buffer_size: int, max_buffer_size: int) -> _library.StreamAttr:
    """The structure; OverflowError for what does not fit in."""
    return _library.StreamAttr(buffers=unsigned(buffers, 32),
                               buffer_size=unsigned(buffer_size, 32),
                               max_buffer_size=unsigned(max_buffer_size, 32))


class StreamReceiver(Endpoint):
    """The receiving end of a stream. One thread at a time receives from it.

    buffers, buffer_size, max_buffer_size: see struct h_stream_attr; 0: default
    """
    _on_ready_call = library.h_stream_receiver_on_ready

    def __init__(self, manager: Manager, *, buffers: int = 0, buffer_size: int = 0,
                 max_buffer_size: int = 0):
        attr = stream_attr(buffers, buffer_size, max_buffer_size)
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_stream_receiver_create(pointer, byref(attr), byref(out)),
                  "h_stream_receiver_create", handle.made_on.pointer)
            self._own(manager, out.value)

    def _own(self, manager: Manager, pointer: Optional[int]) -> None:
        self._handle = Handle("stream receiver", pointer, library.h_stream_receiver_destroy,
                              manager._need())
        self._held: collections.deque[list[Any]] = collections.deque()
        self._held_lock = threading.RLock()
        self._begin(manager)

    def _renew_locks(self) -> None:
        super()._renew_locks()
        self._held_lock = threading.RLock()

    def seed(self) -> bytes:
        """What the sender is made from: for one, once."""
        seed = _library.CSeed()
        with self._need() as receiver:
            library.h_stream_receiver_seed(receiver, byref(seed))
        return bytes(seed.bytes)

    def receive(self, timeout: Optional[float] = None) -> Optional[Record]:
        """The next piece, where it is; None at the end.

        Raises TimeoutError, BlockingIOError if timeout is 0, ConnectionResetError if
        the sender is gone without having closed.
        """
        record = _library.CRecord()
        handle = self._need()
        with handle:
            end = wait(handle, "h_stream_receive",
                       lambda receiver, ns: library.h_stream_receive(receiver, record, ns), timeout)
            return None if end else self._take(record)

    def _take(self, record: _library.CRecord) -> Record:
        handle = self._need()
        handle.hold()
        held = [record, False]
        with self._held_lock:
            self._held.append(held)

        # In C a record is released with all before it: not before those are, then.
        def release() -> None:
            last = None
            with self._held_lock:
                held[1] = True
                while self._held and self._held[0][1]:
                    last = self._held.popleft()[0]
            if last is not None and handle.pointer:
                library.h_stream_release(handle.pointer, byref(last))
            handle.leave()

        return Record(record.data, record.length, Pin(release, handle))

    def read(self, size: int, timeout: Optional[float] = None) -> bytes:
        """At most size bytes, copied, at least one; b"" at the end.

        Not to be mixed with receive(), which begins at the next piece.
        """
        buffer = bytearray(size)
        n = self.readinto(buffer, timeout)
        del buffer[n:]
        return bytes(buffer)

    def readinto(self, buffer: Any, timeout: Optional[float] = None) -> int:
        """The same, into what has the buffer protocol; how many."""
        with _library.Buffer(buffer, True) as b:
            return max(0, wait(self._need(), "h_stream_receive_copy",
                               lambda receiver, ns: library.h_stream_receive_copy(
                                   receiver, b.address, b.length, ns), timeout))

    def __iter__(self) -> Iterator[Record]:
        while True:
            record = self.receive()
            if record is None:
                return
            yield record


def _close(sender: int) -> None:
    library.h_stream_sender_close(sender, _library.NOWAIT)


class StreamSender(Endpoint):
    """The sending end of a stream, made from the receiver's seed.

    A seed makes one: after that Error is raised, with EALREADY.
    """
    _on_ready_call = library.h_stream_sender_on_ready

    def __init__(self, manager: Manager, seed: Any):
        c_seed = _library.CSeed.from_buffer_copy(_exactly(seed, _library.SEED_BYTES))
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_stream_sender_create(pointer, byref(c_seed), byref(out)),
                  "h_stream_sender_create", handle.made_on.pointer)
            self._own(manager, out.value)

    def _own(self, manager: Manager, pointer: Optional[int],
             keeps: tuple[Handle, ...] = ()) -> None:
        self._handle = Handle("stream sender", pointer, _close, manager._need(), keeps)
        self._begin(manager)

    def send(self, data: Any, timeout: Optional[float] = None) -> int:
        """Sends what has the buffer protocol; how many bytes were taken before the time was over.

        Little data may stay behind until flush(). Raises TimeoutError, or
        BlockingIOError if timeout is 0, if none were taken; BrokenPipeError if the
        receiver is gone.
        """
        done, left = 0, timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        with _library.Buffer(data) as b:
            while done < b.length:
                try:
                    done += wait(self._need(), "h_stream_send",
                                 lambda sender, ns: library.h_stream_send(
                                     sender, b.address + done, b.length - done, ns), left)
                except (TimeoutError, BlockingIOError):
                    if not done:
                        raise
                    break
                # A part may be what was taken in a slice of the time.
                if deadline is not None:
                    left = deadline - time.monotonic()
                    if left <= 0:
                        break
        return done

    def flush(self, timeout: Optional[float] = None) -> None:
        """Forces out what was collected."""
        wait(self._need(), "h_stream_flush", library.h_stream_flush, timeout)

    def shutdown(self, timeout: Optional[float] = None) -> None:
        """Ends the stream, and waits until everything has arrived.

        Raises TimeoutError, or BlockingIOError if timeout is 0, if not everything is known to
        have arrived: to be called again. BrokenPipeError if the receiver is gone.
        """
        wait(self._need(), "h_stream_sender_shutdown", library.h_stream_sender_shutdown, timeout)

    def close(self, timeout: Optional[float] = 5) -> None:
        """Ends the stream, and waits until everything has arrived.

        Raises TimeoutError if not everything is known to have arrived when the time is
        over, BrokenPipeError if the receiver is gone; it is closed all the same. What a
        handler of a signal raises, Ctrl-C's for one, ends the waiting.
        From a handler that interrupts a call of the sender it returns at once: it waits on
        the way out of that call, and nobody is told how that ends.
        """
        result = [-errno.ETIMEDOUT]
        ended = threading.Event()
        waits = timeout is None or timeout > 0
        handle = self._handle
        if handle is None:
            return

        def last(sender: int) -> None:
            try:
                if waits:
                    result[0] = _arrive(sender, timeout)
            finally:  # Ctrl-C in the thread that was in a call: another one waits here
                library.h_stream_sender_close(sender, _library.NOWAIT)
                ended.set()

        if not handle.close(last) or not waits:
            return
        # Another thread may be in a call, and destroys it on its way out.
        if is_waiting(handle) and not ended.is_set():
            return
        ended.wait(None if timeout is None else 1 + min(timeout, MOST_SECONDS))
        if result[0] < 0:
            raise _errors.failure(result[0], "h_stream_sender_close")

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(5 if kind is None else 0)

    def __del__(self) -> None:
        try:
            self.close(0)
        except Exception:  # pylint: disable=broad-except
            pass


def _arrive(sender: int, timeout: Optional[float]) -> int:
    """Waits in slices: C does not see a signal that comes while it is not asleep."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = SLICE if deadline is None else deadline - time.monotonic()
        result: int = library.h_stream_sender_shutdown(sender,
                                                       timeout_ns(max(min(left, SLICE), 1e-6)))
        if result not in (-errno.EINTR, -errno.ETIMEDOUT) or left <= 0:
            return result


def _exactly(data: Any, length: int) -> bytes:
    data = bytes(data)
    if len(data) != length:
        raise _errors.failure(-errno.EINVAL, "seed", None)
    return data


class StreamPair(NamedTuple):
    """Both directions of a connection."""
    sender: StreamSender
    receiver: StreamReceiver
    peer: Peer

    @classmethod
    def _own(cls, manager: Manager, pair: _library.CStreamPair) -> StreamPair:
        receiver = StreamReceiver.__new__(StreamReceiver)
        sender = StreamSender.__new__(StreamSender)
        receiver._own(manager, pair.receiver)
        # The library wants the sender destroyed first.
        with receiver._need():
            sender._own(manager, pair.sender, (receiver._need(),))
        return cls(sender, receiver, Peer._of(pair.peer))
