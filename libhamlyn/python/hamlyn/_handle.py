# SPDX-License-Identifier: MIT
"""How long C objects live.

Calls leave the interpreter lock alone, so that other threads run meanwhile, and may
close what a call is using. So each C object counts its uses: that it is open, calls
in progress, objects made on it, memory of it that Python objects show. It is
destroyed by who ends the last one. If the library cannot destroy it yet, it stays, and
so does what it was made on, until close() of one of them tries again.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import time
import weakref
from typing import Any, Callable, Optional, TypeVar

from . import _errors, _library

#: Nobody sleeps longer in C, so that who waits sees that what it waits on was closed.
SLICE = 0.2

_lock = threading.RLock()
_moved = threading.Condition(_lock)
_all: weakref.WeakSet[Handle] = weakref.WeakSet()
#: Those that could not be destroyed: also when Python has forgotten them.
_stay: set[Handle] = set()


O = TypeVar("O", bound="Owner")


class Single:
    """What owns something of C: a copy would close it, or give it back, a second time."""
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        # What copy.copy(), copy.deepcopy() and pickle ask
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled")


class Handle(Single):
    """A C object. Methods may be called from any thread, and by the collector.

    Uses are counted by a list, whose append() and pop() no other thread gets in between
    of: who begins one adds it and then looks whether the object is open; who closes it
    says so first and then looks whether there are uses. One of them sees the other.
    """
    __slots__ = ("name", "pointer", "parent", "called_back", "when_closed", "_destroy", "_keeps",
                 "_children", "_uses", "_open", "_ended", "_failed", "_waits", "_inside", "_busy",
                 "_graves", "__weakref__")

    def __init__(self, name: str, pointer: Optional[int], destroy: Callable[[int], Any],
                 parent: Optional[Handle] = None, keeps: tuple[Handle, ...] = ()):
        """Takes the pointer. The caller is inside a use of parent and all of keeps.

        destroy: a C function, or what returns nothing if it destroys in any case
        """
        self.name = name
        #: what a successful call has set is never NULL, for which ctypes has None
        self.pointer = pointer or 0
        self.parent = parent
        #: who tells the library not to call back for it any more, if that was told to:
        #: not destroyed while it is about to
        self.called_back: Optional[Callable[[int, Any, Any], Any]] = None
        #: weak method to call, before it is destroyed
        self.when_closed: Optional[weakref.WeakMethod[Callable[[], None]]] = None
        self._destroy = destroy
        self._keeps = keeps if parent is None else (parent, *keeps)
        self._children: weakref.WeakSet[Handle] = weakref.WeakSet()
        self._uses: list[None] = []
        self._open = True
        self._ended = False
        #: why it could not be destroyed
        self._failed: Optional[_errors.Error] = None
        #: may destroying it take long?
        self._waits = False
        #: threads that are in h_manager_dispatch(), and not in a call back
        self._inside: set[int] = set()
        #: threads that destroy what was made on it, and who is to be destroyed
        self._busy: list[int] = []
        self._graves: list[Handle] = []
        for keep in self._keeps:
            keep.hold()
        with _lock:
            if parent is not None:
                parent._children.add(self)
            _all.add(self)

    def enter(self) -> int:
        """Begins a use, gives the pointer; ValueError if it is closed."""
        self._uses.append(None)
        if self._open:
            return self.pointer
        self.leave()
        raise ValueError(f"the {self.name} is closed")

    __enter__ = enter

    def hold(self) -> None:
        """Begins a use inside of another one."""
        self._uses.append(None)

    def leave(self) -> None:
        """Ends a use."""
        self._uses.pop()
        if not self._open and not self._uses:
            self._last()

    def __exit__(self, *exc: Any) -> None:
        self._uses.pop()
        if not self._open and not self._uses:
            self._last()

    def _last(self, again: bool = False) -> None:
        """It is closed and was not used a moment ago; again: if that failed before."""
        with _lock:
            due = self._failed is not None if again else not self._ended
            if self._uses or not due:
                return
            self._ended = True
            self._failed = None
            parent = self.parent if self.called_back is not None else None
            if parent is not None and self.called_back is not None:
                self.called_back(self.pointer, None, None)
                inside = set(parent._inside)
                if inside:
                    parent._graves.append(self)
                else:
                    parent._busy.append(threading.get_ident())
        if parent is None:
            self._end()
        elif not inside:
            parent._bury([self])
        elif threading.get_ident() not in inside:
            self._see_it_end()

    def _see_it_end(self) -> None:
        """Waits a while for who is inside, so as not to be faster than those who destroy."""
        # No longer, and without a lock: the collector may have called us anywhere.
        end = time.monotonic() + SLICE
        while self.pointer and time.monotonic() < end:
            time.sleep(0.0002)

    def _end(self) -> None:
        result: list[Any] = []
        try:
            # All of it in C: what Ctrl-C raises comes when the result is there.
            result.extend(map(self._destroy, (self.pointer,)))
        finally:
            if result and result[0]:
                # Nothing that it needs may go, or the library's threads would be without.
                _stay.add(self)
                self._failed = self._failure(result[0])
            else:
                self.pointer = 0
                _stay.discard(self)
                keeps, self._keeps = self._keeps, ()
                for keep in keeps:
                    keep.leave()

    def _failure(self, result: int) -> _errors.Error:
        device = self
        while device.parent is not None:
            device = device.parent
        return _errors.failure(result, getattr(self._destroy, "__name__", ""), device.pointer)

    @property
    def made_on(self) -> Handle:
        """Its parent; all but devices have one."""
        assert self.parent is not None
        return self.parent

    @property
    def closed(self) -> bool:
        """Was it closed?"""
        return not self._open

    def close(self, last: Optional[Callable[[int], Any]] = None) -> bool:
        """Destroys it when it is not used any more, and closes what was made on it.

        last: how to destroy it, in place of what was said when it was made
        False if it was closed before: then last is not called, but what could not be
        destroyed is tried again. Raises why it, or what was made on it, cannot be.
        """
        with _lock:
            first = self._open
            if first:
                if last is not None:
                    self._destroy = last
                    self._waits = True
                self._uses.append(None)
                self._open = False
            children = list(self._children)
        failures = []
        for child in children:
            try:
                child.close()
            except _errors.Error as e:
                failures.append(e)
        if first:
            call = self.when_closed() if self.when_closed is not None else None
            if call is not None:
                call()
            self.leave()
        else:
            self._last(again=True)
        # A new one each time: what has been raised keeps what it passed through.
        failed = failures[0] if failures else self._failed
        if failed is not None:
            raise type(failed)(failed.errno, failed.call, failed.explanation)
        return first

    # The library looks at an end point on its way to a call back: none that has one is
    # destroyed while a thread is in h_manager_dispatch(). But who is in a call back of ours,
    # where it may stay for long, is as good as outside; and while one is to be destroyed
    # no thread goes in, or there might always be one, of many, that is inside.

    def go_in(self) -> None:
        """Before h_manager_dispatch(), and at the end of each call back."""
        me = threading.get_ident()
        while True:
            with _lock:
                # In this order: the collector may run in between, and destroy something.
                self._inside.add(me)
                if not self._graves and not self._others_are_busy(me):
                    return
            self.go_out()
            with _lock:
                if (self._inside and self._graves) or self._others_are_busy(me):
                    _moved.wait(SLICE)

    def go_out(self) -> None:
        """The opposite. Who is the last one destroys who is to be."""
        me = threading.get_ident()
        with _lock:
            self._inside.discard(me)
            if self._inside or not self._graves:
                return
            self._busy.append(me)
            graves, self._graves = self._graves, []
        self._bury(graves)

    def _others_are_busy(self, me: int) -> bool:
        return bool(self._busy) and any(thread != me for thread in self._busy)

    def _bury(self, graves: list[Handle]) -> None:
        """Destroys them; this thread is busy, and nobody inside."""
        try:
            for grave in graves:
                if not grave._waits:
                    grave._end()
        finally:
            with _lock:
                self._busy.remove(threading.get_ident())
                _moved.notify_all()
        # These wait for who may need to be called back. They are not any more themselves.
        for grave in graves:
            if grave._waits:
                grave._end()

    def forget(self) -> None:
        """In a child process: there is nothing at the pointer, and no other thread."""
        self._open = False
        self._ended = True
        self._failed = None
        self._inside, self._busy, self._graves = set(), [], []
        self.pointer = 0


def _after_fork() -> None:
    global _lock, _moved
    _lock = threading.RLock()
    _moved = threading.Condition(_lock)
    for handle in list(_all):
        handle.forget()
    _stay.clear()


os.register_at_fork(after_in_child=_after_fork)


class Owner(Single):
    """An object that has a handle: closed by close(), by a context, or when it is gone."""

    _handle: Optional[Handle] = None

    def close(self) -> None:
        """Closes it, and everything made on it; nothing happens the second time.

        Raises Error, TimeoutError as a rule, if something cannot be destroyed yet: another
        process was stopped in the middle of sending there. That, and what it was made on,
        cannot be used any more but stays; close() of either, when called again, tries again.
        Calls of other threads that wait for it end with ValueError within 0.2 s;
        connect() and connect_streams() within 5 s. Only the sending of a message of more
        than 128 bytes on a channel goes on, and the channel is there until it ends.
        """
        if self._handle is not None:
            self._handle.close()

    @property
    def closed(self) -> bool:
        """Was it closed?"""
        return self._handle is None or self._handle.closed

    def _need(self) -> Handle:
        if self._handle is None:
            raise ValueError("not open")
        return self._handle

    def __enter__(self: O) -> O:
        if self.closed:
            raise ValueError("closed")
        return self

    def __exit__(self, kind: Any, *exc: Any) -> None:
        try:
            self.close()
        except _errors.Error:
            if kind is None:
                raise  # else it would hide that one: Ctrl-C, say, which may be why it stays

    def __del__(self) -> None:
        try:
            if not self.closed:
                self.close()
        except Exception:  # pylint: disable=broad-except
            pass  # it stays, or the interpreter is being taken down

    def __repr__(self) -> str:
        return f"<hamlyn.{type(self).__name__}{' closed' if self.closed else ''}>"


# ---- memory ----

class Pin(Single):
    """Keeps a piece of memory until nothing that shows it is left."""
    __slots__ = ("_end", "_handle")

    def __init__(self, end: Callable[[], None], handle: Optional[Handle] = None):
        self._end = end
        #: inside a use of this
        self._handle = handle

    def __del__(self) -> None:
        self._end()


# Types of arrays are kept for ever by ctypes: not one for each length.
_arrays = [ctypes.c_ubyte * (1 << bits) for bits in range(48)]


def view(address: int, length: int, pin: Any) -> memoryview:
    """Memory at an address. It, and each part of it, keeps the pin."""
    if not length:
        return memoryview(b"")
    array = _arrays[(length - 1).bit_length()].from_address(address)
    array.pin = pin  # type: ignore[attr-defined]
    return memoryview(array).cast("B")[:length]


def copy(address: int, length: int) -> bytes:
    """The bytes at an address."""
    if length < 1 << 30:
        return ctypes.string_at(address, length) if length else b""
    return bytes(view(address, length, None))  # string_at() takes an int


# ---- waiting ----

#: Longer than anything runs
MOST_SECONDS = 4e9

#: .handles: what this thread waits for; it runs handlers of signals meanwhile
_within = threading.local()


def is_waiting(handle: Handle) -> bool:
    """Does this thread wait for it, and was interrupted by a signal?"""
    return handle in getattr(_within, "handles", ())


def nanoseconds(seconds: float) -> int:
    """Nanoseconds, which the library can add to any time."""
    # Compared before: there is no integer for float("inf").
    return int(min(seconds, MOST_SECONDS) * 1e9)


def timeout_ns(timeout: Optional[float]) -> int:
    """The library's time-out for one of Python's: seconds, or None for ever."""
    if timeout is None:
        return _library.FOREVER
    if timeout <= 0:
        return _library.NOWAIT
    return max(1, nanoseconds(timeout))


#: What wait() returns at the end of a stream or channel, where the library has -ENODATA.
END = -1


def wait(handle: Handle, call: str, function: Callable[[int, int], int],
         timeout: Optional[float], device: Optional[Handle] = None) -> int:
    """Calls function(pointer, ns) until it does not return -ETIMEDOUT or -EINTR.

    END at the end of a stream or channel. Raises TimeoutError when the time is over,
    BlockingIOError if it was 0.
    """
    handles = _within.__dict__.setdefault("handles", [])
    handles.append(handle)
    try:
        return _wait(handle, call, function, timeout, device)
    finally:
        handles.remove(handle)


def _wait(handle: Handle, call: str, function: Callable[[int, int], int],
          timeout: Optional[float], device: Optional[Handle]) -> int:
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if deadline is None else deadline - time.monotonic()
        part = SLICE if left is None or left > SLICE else left
        with handle as pointer:
            result = function(pointer, _library.NOWAIT if timeout == 0 else
                              timeout_ns(max(part, 1e-6)))
        if result == -errno.EINTR and timeout != 0:
            continue  # the signal's handler has been run, and did not raise anything
        if result == -errno.ETIMEDOUT and (left is None or left > SLICE):
            continue
        if result == -errno.ENODATA:
            return END
        if result < 0:
            raise _errors.failure(result, call, device.pointer if device else None)
        return result
