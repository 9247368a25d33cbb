# SPDX-License-Identifier: MIT
"""Datagrams and tagged remote writes (H 3.3)."""

from __future__ import annotations

import errno
import time
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional

from . import _errors, _library
from ._device import check
from ._handle import Handle, Pin, view, wait
from ._library import unsigned
from ._manager import Endpoint, Manager
from ._stream import Record, _exactly

library = _library.library


def c_seed(seed: Any) -> _library.CSeed:
    """The structure of a seed in bytes."""
    return _library.CSeed.from_buffer_copy(_exactly(seed, _library.SEED_BYTES))


class DatagramAddress:
    """Where to send datagrams: a value, made from a DatagramReceiver's seed."""
    __slots__ = ("_address",)

    def __init__(self, seed: Any):
        self._address = _library.CDatagramAddress()
        check(library.h_datagram_resolve(c_seed(seed), self._address), "h_datagram_resolve")

    @classmethod
    def _of(cls, address: _library.CDatagramAddress) -> DatagramAddress:
        self = cls.__new__(cls)
        self._address = _library.CDatagramAddress.from_buffer_copy(address)
        return self

    def send(self, manager: Manager, data: Any, offset: int = 0, *,
             reply: Optional[DatagramAddress] = None, timeout: Optional[float] = None) -> None:
        """Sends a datagram to an offset in the receiver's buffer; reply: where an answer is to go.

        It does not tell whether the receiver was ready: if not, the datagram is lost.
        """
        with _library.Buffer(data) as b:
            wait(manager._need(), "h_datagram_send",
                 lambda m, ns: library.h_datagram_send(
                     m, self._address, unsigned(offset), b.address, b.length,
                     reply._address if reply is not None else None, ns), timeout)


class Datagram(Record):
    """A datagram, where it was received; the receiver is ready again when it is released."""
    __slots__ = ("offset", "reply")

    def __init__(self, datagram: _library.CDatagram, pin: Any):
        super().__init__(datagram.data, datagram.length, pin)
        #: where in the buffer it is
        self.offset: int = datagram.offset
        #: where the sender wants an answer, or None
        self.reply = DatagramAddress._of(datagram.reply) if datagram.has_reply else None


class DatagramReceiver(Endpoint):
    """Receives datagrams, one at a time, into a buffer of so many bytes (0: default)."""
    _on_ready_call = library.h_datagram_receiver_on_ready

    def __init__(self, manager: Manager, length: int = 0):
        attr = _library.DatagramAttr(length=unsigned(length))
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_datagram_receiver_create(pointer, attr, out),
                  "h_datagram_receiver_create", handle.made_on.pointer)
            self._handle = Handle("datagram receiver", out.value,
                                  library.h_datagram_receiver_destroy, handle)
        #: has an element while a datagram is held
        self._held: list[None] = []
        self._begin(manager)

    def seed(self) -> bytes:
        """For senders, to make a DatagramAddress of."""
        seed = _library.CSeed()
        with self._need() as receiver:
            library.h_datagram_receiver_seed(receiver, seed)
        return bytes(seed.bytes)

    def address(self) -> DatagramAddress:
        """For answers to go to."""
        address = _library.CDatagramAddress()
        with self._need() as receiver:
            library.h_datagram_receiver_address(receiver, address)
        return DatagramAddress._of(address)

    def receive(self, timeout: Optional[float] = None) -> Datagram:
        """Receives a datagram; the next one is let in when it is released."""
        datagram = _library.CDatagram()
        handle = self._need()
        with handle:
            wait(handle, "h_datagram_receive",
                 lambda receiver, ns: library.h_datagram_receive(receiver, datagram, ns), timeout)
            return self._take(datagram)

    def request(self, to: DatagramAddress, data: Any, timeout: Optional[float] = None) -> Datagram:
        """Sends a datagram to offset 0 and receives the answer. For one thread at a time.

        After a time-out this receiver has another address, and so it has if it was revoked.
        """
        handle = self._need()
        with _library.Buffer(data) as b, handle:
            # As h_datagram_request() does it, in pieces.
            self._drop_old_answer()
            deadline = None if timeout is None else time.monotonic() + timeout
            reply = self._answers_go_to()
            wait(handle, "h_datagram_request",
                 lambda receiver, ns: library.h_datagram_send(
                     self._manager._need().pointer, to._address, 0, b.address, b.length,
                     reply._address, ns), timeout)
            try:
                return self.receive(None if deadline is None else
                                    max(deadline - time.monotonic(), 1e-6) if timeout else 0)
            except BaseException:
                if not self.closed:
                    self.rekey()
                raise

    def _drop_old_answer(self) -> None:
        if self._held:
            raise _errors.failure(-errno.EBUSY, "h_datagram_request")
        try:
            self.receive(0).release()
        except BlockingIOError:
            pass

    def _answers_go_to(self) -> DatagramAddress:
        """Its address, a new one if it has none: after revoke(), or a rekey() that failed."""
        address = self.address()
        if not address._address.ticket.key:
            self.rekey()
            address = self.address()
        return address

    def _take(self, datagram: _library.CDatagram) -> Datagram:
        handle = self._need()
        handle.hold()
        held = self._held
        held.append(None)

        def release() -> None:
            held.clear()
            if handle.pointer:
                library.h_datagram_release(handle.pointer)
            handle.leave()

        return Datagram(datagram, Pin(release, handle))

    def revoke(self) -> None:
        """Takes the right to send from all who have it."""
        with self._need() as receiver:
            check(library.h_datagram_revoke(receiver), "h_datagram_revoke")

    def rekey(self) -> bytes:
        """The same, and begins anew: the seed from now on."""
        seed = _library.CSeed()
        with self._need() as receiver:
            check(library.h_datagram_rekey(receiver, seed), "h_datagram_rekey")
        return bytes(seed.bytes)

    def stats(self) -> dict[str, int]:
        """Counters: received, malformed, dropped."""
        stats = _library.CDatagramStats()
        with self._need() as receiver:
            check(library.h_datagram_receiver_stats(receiver, stats),
                  "h_datagram_receiver_stats")
        return {name: getattr(stats, name) for name, *_ in stats._fields_}


class TaggedAddress:
    """Where to write: a value, made from a TaggedReceiver's seed."""
    __slots__ = ("_address",)

    def __init__(self, seed: Any):
        self._address = _library.CTaggedAddress()
        check(library.h_tagged_resolve(c_seed(seed), self._address), "h_tagged_resolve")

    def send(self, manager: Manager, data: Any, offset: int, tag: int,
             timeout: Optional[float] = None) -> None:
        """Writes to an offset in the receiver's memory, and tells it by a tag."""
        with _library.Buffer(data) as b:
            wait(manager._need(), "h_tagged_send",
                 lambda m, ns: library.h_tagged_send(m, self._address, unsigned(offset), b.address,
                                                     b.length, unsigned(tag), ns), timeout)


class Tag(NamedTuple):
    """What was written."""
    tag: int
    length: int


class TaggedReceiver(Endpoint):
    """Is written to, and told by tags.

    length: bytes of its memory; arrivals, max_tags: see struct h_tagged_attr; 0: default
    """
    _on_ready_call = library.h_tagged_receiver_on_ready

    def __init__(self, manager: Manager, length: int = 0, *, arrivals: int = 0,
                 max_tags: int = 0):
        attr = _library.TaggedAttr(length=unsigned(length), arrivals=unsigned(arrivals, 32),
                                   max_tags=unsigned(max_tags, 32))
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_tagged_receiver_create(pointer, attr, out),
                  "h_tagged_receiver_create", handle.made_on.pointer)
            self._handle = Handle("tagged receiver", out.value,
                                  library.h_tagged_receiver_destroy, handle)
        self._length = length or 4096
        self._begin(manager)

    @property
    def memory(self) -> memoryview:
        """Where senders write to. It stays as long as this, or a part of it, is kept."""
        handle = self._need()
        receiver = handle.enter()
        return view(library.h_tagged_receiver_data(receiver), self._length, Pin(handle.leave))

    def seed(self) -> bytes:
        """For senders, to make a TaggedAddress of."""
        seed = _library.CSeed()
        with self._need() as receiver:
            library.h_tagged_receiver_seed(receiver, seed)
        return bytes(seed.bytes)

    def rekey(self) -> bytes:
        """Takes the right to write from all who have it: the seed from now on."""
        seed = _library.CSeed()
        with self._need() as receiver:
            check(library.h_tagged_receiver_rekey(receiver, seed), "h_tagged_receiver_rekey")
        return bytes(seed.bytes)

    def receive(self, tag: Optional[int] = None, timeout: Optional[float] = None) -> Tag:
        """The oldest tag, or a certain one. Raises OverflowError if tags were lost."""
        got = c_uint64()
        length = c_uint32()
        try:
            if tag is None:
                wait(self._need(), "h_tagged_get_tag",
                     lambda r, ns: library.h_tagged_get_tag(r, byref(got), byref(length), ns),
                     timeout)
            else:
                got.value = unsigned(tag)
                wait(self._need(), "h_tagged_get_specific_tag",
                     lambda r, ns: library.h_tagged_get_specific_tag(r, tag, byref(length), ns),
                     timeout)
        except _errors.Error as e:
            if e.errno == errno.EOVERFLOW:
                raise OverflowError("tags were lost") from e
            raise
        return Tag(got.value, length.value)
