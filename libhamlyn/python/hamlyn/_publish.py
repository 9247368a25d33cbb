# SPDX-License-Identifier: MIT
"""One publishes, many subscribe."""

from __future__ import annotations

import enum
import errno
from ctypes import byref, c_void_p
from typing import Any, Iterable, Iterator, Optional

from . import _library
from ._channel import LINGER, Loan, _Lent, _uids
from ._device import check
from ._handle import Handle, Owner, Single, nanoseconds, timeout_ns, wait
from ._library import unsigned
from ._stream import Record

library = _library.library

_TICKETS = 1
_WAIT = 2


class Policy(enum.IntEnum):
    """What is done with messages for which a subscriber has no room."""
    DROP_OLDEST = 0
    DROP_NEWEST = 1
    WAIT = 2


class Publisher(Owner):
    """Publishes messages to any number of subscribers: see <hamlyn/publish.h>. For any thread.

    patience: for how long a subscriber of Policy.WAIT may keep a message from being published,
    in seconds; None: for ever; 0: those that ask for it are turned away. history: how many
    messages are kept. subscribers: how many there can be; of_user: of one user. mode, uids,
    tickets: as Listener's. 0: default.
    """

    def __init__(self, path: str, *, device: Optional[str] = None, patience: Optional[float] = 0,
                 history: int = 0, max_message: int = 0, mode: int = 0,
                 uids: Optional[Iterable[int]] = None, tickets: bool = False,
                 subscribers: int = 0, of_user: int = 0):
        attr = _library.PublisherAttr(
            device=None if device is None else _library.text(device),
            patience_ns=-1 if patience is None else nanoseconds(max(patience, 0)),
            mode=unsigned(mode, 32), flags=_TICKETS if tickets else 0,
            history=unsigned(history, 32), max_message=unsigned(max_message),
            subscribers=unsigned(subscribers, 32), subscribers_of_user=unsigned(of_user, 32))
        if uids is not None:
            array = _uids(uids)
            attr.uids = array
            attr.uid_count = len(array)
        out = c_void_p()
        check(library.h_publisher_create(_library.text(path), byref(attr), byref(out)),
              "h_publisher_create", 0)
        self._handle = Handle("publisher", out.value,
                              lambda publisher: library.h_publisher_close(publisher, 0) and None)

    def send(self, data: Any, timeout: Optional[float] = None) -> None:
        """Publishes a message, to all or to none: what has the buffer protocol.

        Raises TimeoutError, or BlockingIOError if timeout is 0, if a subscriber of Policy.WAIT
        is in the way: then nobody got it.
        """
        with _library.Buffer(data) as b:
            wait(self._need(), "h_publisher_send",
                 lambda publisher, ns: library.h_publisher_send(publisher, b.address, b.length, ns),
                 timeout)

    def reserve(self, length: int) -> Loan:
        """Memory to build a message in, which is published from there by commit()."""
        loan = _library.CLoan()
        handle = self._need()
        with handle as publisher:
            check(library.h_publisher_reserve(publisher, unsigned(length), byref(loan)),
                  "h_publisher_reserve")
            return Loan(_Lent(handle, loan, library.h_publisher_commit,
                              library.h_publisher_abandon))

    def run(self, seconds: float) -> None:
        """In place of sleeping: new subscribers are let in, and kept messages sent."""
        with self._need() as publisher:
            result = library.h_publisher_run(publisher, timeout_ns(seconds))
        if result not in (-errno.EAGAIN, -errno.ETIMEDOUT, -errno.EINTR):
            check(result, "h_publisher_run")

    def fileno(self) -> int:
        """A descriptor for event loops, readable when dispatch() has something to do."""
        with self._need() as publisher:
            return check(library.h_publisher_fd(publisher), "h_publisher_fd")

    def dispatch(self) -> None:
        """Sees to the subscribers, without waiting."""
        with self._need() as publisher:
            check(library.h_publisher_dispatch(publisher), "h_publisher_dispatch")

    def stats(self) -> dict[str, int]:
        """Counters and state, as in struct h_publisher_counters."""
        stats = _library.CPublisherStats()
        with self._need() as publisher:
            check(library.h_publisher_stats(publisher, byref(stats)), "h_publisher_stats")
        return {name: getattr(stats, name) for name, *_ in stats._fields_}

    def close(self, timeout: Optional[float] = LINGER) -> None:
        """Ends it; waits until all subscribers have everything, and does not raise.

        Those at which something has not arrived find a broken channel. While a loan is out it
        stays, and ends with that.
        """
        if self._handle is not None:
            ns = timeout_ns(timeout)
            self._handle.close(lambda publisher: library.h_publisher_close(publisher, ns) and None)

    def __exit__(self, kind: Any, *exc: Any) -> None:
        self.close(LINGER if kind is None else 0)

    def __del__(self) -> None:
        try:
            self.close(0)
        except Exception:  # pylint: disable=broad-except
            pass


class _Held(Single):
    """A publication that is held; inside a use of its subscriber."""
    __slots__ = ("_handle", "_publication")

    def __init__(self, handle: Handle, publication: _library.CPublication):
        self._handle = handle
        self._publication = publication

    def __del__(self) -> None:
        handle = self._handle
        if handle.pointer:
            library.h_subscriber_release(handle.pointer, self._publication)
        handle.leave()


class Publication(Record):
    """A message that was published: as Message."""
    __slots__ = ("number", "lost")

    def __init__(self, publication: _library.CPublication, pin: _Held):
        super().__init__(publication.data, publication.length, pin)
        #: of the message, of all that were published: from 1 on
        self.number: int = publication.number
        #: how many were lost just before this one
        self.lost: int = publication.lost


class Subscriber(Owner):
    """Receives what a Publisher publishes. One thread at a time receives.

    history: how many of the last messages that were published before are wanted. The rest as
    dial()'s. Raises PermissionError if it is turned away, Error (EOPNOTSUPP) if the publisher
    waits for nobody.
    """

    def __init__(self, path: str, timeout: Optional[float] = None, *,
                 policy: Policy = Policy.DROP_OLDEST, history: int = 0,
                 device: Optional[str] = None, tickets: bool = False,
                 wait_for_server: bool = False, uids: Optional[Iterable[int]] = None,
                 max_message: int = 0, buffers: int = 0, buffer_size: int = 0,
                 max_buffer_size: int = 0):
        attr = _library.SubscriberAttr(
            device=None if device is None else _library.text(device), policy=int(policy),
            flags=(_TICKETS if tickets else 0) | (_WAIT if wait_for_server else 0),
            history=unsigned(history, 32), max_message=unsigned(max_message),
            buffers=unsigned(buffers, 32), buffer_size=unsigned(buffer_size, 32),
            max_buffer_size=unsigned(max_buffer_size, 32))
        if uids is not None:
            array = _uids(uids)
            attr.uids = array
            attr.uid_count = len(array)
        out = c_void_p()
        check(library.h_subscriber_create(_library.text(path), byref(attr), byref(out),
                                          timeout_ns(timeout)), "h_subscriber_create", 0)
        self._handle = Handle("subscriber", out.value, library.h_subscriber_close)

    def receive(self, timeout: Optional[float] = None) -> Optional[Publication]:
        """The next message, where it is; None at the end.

        Raises TimeoutError, or BlockingIOError if timeout is 0; ConnectionResetError if the
        publisher is gone without having ended, or has given this subscriber up.
        """
        publication = _library.CPublication()
        handle = self._need()
        handle.enter()
        try:
            if wait(handle, "h_subscriber_receive",
                    lambda subscriber, ns: library.h_subscriber_receive(subscriber, publication,
                                                                        ns), timeout):
                return None
            handle.hold()
            held = _Held(handle, publication)
        finally:
            handle.leave()
        return Publication(publication, held)

    def fileno(self) -> int:
        """Readable while there may be something: receive(0) until that raises BlockingIOError."""
        with self._need() as subscriber:
            return check(library.h_subscriber_fd(subscriber), "h_subscriber_fd")

    def __iter__(self) -> Iterator[Publication]:
        while True:
            publication = self.receive()
            if publication is None:
                return
            yield publication
