# SPDX-License-Identifier: MIT
"""Channels, and how processes meet."""

from __future__ import annotations

import errno
import time
import weakref
from ctypes import byref, c_uint32, c_void_p
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _errors, _library
from ._device import Device, check
from ._handle import END, Handle, Owner, Single, copy, nanoseconds, timeout_ns, view, wait
from ._library import unsigned
from ._manager import Endpoint, Manager
from ._stream import Peer, Record, StreamPair, _exactly

library = _library.library

_TICKETS = 1
_WAIT = 2

#: How long close() waits, in seconds, if nothing is said
LINGER = 5.0

#: How long an attempt to connect lasts, in seconds. A server that accepts too late finds
#: that the client has gone, so it is not short.
FIRST_ATTEMPT = 1.0
LONGEST_ATTEMPT = 5.0

#: As short as the smallest buffer: taken in one piece, or not yet
_SHORT = 128

_send = library.h_channel_send
_receive = library.h_channel_receive
_release = library.h_channel_release


class Message(Record):
    """A message, where it was received: given back by release(), or a context.

    Parts of data that are kept (data[10:20], arrays of numpy) stay valid, and keep the
    other end from the buffer, until they are gone.
    """
    __slots__ = ()

    @property
    def is_request(self) -> bool:
        """Does it want a reply, by Channel.reply()?"""
        return bool(library.h_channel_is_request(self._check()._message))


class _Held(Single):
    """A message that is held; inside a use of its channel."""
    __slots__ = ("_handle", "_message")

    def __init__(self, handle: Handle, message: _library.CMessage):
        self._handle = handle
        self._message = message

    def __del__(self) -> None:
        handle = self._handle
        if handle.pointer:
            _release(handle.pointer, self._message)
        handle.leave()


class _Lent(Single):
    """The memory of a loan, until it is committed or nothing shows it any more."""
    __slots__ = ("handle", "loan", "commit", "abandon")

    def __init__(self, handle: Handle, loan: _library.CLoan, commit: Any, abandon: Any):
        """Inside a use of the channel, or the publisher, whose calls these two are."""
        self.handle = handle
        self.loan = loan
        self.commit = commit
        self.abandon = abandon
        handle.hold()

    def __del__(self) -> None:
        if self.handle.pointer:
            self.abandon(self.handle.pointer, self.loan)
        self.handle.leave()


class _Shown(Single):
    """What each part of a loan's view keeps."""
    __slots__ = ("lent", "__weakref__")

    def __init__(self, lent: _Lent):
        self.lent = lent


class Loan(Single):
    """Memory in which a message is built, see reserve(): a context, which abandons it.

    Parts of data that are kept (data[10:20], arrays of numpy) keep it from being committed.
    """
    __slots__ = ("_lent", "_shown", "_view")

    def __init__(self, lent: _Lent):
        self._lent: Optional[_Lent] = lent
        self._view: Optional[memoryview] = None
        self._shown: Optional[weakref.ref[_Shown]] = None

    def _check(self) -> _Lent:
        lent = self._lent
        if lent is None:
            raise ValueError("it was committed or abandoned")
        if not lent.handle.pointer:
            raise ValueError("it is the parent process's")
        return lent

    @property
    def data(self) -> memoryview:
        """The bytes, of no particular contents, to be written to."""
        lent = self._check()
        if self._view is None:
            shown = _Shown(lent)
            self._shown = weakref.ref(shown)
            self._view = view(lent.loan.data, lent.loan.length, shown)
        return self._view

    def commit(self, length: Optional[int] = None, timeout: Optional[float] = None) -> None:
        """Sends, or publishes, its first bytes, or all of them.

        Raises as send(): then it is as it was. BufferError while parts of data are
        kept elsewhere, Error (EINVAL) if length is more than there is.
        """
        lent = self._check()
        self._hide()
        if self._shown is not None and self._shown() is not None:
            raise BufferError("a part of the loan is in use")
        n = lent.loan.length if length is None else unsigned(length)
        wait(lent.handle, lent.commit.__name__,
             lambda pointer, ns: lent.commit(pointer, lent.loan, n, ns), timeout)
        self._lent = None

    def abandon(self) -> None:
        """Gives it back, as far as no part of it is kept; data cannot be used any more."""
        self._lent = None
        self._hide()

    def _hide(self) -> None:
        shown, self._view = self._view, None
        if shown is not None:
            try:
                shown.release()
            except BufferError:
                pass  # somebody has it

    def __len__(self) -> int:
        return self._check().loan.length

    def __enter__(self) -> Loan:
        self._check()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.abandon()


def _connect_attr(attr: _library.ConnectAttr | _library.ChannelAttr, tickets: bool, wait_for_it: bool,
                  uids: Optional[Iterable[int]]) -> None:
    attr.flags = (_TICKETS if tickets else 0) | (_WAIT if wait_for_it else 0)
    if uids is not None:
        array = _uids(uids)
        attr.uids = array
        attr.uid_count = len(array)


def _uids(uids: Iterable[int]) -> Any:
    uids = [unsigned(uid, 32) for uid in uids]
    if not uids:
        raise ValueError("an empty list of users lets nobody in")
    return (c_uint32 * len(uids))(*uids)


def _channel_attr(max_message: int, buffers: int, buffer_size: int,
                  max_buffer_size: int) -> _library.ChannelAttr:
    return _library.ChannelAttr(max_message=unsigned(max_message),
                                buffers=unsigned(buffers, 32),
                                buffer_size=unsigned(buffer_size, 32),
                                max_buffer_size=unsigned(max_buffer_size, 32))


def _close(channel: int) -> None:
    library.h_channel_close(channel, _library.NOWAIT)


class Channel(Endpoint):
    """One end of a channel: messages both ways. Any thread may send, any receive.

    Made by connect(), Listener.accept() or Channel.pair(); or by itself, and by
    bringing seed() to the other end's join(), each way.

    max_message: longest message that this end takes; buffers, buffer_size,
    max_buffer_size: see struct h_stream_attr. 0: default.
    """
    _on_ready_call = library.h_channel_on_ready
    #: of dial(): ends with it
    _device: Optional[Device] = None

    def __init__(self, manager: Manager, *, max_message: int = 0, buffers: int = 0,
                 buffer_size: int = 0, max_buffer_size: int = 0):
        attr = _channel_attr(max_message, buffers, buffer_size, max_buffer_size)
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_channel_create(pointer, byref(attr), byref(out)),
                  "h_channel_create", handle.made_on.pointer)
            self._own(manager, out.value)

    def _own(self, manager: Manager, pointer: Optional[int]) -> Channel:
        self._handle = Handle("channel", pointer, _close, manager._need())
        self._begin(manager)
        return self

    @classmethod
    def pair(cls, manager: Manager, other: Optional[Manager] = None, *, max_message: int = 0,
             buffers: int = 0, buffer_size: int = 0,
             max_buffer_size: int = 0) -> tuple[Channel, Channel]:
        """Both ends, in this process, on one manager or on two."""
        attr = _channel_attr(max_message, buffers, buffer_size, max_buffer_size)
        other = other or manager
        a, b = c_void_p(), c_void_p()
        handle = manager._need()
        with handle as ma, other._need() as mb:
            check(library.h_channel_pair(ma, mb, byref(attr), byref(a), byref(b)),
                  "h_channel_pair", handle.made_on.pointer)
            return (cls.__new__(cls)._own(manager, a.value),
                    cls.__new__(cls)._own(other, b.value))

    # ---- made by itself ----

    def seed(self) -> bytes:
        """What the other end has to know of this one, for its join()."""
        seed = _library.CChannelSeed()
        with self._need() as channel:
            library.h_channel_seed(channel, byref(seed))
        return bytes(seed.bytes)

    def join(self, seed: Any) -> None:
        """Tells this end of the other one. Error, with EALREADY, if another one has joined it."""
        c_seed = _library.CChannelSeed.from_buffer_copy(
            _exactly(seed, _library.CHANNEL_SEED_BYTES))
        with self._need() as channel:
            check(library.h_channel_join(channel, byref(c_seed)), "h_channel_join")

    @property
    def peer(self) -> Optional[Peer]:
        """Who is at the other end, if they met at a listener."""
        peer = _library.CPeer()
        with self._need() as channel:
            result = library.h_channel_peer(channel, byref(peer))
        if result == -errno.ENOENT:
            return None
        check(result, "h_channel_peer")
        return Peer._of(peer)

    def stats(self) -> dict[str, int]:
        """Counters and state, as in struct h_channel_counters: sent, received, waits and others."""
        stats = _library.CChannelStats()
        with self._need() as channel:
            check(library.h_channel_stats(channel, byref(stats)),
                  "h_channel_stats")
        return {name: getattr(stats, name) for name, *_ in stats._fields_}

    # ---- sending ----

    def send(self, data: Any, timeout: Optional[float] = None) -> None:
        """Sends a message, whole or not at all: what has the buffer protocol.

        Raises TimeoutError, or BlockingIOError if timeout is 0; BrokenPipeError if the
        other end is gone, or this one was shut down. A message of which a part had gone
        when the time was over counts as sent: the rest goes out in whatever call polls or
        waits on the manager next; Manager.drain() tells whether all has left.
        """
        if type(data) is bytes:
            self._send(data, len(data), timeout)
        else:
            with _library.Buffer(data) as b:
                self._send(b.address, b.length, timeout)

    def _send(self, address: Any, length: int, timeout: Optional[float]) -> None:
        handle = self._need()
        if length > _SHORT:
            self._at_once("h_channel_send",
                          lambda channel, ns: _send(channel, address, length, ns), timeout)
            return
        with handle as pointer:
            result = _send(pointer, address, length, 0)
        if not result:
            return
        if result != -errno.EAGAIN or timeout == 0:
            raise _errors.failure(result, "h_channel_send")
        wait(handle, "h_channel_send",
             lambda channel, ns: _send(channel, address, length, ns), timeout)

    def _at_once(self, call: str, function: Callable[[int, int], int],
                 timeout: Optional[float]) -> None:
        """As wait(), but for all of the time in one call.

        When the time of a call is over, a message that was begun counts as sent, and the
        rest goes out some time: not while there is time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._need() as pointer:
            while True:
                result = function(pointer, timeout_ns(timeout))
                if not result:
                    return
                if result != -errno.EINTR or timeout == 0:
                    raise _errors.failure(result, call)
                if deadline is not None:
                    timeout = max(deadline - time.monotonic(), 1e-6)

    def send_checked(self, data: Any, timeout: Optional[float] = None) -> None:
        """Sends a message from memory that may go meanwhile, as an mmap of a file may.

        As send(); raises Error (EFAULT), and sends nothing, if not all of it is there, where
        send() ends the interpreter by SIGBUS.
        """
        with _library.Buffer(data) as b:
            self._at_once("h_channel_send_checked",
                          lambda channel, ns: library.h_channel_send_checked(
                              channel, b.address, b.length, ns), timeout)

    def sendmsg(self, pieces: Iterable[Any], timeout: Optional[float] = None) -> None:
        """Sends a message that is in several places."""
        buffers = []
        try:
            for piece in pieces:
                buffers.append(_library.Buffer(piece))
            iov = (_library.IoVec * len(buffers))(
                *(_library.IoVec(b.address, b.length) for b in buffers))
            self._at_once("h_channel_sendv",
                          lambda channel, ns: library.h_channel_sendv(channel, iov, len(iov), ns),
                          timeout)
        finally:
            for b in buffers:
                b.__exit__()

    def reserve(self, length: int) -> Loan:
        """Memory to build a message in, which is sent from there by commit().

        Raises Error (EMSGSIZE) if the other end does not take messages that long.
        """
        loan = _library.CLoan()
        handle = self._need()
        with handle as channel:
            check(library.h_channel_reserve(channel, unsigned(length), byref(loan)),
                  "h_channel_reserve", self._manager._need().made_on.pointer)
            return Loan(_Lent(handle, loan, library.h_channel_commit, library.h_channel_abandon))

    # ---- receiving ----

    def receive(self, timeout: Optional[float] = None) -> Optional[Message]:
        """The next message, where it is; None at the end.

        Raises TimeoutError, or BlockingIOError if timeout is 0; ConnectionResetError if
        the other end is gone without having closed.
        """
        message = _library.CMessage()
        handle = self._need()
        pointer = handle.enter()
        try:
            end = _receive(pointer, message, 0)
            if end and self._wait_for(end, message, timeout):
                return None
            handle.hold()
            held = _Held(handle, message)
        finally:
            handle.leave()
        return Message(message.data, message.length, held)

    def _wait_for(self, result: int, message: _library.CMessage,
                  timeout: Optional[float]) -> int:
        if result == -errno.ENODATA:
            return END
        if result != -errno.EAGAIN or timeout == 0:
            raise _errors.failure(result, "h_channel_receive")
        return wait(self._need(), "h_channel_receive",
                    lambda channel, ns: _receive(channel, message, ns), timeout)

    def receive_bytes(self, timeout: Optional[float] = None) -> Optional[bytes]:
        """The next message, copied; None at the end."""
        message = _library.CMessage()
        handle = self._need()
        with handle as pointer:
            end = _receive(pointer, message, 0)
            if end and self._wait_for(end, message, timeout):
                return None
            try:
                return copy(message.data, message.length)
            finally:
                _release(pointer, message)

    def receive_into(self, buffer: Any, timeout: Optional[float] = None) -> Optional[int]:
        """The next message, copied into what has the buffer protocol; how long, None at the end.

        Raises Error (EMSGSIZE) if it is longer: then it is the next one still.
        """
        with _library.Buffer(buffer, True) as b:
            n = wait(self._need(), "h_channel_receive_copy",
                     lambda channel, ns: library.h_channel_receive_copy(
                         channel, b.address, b.length, ns), timeout)
            return None if n == END else n

    # ---- requests ----

    def request(self, data: Any, timeout: Optional[float] = None) -> Optional[Message]:
        """Sends a request and receives its reply; None at the end. For any thread.

        Other messages that come meanwhile are kept for receive().

        Raises BlockingIOError if it was not sent in time: then nothing was sent.
        TimeoutError if it was sent, and there was no reply in time, also if timeout is 0: it
        is given up, and a reply that comes later is dropped. Other errors as send(), if
        it was not sent, or as receive().
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            number = self.request_send(data, timeout)
        except TimeoutError:
            raise _errors.failure(-errno.EAGAIN, "h_channel_request") from None
        try:
            return self.request_wait(number, None if deadline is None else
                                     max(deadline - time.monotonic(), 0 if not timeout else 1e-6))
        except BlockingIOError:
            raise _errors.failure(-errno.ETIMEDOUT, "h_channel_request") from None
        finally:
            self._give_up(number)

    def request_send(self, data: Any, timeout: Optional[float] = None) -> int:
        """Sends a request; the number is for request_wait(), or request_cancel().

        Raises as send(): then nothing was sent.
        """
        number = c_uint32()
        with _library.Buffer(data) as b:
            self._at_once("h_channel_request_send",
                          lambda channel, ns: library.h_channel_request_send(
                              channel, b.address, b.length, byref(number), ns), timeout)
        return number.value

    def request_wait(self, number: int, timeout: Optional[float] = None) -> Optional[Message]:
        """The reply to a request; None at the end.

        Raises TimeoutError, or BlockingIOError if timeout is 0: to be called again, or given
        up by request_cancel(). Error (EINVAL) if there is no such request, or it is done.
        """
        number = unsigned(number, 32)
        message = _library.CMessage()
        handle = self._need()
        pointer = handle.enter()
        try:
            if wait(handle, "h_channel_request_wait",
                    lambda channel, ns: library.h_channel_request_wait(channel, number,
                                                                       message, ns), timeout):
                return None
            handle.hold()
            held = _Held(handle, message)
        finally:
            handle.leave()
        return Message(message.data, message.length, held)

    def request_cancel(self, number: int) -> None:
        """Gives a request up: its reply is dropped when it comes."""
        with self._need() as channel:
            library.h_channel_request_cancel(channel, unsigned(number, 32))

    def _give_up(self, number: int) -> None:
        try:
            self.request_cancel(number)
        except ValueError:
            pass  # it was closed

    def reply(self, request: Message, data: Any, timeout: Optional[float] = None) -> None:
        """Answers a request that was received from this channel, not released yet.

        Raises as send(); Error (EINVAL) if it is no request.
        """
        held = request._check()
        if held._handle is not self._need():
            raise ValueError("the request is another channel's")
        with _library.Buffer(data) as b:
            self._at_once("h_channel_reply",
                          lambda channel, ns: library.h_channel_reply(
                              channel, held._message, b.address, b.length, ns), timeout)

    def reply_only(self) -> None:
        """Answers by reply() only: nothing that is sent before the first one is a reply.

        Without it send() answers the request that was received before, until there is a
        reply().
        """
        with self._need() as channel:
            library.h_channel_reply_only(channel)

    def pause(self, paused: bool) -> None:
        """Calls back no more for what arrives, or does so again; see h_channel_pause().

        After a send that raised BlockingIOError on_ready()'s function is still called when
        that can be tried again.
        """
        with self._need() as channel:
            library.h_channel_pause(channel, paused)

    def __iter__(self) -> Iterator[Message]:
        while True:
            message = self.receive()
            if message is None:
                return
            yield message

    # ---- ending ----

    def shutdown(self, timeout: Optional[float] = None) -> None:
        """Sends no more, but goes on receiving; the other end finds the end.

        Raises TimeoutError, or BlockingIOError if timeout is 0, if not everything is known
        to have arrived: to be called again. BrokenPipeError if the other end is gone.
        """
        wait(self._need(), "h_channel_shutdown", library.h_channel_shutdown, timeout)

    def close(self, timeout: Optional[float] = LINGER) -> None:
        """Ends the channel; waits until everything has arrived, and does not raise.

        Who must know whether it has calls shutdown() before. If timeout is 0 the other end
        finds a broken channel, unless all had arrived. Messages that are held stay.
        """
        handle = self._handle
        if handle is None or handle.closed:
            return
        try:
            if timeout is None or timeout > 0:
                self.shutdown(timeout)
        except (OSError, ValueError):
            pass  # or another thread was faster
        finally:
            handle.close()
            if self._device is not None:
                self._device.close()

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(LINGER if kind is None else 0)

    def __del__(self) -> None:
        try:
            self.close(0)
        except Exception:  # pylint: disable=broad-except
            pass


# ---- meeting ----

class Listener(Owner):
    """Where clients find a server: at a path, '@' and an abstract name, or HOST/NAME.

    Accepts for the manager, whose NIC has the name. Closing it removes its path; what was accepted stays.

    tickets: no keys open the streams; clients must want it as well. mode: permission
    bits of the path. waiting: how many can be connecting. patience: how long one may
    take, in seconds. uids: users who may connect; None: who can.
    """

    def __init__(self, manager: Manager, path: str, *, tickets: bool = False, mode: int = 0,
                 waiting: int = 0, patience: float = 0, uids: Optional[Iterable[int]] = None):
        attr = _library.ListenerAttr(flags=_TICKETS if tickets else 0, mode=unsigned(mode, 32),
                                     waiting=unsigned(waiting, 32),
                                     patience_ns=nanoseconds(patience) if patience >= 0 else 1)
        if uids is not None:
            array = _uids(uids)
            attr.uids = array
            attr.uid_count = len(array)
        out = c_void_p()
        with manager._need() as m:
            attr.dev = library.h_manager_dev(m)
            check(library.h_listener_create(_library.text(path), byref(attr), byref(out)),
                  "h_listener_create", 0)
            self._handle = Handle("listener", out.value, library.h_listener_destroy,
                                  manager._need())
        self._manager = manager

    def fileno(self) -> int:
        """A descriptor for event loops, readable when accepting has something to do."""
        with self._need() as listener:
            return library.h_listener_fd(listener)

    def accept(self, timeout: Optional[float] = None, *, max_message: int = 0, buffers: int = 0,
               buffer_size: int = 0, max_buffer_size: int = 0) -> Channel:
        """The next client that wants a channel.

        Raises TimeoutError, or BlockingIOError if timeout is 0; Error if a client could not
        be taken: then the next one may be better.
        """
        attr = _channel_attr(max_message, buffers, buffer_size, max_buffer_size)
        out = c_void_p()
        manager = self._manager
        with manager._need() as m:
            wait(self._need(), "h_channel_accept",
                 lambda listener, ns: library.h_channel_accept(listener, m, byref(attr),
                                                               byref(out), ns), timeout,
                 manager._need().parent)
            return Channel.__new__(Channel)._own(manager, out.value)

    def accept_streams(self, timeout: Optional[float] = None) -> StreamPair:
        """The next client that wants streams, see connect_streams()."""
        pair = _library.CStreamPair()
        manager = self._manager
        with manager._need() as m:
            wait(self._need(), "h_listener_accept",
                 lambda listener, ns: library.h_listener_accept(listener, m, None, byref(pair),
                                                                ns), timeout,
                 manager._need().parent)
            return StreamPair._own(manager, pair)


def connect(manager: Manager, path: str, timeout: Optional[float] = None, *,
            tickets: bool = False, wait_for_server: bool = False,
            uids: Optional[Iterable[int]] = None, max_message: int = 0, buffers: int = 0,
            buffer_size: int = 0, max_buffer_size: int = 0,
            _gave_up: Callable[[], bool] = lambda: False) -> Channel:
    """Connects to a Listener's path; it takes until the server accepts.

    wait_for_server: if nobody listens there yet, wait. uids: users whose server is good
    enough. Raises FileNotFoundError or ConnectionRefusedError if nobody listens there,
    PermissionError if this user may not, and so on: see h_connect().
    """
    attr = _channel_attr(max_message, buffers, buffer_size, max_buffer_size)
    _connect_attr(attr, tickets, wait_for_server, uids)
    out = c_void_p()
    with manager._need() as m:
        _meet(manager, "h_channel_connect",
              lambda ns: library.h_channel_connect(m, _library.text(path), byref(attr), byref(out),
                                                   ns),
              timeout, _gave_up)
        return Channel.__new__(Channel)._own(manager, out.value)


def dial(path: str, timeout: Optional[float] = None, *, device: Optional[str] = None,
         tickets: bool = False, wait_for_server: bool = False,
         uids: Optional[Iterable[int]] = None, max_message: int = 0, buffers: int = 0,
         buffer_size: int = 0, max_buffer_size: int = 0) -> Channel:
    """connect() with a device and a manager of its own, which close() ends as well.

    device: as Device's name. Many channels on one manager take less memory.
    """
    own = Device(device)
    try:
        channel = connect(Manager(own, channels=4), path, timeout, tickets=tickets,
                          wait_for_server=wait_for_server, uids=uids, max_message=max_message,
                          buffers=buffers, buffer_size=buffer_size,
                          max_buffer_size=max_buffer_size)
    except BaseException:
        own.close()
        raise
    channel._device = own
    return channel


def connect_streams(manager: Manager, path: str, timeout: Optional[float] = None, *,
                    tickets: bool = False, wait_for_server: bool = False,
                    uids: Optional[Iterable[int]] = None) -> StreamPair:
    """The same, for a server that has streams: see Listener.accept_streams()."""
    attr = _library.ConnectAttr()
    _connect_attr(attr, tickets, wait_for_server, uids)
    pair = _library.CStreamPair()
    with manager._need() as m:
        _meet(manager, "h_connect",
              lambda ns: library.h_connect(m, _library.text(path), byref(attr), byref(pair), ns),
              timeout)
        return StreamPair._own(manager, pair)


def _meet(manager: Manager, call: str, attempt: Any, timeout: Optional[float],
          gave_up: Callable[[], bool] = lambda: False) -> None:
    """Calls attempt(ns), which each time begins anew, for longer and longer."""
    deadline = None if timeout is None else time.monotonic() + timeout
    part = FIRST_ATTEMPT
    while True:
        left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
        last = left is not None and left <= part
        result = attempt(timeout_ns(0 if timeout == 0 else left if last else part))
        if result == -errno.EINTR and timeout != 0:
            continue
        if result != -errno.ETIMEDOUT or last or gave_up():
            check(result, call, manager._need().made_on.pointer)
            return
        if manager.closed:
            raise ValueError("the manager is closed")
        part = min(2 * part, LONGEST_ATTEMPT)
