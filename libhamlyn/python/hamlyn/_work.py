# SPDX-License-Identifier: MIT
"""A queue of work, one master, and workers that may die."""

from __future__ import annotations

from ctypes import byref, c_uint64, c_void_p
from typing import Any, Callable, Iterable, Iterator, Optional

from . import _library
from ._channel import LINGER, _uids
from ._device import check
from ._handle import Handle, Owner, Single, copy, nanoseconds, timeout_ns, wait
from ._library import unsigned
from ._stream import Record

library = _library.library

_TICKETS = 1
_WAIT = 2

#: Called with the number of an item, and bytes
Told = Callable[[int, bytes], Any]


class WorkQueue(Owner):
    """Hands out items to workers, and again if they die: see <hamlyn/work.h>.

    on_done(number, result) is called once for each item that was done, on_failed(number, data)
    for each that was handed out deliveries times in vain; in the thread that is in add(), run()
    or dispatch(), which raise what they raise. They may add items. patience: for how long a
    worker may have an item, in seconds; 0: for as long as it lives. mode, uids, tickets: as
    Listener's. 0: default.
    """

    def __init__(self, path: str, on_done: Optional[Told] = None,
                 on_failed: Optional[Told] = None, *, device: Optional[str] = None,
                 patience: float = 0, deliveries: int = 0, items: int = 0, most_bytes: int = 0,
                 max_message: int = 0, mode: int = 0, uids: Optional[Iterable[int]] = None,
                 tickets: bool = False, workers: int = 0, of_user: int = 0):
        raised: list[BaseException] = []

        def told(function: Optional[Told]) -> Any:
            # It does not know this object, which the collector would not find in a circle of C.
            def call(number: int, data: Any, length: int, _arg: Any) -> None:
                try:
                    if function is not None:
                        function(number, copy(data, length))
                except BaseException as e:  # pylint: disable=broad-except
                    raised.append(e)
            return _library.WORK(call)

        self._raised = raised
        attr = _library.WorkAttr(
            device=None if device is None else _library.text(device), on_done=told(on_done),
            on_failed=told(on_failed), patience_ns=nanoseconds(patience),
            mode=unsigned(mode, 32), flags=_TICKETS if tickets else 0,
            items=unsigned(items, 32), max_message=unsigned(max_message),
            bytes=unsigned(most_bytes), deliveries=unsigned(deliveries, 32),
            workers=unsigned(workers, 32), workers_of_user=unsigned(of_user, 32))
        if uids is not None:
            array = _uids(uids)
            attr.uids = array
            attr.uid_count = len(array)
        out = c_void_p()
        check(library.h_work_create(_library.text(path), byref(attr), byref(out)),
              "h_work_create", 0)
        #: the functions are there for as long as it is
        keep = attr

        def end(queue: int, ns: int = 0) -> None:
            library.h_work_close(queue, ns)
            keep.on_done  # pylint: disable=pointless-statement

        self._end = end
        self._handle = Handle("work queue", out.value, end)

    def _told(self) -> None:
        if self._raised:
            raise self._raised.pop(0)

    def add(self, data: Any, timeout: Optional[float] = None) -> int:
        """Adds an item, what has the buffer protocol; its number.

        Raises TimeoutError, or BlockingIOError if timeout is 0, while the queue is full.
        """
        number = c_uint64()
        try:
            with _library.Buffer(data) as b:
                wait(self._need(), "h_work_add",
                     lambda queue, ns: library.h_work_add(queue, b.address, b.length,
                                                          byref(number), ns), timeout)
        finally:
            self._told()
        return number.value

    def run(self, timeout: Optional[float] = None) -> None:
        """Hands out items until all are done; raises TimeoutError when the time is over."""
        try:
            wait(self._need(), "h_work_run", library.h_work_run, timeout)
        finally:
            self._told()

    def fileno(self) -> int:
        """A descriptor for event loops, readable when dispatch() has something to do."""
        with self._need() as queue:
            return check(library.h_work_fd(queue), "h_work_fd")

    def dispatch(self) -> None:
        """Sees to workers and items, without waiting."""
        with self._need() as queue:
            check(library.h_work_dispatch(queue), "h_work_dispatch")
        self._told()

    def stats(self) -> dict[str, int]:
        """Counters and state, as in struct h_work_counters."""
        stats = _library.CWorkStats()
        with self._need() as queue:
            check(library.h_work_stats(queue, byref(stats)), "h_work_stats")
        return {name: getattr(stats, name) for name, *_ in stats._fields_ if name != "reserved"}

    def close(self, timeout: Optional[float] = LINGER) -> None:
        """Ends it; waits until the workers know, and does not raise. What is not done is lost."""
        if self._handle is not None:
            ns = timeout_ns(timeout)
            end = self._end
            self._handle.close(lambda queue: end(queue, ns))

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(LINGER if kind is None else 0)

    def __del__(self) -> None:
        try:
            self.close(0)
        except Exception:  # pylint: disable=broad-except
            pass


class _Held(Single):
    """An item that a worker has; inside a use of the worker."""
    __slots__ = ("_handle", "_item")

    def __init__(self, handle: Handle, item: _library.CWorkItem):
        self._handle = handle
        self._item = item

    def __del__(self) -> None:
        handle = self._handle
        if handle.pointer and self._item.message.held:
            library.h_worker_fail(handle.pointer, self._item, 0)
        handle.leave()


class WorkItem(Record):
    """An item: ended by done() or fail(), or given back at the end of its context, or with it."""
    __slots__ = ("number", "delivery")

    def __init__(self, item: _library.CWorkItem, pin: _Held):
        super().__init__(item.data, item.length, pin)
        self.number: int = item.id
        #: how often it was handed out, this time included
        self.delivery: int = item.delivery

    def done(self, result: Any = b"", timeout: Optional[float] = None) -> None:
        """Says that it was done, with what has the buffer protocol. data ends."""
        held = self._check()
        with _library.Buffer(result) as b:
            wait(held._handle, "h_worker_done",
                 lambda worker, ns: library.h_worker_done(worker, held._item, b.address, b.length,
                                                          ns), timeout)
        self.release()

    def fail(self, timeout: Optional[float] = None) -> None:
        """Gives it back, to be done by somebody else. data ends."""
        held = self._check()
        wait(held._handle, "h_worker_fail",
             lambda worker, ns: library.h_worker_fail(worker, held._item, ns), timeout)
        self.release()


class Worker(Owner):
    """Does what a WorkQueue hands out. For one thread.

    at_once: how many items it may have at a time. The rest as dial()'s.
    """

    def __init__(self, path: str, timeout: Optional[float] = None, *, at_once: int = 0,
                 device: Optional[str] = None, tickets: bool = False,
                 wait_for_server: bool = False, uids: Optional[Iterable[int]] = None,
                 max_message: int = 0, buffers: int = 0, buffer_size: int = 0,
                 max_buffer_size: int = 0):
        attr = _library.WorkerAttr(
            device=None if device is None else _library.text(device),
            flags=(_TICKETS if tickets else 0) | (_WAIT if wait_for_server else 0),
            at_once=unsigned(at_once, 32), max_message=unsigned(max_message),
            buffers=unsigned(buffers, 32), buffer_size=unsigned(buffer_size, 32),
            max_buffer_size=unsigned(max_buffer_size, 32))
        if uids is not None:
            array = _uids(uids)
            attr.uids = array
            attr.uid_count = len(array)
        out = c_void_p()
        check(library.h_worker_create(_library.text(path), byref(attr), byref(out),
                                      timeout_ns(timeout)), "h_worker_create", 0)
        self._handle = Handle("worker", out.value, self._leave)

    @staticmethod
    def _leave(worker: int, ns: int = 0) -> None:
        library.h_worker_close(worker, ns)

    def take(self, timeout: Optional[float] = None) -> Optional[WorkItem]:
        """The next item, where it was received; None at the end.

        Raises TimeoutError, or BlockingIOError if timeout is 0; ConnectionResetError if the
        master is gone, or has ended this worker.
        """
        item = _library.CWorkItem()
        handle = self._need()
        handle.enter()
        try:
            if wait(handle, "h_worker_take",
                    lambda worker, ns: library.h_worker_take(worker, item, ns), timeout):
                return None
            handle.hold()
            held = _Held(handle, item)
        finally:
            handle.leave()
        return WorkItem(item, held)

    def fileno(self) -> int:
        """Readable while there may be an item: take(0) until that raises BlockingIOError."""
        with self._need() as worker:
            return check(library.h_worker_fd(worker), "h_worker_fd")

    def __iter__(self) -> Iterator[WorkItem]:
        while True:
            item = self.take()
            if item is None:
                return
            items = [item]
            del item
            yield items.pop()  # which is its owner's alone

    def close(self, timeout: Optional[float] = LINGER) -> None:
        """Leaves; waits until what was done has arrived, and does not raise."""
        if self._handle is not None:
            ns = timeout_ns(timeout)
            self._handle.close(lambda worker: self._leave(worker, ns))

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(LINGER if kind is None else 0)

    def __del__(self) -> None:
        try:
            self.close(0)
        except Exception:  # pylint: disable=broad-except
            pass
