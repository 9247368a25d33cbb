# SPDX-License-Identifier: MIT
"""Managers, and what end points have in common: readiness, for call backs and asyncio."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import threading
import weakref
from ctypes import byref, c_void_p
from typing import Any, Callable, Optional

from . import _library
from ._device import Device, check
from ._handle import Handle, Owner, Pin, view, wait

library = _library.library

# ---- call backs of the library ----

_tokens = itertools.count(1)
#: End points by the number that the library gives back.
_endpoints: weakref.WeakValueDictionary[int, Endpoint] = weakref.WeakValueDictionary()
_raised = threading.local()


@_library.READY
def _ready(_pointer, token):
    endpoint = _endpoints.get(token)
    if endpoint is None:
        return
    try:
        endpoint._is_ready()
    except BaseException as e:  # pylint: disable=broad-except
        # Not through C: Manager.dispatch() raises it.
        getattr(_raised, "errors", []).append(e)


_READY_ADDRESS = ctypes.cast(_ready, c_void_p).value


class Manager(Owner):
    """What end points are made on (H 3.3): who receives on one of them polls for all.

    single: one thread at a time uses it and its end points, which saves locks.
    spin: how long a call polls before it sleeps, in seconds; None: for ever
    """

    def __init__(self, device: Device, *, single: bool = False, nq_entries: int = 0,
                 spin: Optional[float] = 0.00002):
        attr = _library.ManagerAttr(nq_entries=nq_entries, flags=1 if single else 0,
                                    spin_ns=-1 if spin is None else max(int(spin * 1e9), 1))
        out = c_void_p()
        with device._need() as dev:
            check(library.h_manager_create(dev, byref(attr), byref(out)), "h_manager_create",
                  dev)
            self._handle = Handle("manager", out.value, library.h_manager_destroy,
                                  device._need())
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._loop_fd = -1
        self._loop_thread = 0
        self._handle.when_closed = weakref.WeakMethod(self._detach)

    def poll(self) -> int:
        """Looks for arrivals and gives them to their end points; how many there were."""
        with self._need() as manager:
            return library.h_manager_poll(manager)

    def fileno(self) -> int:
        """A descriptor for event loops, readable while dispatch() has something to do."""
        with self._need() as manager:
            return check(library.h_manager_fd(manager), "h_manager_fd")

    def dispatch(self) -> int:
        """Calls back for each end point that has something; how many there were.

        Raises what one of them raised, after all were called.
        """
        outer = getattr(_raised, "errors", None)
        _raised.errors = errors = []
        handle = self._need()
        try:
            with handle as manager:
                handle.freeze()
                try:
                    n = library.h_manager_dispatch(manager)
                finally:
                    handle.thaw()
        finally:
            _raised.errors = outer if outer is not None else []
        if errors:
            raise errors[0]
        return n

    def wait(self, timeout: Optional[float] = None) -> None:
        """Sleeps until dispatch() has something to do; raises TimeoutError."""
        wait(self._need(), "h_manager_wait", library.h_manager_wait, timeout)

    def allocate(self, length: int) -> memoryview:
        """Memory that long messages can be sent from without copying; not zeroed.

        It is the manager's again when neither it nor a part of it is kept.
        """
        handle = self._need()
        manager = handle.enter()
        out = c_void_p()
        try:
            check(library.h_manager_alloc(manager, length, byref(out)), "h_manager_alloc")
        except BaseException:
            handle.leave()
            raise

        def free() -> None:
            if handle.pointer:
                library.h_manager_free(handle.pointer, out)
            handle.leave()

        return view(out.value, length, Pin(free))

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

        def dispatch() -> None:
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


class Endpoint(Owner):
    """What can be waited for: on_ready() calls back, await sleeps in an event loop."""

    #: how the library is told
    _on_ready_call: Any = None

    def _begin(self, manager: Manager) -> None:
        self._manager = manager
        self._token = next(_tokens)
        self._ready_call: Optional[Callable[[], Any]] = None
        self._waiting: set[asyncio.Future] = set()
        self._told = False
        self._ready_lock = threading.RLock()
        _endpoints[self._token] = self
        self._need().when_closed = weakref.WeakMethod(self._wake_all)

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
            self._need().called_back = True
            self._on_ready_call(pointer, _READY_ADDRESS if want else None, self._token)
        self._told = want

    def _is_ready(self) -> None:
        with self._ready_lock:
            waiting, self._waiting = self._waiting, set()
            call = self._ready_call
            if call is None and not self.closed:
                self._tell()
        self._wake(waiting)
        if call is not None:
            call()

    async def _until_ready(self) -> None:
        """Sleeps until it is worth while to try again."""
        future = self._manager._attach().create_future()
        with self._ready_lock:
            self._waiting.add(future)
            self._tell()
        try:
            await future
        finally:
            with self._ready_lock:
                self._waiting.discard(future)
                if not self.closed:
                    self._tell()

    def _wake_all(self) -> None:
        """It was closed: who waits finds out."""
        waiting, self._waiting = self._waiting, set()
        self._wake(waiting)

    def _wake(self, waiting: set[asyncio.Future]) -> None:
        here = threading.get_ident() == self._manager._loop_thread if waiting else False
        for future in waiting:
            loop = future.get_loop()
            if here:
                _wake(future)
            elif not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    async def _again(self, attempt: Callable[[], Any]) -> Any:
        """Calls attempt until it does not raise BlockingIOError."""
        while True:
            try:
                return attempt()
            except BlockingIOError:
                pass
            await self._until_ready()


def _wake(future: asyncio.Future) -> None:
    if not future.done():
        future.set_result(None)
