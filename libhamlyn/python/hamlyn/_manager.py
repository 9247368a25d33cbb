# SPDX-License-Identifier: MIT
"""Managers, and what end points have in common: readiness, for call backs and asyncio."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import threading
import weakref
from ctypes import byref, c_void_p
from typing import Any, Callable, Optional

from . import _library
from ._device import Device, check
from ._handle import Handle, Owner, Pin, timeout_ns, view, wait
from ._library import unsigned

library = _library.library

# ---- call backs of the library ----

_tokens = itertools.count(1)
#: End points by the number that the library gives back.
_endpoints: weakref.WeakValueDictionary[int, Endpoint] = weakref.WeakValueDictionary()


#: How often one who waits in an event loop is woken in vain before it looks less often: more
#: than there are parts of a long message, or others' replies, in most cases
_VAIN = 300


class _Dispatching(threading.local):
    """The innermost Manager.dispatch() of this thread."""
    handle: Optional[Handle] = None
    errors: list[BaseException] = []


_dispatching = _Dispatching()


@_library.READY
def _ready(_pointer: Any, token: Any) -> None:
    # Nothing is raised through C: Manager.dispatch() does it.
    handle, errors = _dispatching.handle, _dispatching.errors
    if handle is None:
        return  # nobody else calls h_manager_dispatch()
    try:
        handle.go_out()
        _call(token)
    except BaseException as e:  # pylint: disable=broad-except
        errors.append(e)
    while True:
        try:
            return handle.go_in()
        except BaseException as e:  # pylint: disable=broad-except
            errors.append(e)  # of a signal's handler: it is not inside yet


def _call(token: int) -> None:
    endpoint = _endpoints.get(token)
    if endpoint is not None:
        endpoint._is_ready()


_READY_ADDRESS = ctypes.cast(_ready, c_void_p).value


#: How long a Manager polls if nothing is said, in seconds
SPIN = 0.00002


class Manager(Owner):
    """What end points are made on (H 3.3): who receives on one of them polls for all.

    single: it and its end points are for one thread, which saves locks, and which has to
    close them: what is only dropped is destroyed by whichever thread drops it, or runs the
    collector. aio.connect() needs a thread of its own and refuses it.
    spin: how long a call polls before it sleeps, in seconds; None: for ever; the default is
    less while it is in vain
    channels: how many channels it is for, 0: as HAMLYN_CHANNELS says, or 170
    budget: bytes by which buffers of its end points may grow, 0: the default
    """

    def __init__(self, device: Device, *, single: bool = False, nq_entries: int = 0,
                 spin: Optional[float] = SPIN, channels: int = 0, budget: int = 0):
        attr = _library.ManagerAttr(nq_entries=unsigned(nq_entries, 32),
                                    flags=1 if single else 0,
                                    spin_ns=0 if spin == SPIN else timeout_ns(spin) or 1,
                                    channels=unsigned(channels, 32),
                                    budget=unsigned(budget, 64))
        out = c_void_p()
        with device._need() as dev:
            check(library.h_manager_create(dev, byref(attr), byref(out)), "h_manager_create",
                  dev)
            self._handle = Handle("manager", out.value, library.h_manager_destroy,
                                  device._need())
        self._single = single
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._loop_fd = -1
        self._loop_thread = 0
        self._awaited: set[Endpoint] = set()
        self._handle.when_closed = weakref.WeakMethod(self._detach)

    @property
    def single(self) -> bool:
        """Is it for one thread?"""
        return self._single

    def poll(self) -> int:
        """Looks for arrivals and gives them to their end points; how many there were."""
        with self._need() as manager:
            return library.h_manager_poll(manager)

    def drain(self, timeout: Optional[float] = None) -> None:
        """Waits until everything that a call said was sent is in the receivers' memory.

        Raises TimeoutError when the time is over, BlockingIOError if it was 0: what is
        left stays to be sent.
        """
        handle = self._need()
        wait(handle, "h_manager_drain", library.h_manager_drain, timeout)

    def fileno(self) -> int:
        """A descriptor for event loops, readable while dispatch() has something to do."""
        with self._need() as manager:
            return check(library.h_manager_fd(manager), "h_manager_fd")

    def stats(self) -> dict[str, int]:
        """Counters and state, as in struct h_manager_counters: arrivals, memory and others."""
        stats = _library.CManagerStats()
        with self._need() as manager:
            check(library.h_manager_stats(manager, byref(stats)),
                  "h_manager_stats")
        return {name: getattr(stats, name) for name, *_ in stats._fields_}

    def dispatch(self) -> int:
        """Calls back for each end point that has something; how many there were.

        Raises what one of them raised, after all were called.
        """
        handle = self._need()
        errors: list[BaseException] = []
        outer = _dispatching.handle, _dispatching.errors
        try:
            with handle as manager:
                _dispatching.handle, _dispatching.errors = handle, errors
                try:
                    handle.go_in()
                    n = library.h_manager_dispatch(manager)
                finally:
                    handle.go_out()
        finally:
            _dispatching.handle, _dispatching.errors = outer
        if errors:
            raise errors[0]
        return n

    def wait(self, timeout: Optional[float] = None) -> None:
        """Sleeps until dispatch() has something to do, or kick(); raises TimeoutError."""
        wait(self._need(), "h_manager_wait", library.h_manager_wait, timeout)

    def kick(self) -> None:
        """Ends a wait(), or the next one; from any thread."""
        with self._need() as manager:
            library.h_manager_kick(manager)

    def allocate(self, length: int) -> memoryview:
        """Memory that long messages can be sent from without copying; not zeroed.

        It is the manager's again when neither it nor a part of it is kept.
        """
        handle = self._need()
        manager = handle.enter()
        out = c_void_p()
        try:
            check(library.h_manager_alloc(manager, unsigned(length), byref(out)),
                  "h_manager_alloc")
        except BaseException:
            handle.leave()
            raise

        def free() -> None:
            if handle.pointer:
                library.h_manager_free(handle.pointer, out)
            handle.leave()

        return view(out.value or 0, length, Pin(free))

    # ---- asyncio ----

    def _attach(self) -> asyncio.AbstractEventLoop:
        """Has the running loop call dispatch()."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return loop
        if self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("the manager is used by another event loop")
        self._need()
        self._loop_fd = self.fileno()
        me = weakref.ref(self)
        self._awaited = set()

        # The loop holds who is waited for, and they the manager: nobody else might hold
        # tasks that wait, and the collector take them for garbage.
        def dispatch(_awaited: set[Endpoint] = self._awaited) -> None:
            manager = me()
            if manager is not None and not manager.closed:
                manager.dispatch()

        loop.add_reader(self._loop_fd, dispatch)
        self._loop = loop
        self._loop_thread = threading.get_ident()
        return loop

    def _detach(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._loop_fd)

    def __del__(self) -> None:
        try:
            if not self.closed:
                self._detach()  # the collector has cleared when_closed
        except Exception:  # pylint: disable=broad-except
            pass
        super().__del__()


class Turns:
    """Lets the event loop run now and then, for who always finds something to do."""
    __slots__ = ("_turns",)

    #: Attempts between two turns of the event loop
    EACH = 16

    def __init__(self) -> None:
        self._turns = 0

    async def take(self) -> None:
        """To be awaited before each attempt: who is cancelled in it has not made that."""
        self._turns += 1
        if self._turns % self.EACH == 0:
            await asyncio.sleep(0)


class Endpoint(Owner):
    """What can be waited for: on_ready() calls back, await sleeps in an event loop."""

    #: how the library is told
    _on_ready_call: Any = None

    def _begin(self, manager: Manager) -> None:
        self._manager = manager
        self._token = next(_tokens)
        self._ready_call: Optional[Callable[[], Any]] = None
        #: and whether it is to be sent again
        self._waiting: dict[asyncio.Future[bool], bool] = {}
        self._told = False
        self._turns = Turns()
        self._ready_lock = threading.RLock()
        _endpoints[self._token] = self
        self._need().when_closed = weakref.WeakMethod(self._wake_all)

    def _renew_locks(self) -> None:
        """In a child process: those who held them are not there."""
        self._ready_lock = threading.RLock()

    @property
    def manager(self) -> Manager:
        """The manager it was made on."""
        return self._manager

    def on_ready(self, call: Optional[Callable[[], Any]]) -> None:
        """Has Manager.dispatch() call a function while there is something; None: none.

        "Something" is something to be received, or an end, or an error; or that a send
        that raised BlockingIOError could be tried again.
        """
        with self._ready_lock:
            self._ready_call = call
            self._tell()

    def _tell(self) -> None:
        """Tells the library whether somebody wants to know."""
        want = self._ready_call is not None or bool(self._waiting)
        if want == self._told:
            return
        with self._need() as pointer:
            self._need().called_back = self._on_ready_call
            self._on_ready_call(pointer, _READY_ADDRESS if want else None, self._token)
        self._told = want

    def _tell_if_open(self) -> None:
        try:
            self._tell()
        except ValueError:
            pass

    def _take_waiting(self) -> dict[asyncio.Future[bool], bool]:
        """With _ready_lock held."""
        waiting, self._waiting = self._waiting, {}
        self._manager._awaited.discard(self)
        return waiting

    def _is_ready(self) -> None:
        with self._ready_lock:
            waiting = self._take_waiting()
            call = self._ready_call
            if call is None:
                self._tell_if_open()
        self._wake(waiting)
        if call is not None and not self.closed:
            call()

    async def _until_ready(self, sending: bool = False) -> bool:
        """Sleeps until it is worth while to try again; False if only senders slept."""
        future = self._manager._attach().create_future()
        with self._ready_lock, self._need():
            self._waiting[future] = sending
            self._manager._awaited.add(self)
            self._tell_if_open()
        try:
            return await future
        finally:
            with self._ready_lock:
                self._waiting.pop(future, None)
                if not self._waiting:
                    self._manager._awaited.discard(self)
                self._tell_if_open()

    def _wake_all(self) -> None:
        """It was closed: who waits finds out."""
        with self._ready_lock:
            waiting = self._take_waiting()
        self._wake(waiting)

    def _wake(self, waiting: dict[asyncio.Future[bool], bool]) -> None:
        here = threading.get_ident() == self._manager._loop_thread if waiting else False
        received = not all(waiting.values())
        for future in waiting:
            loop = future.get_loop()
            if here:
                _wake(future, received)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future, received)

    async def _again(self, attempt: Callable[[], Any], sending: bool = False) -> Any:
        """Calls attempt until it does not raise BlockingIOError.

        What wakes may be something else, to be received by others: for one who sends,
        for one who waits for a reply, and for one who receives a reply that nobody has
        taken yet. If nobody takes it, it would wake again at once, for ever: looks less
        and less often. sending: already after the first time, if only senders waited.
        """
        delay = 0.0005
        vain = 0
        for_us = True
        # Else one who is never kept waiting keeps everybody else from the event loop.
        await self._turns.take()
        while True:
            try:
                return attempt()
            except BlockingIOError:
                pass
            if not for_us:
                await asyncio.sleep(delay)
                delay = min(2 * delay, 0.005)
                for_us = True
            else:
                for_us = await self._until_ready(sending) or not sending
                for_us = for_us and vain < _VAIN
                vain += 1


def _after_fork() -> None:
    for endpoint in list(_endpoints.values()):
        endpoint._renew_locks()


os.register_at_fork(after_in_child=_after_fork)


def _wake(future: asyncio.Future[bool], received: bool) -> None:
    if not future.done():
        future.set_result(received)
