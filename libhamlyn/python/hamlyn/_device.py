# SPDX-License-Identifier: MIT
"""The low layer: devices, areas, notification queues, slots, tickets, termini, watches."""

from __future__ import annotations

import ctypes
import errno
import enum
from ctypes import byref, c_int, c_uint64, c_void_p
from typing import Any, Callable, NamedTuple, Optional

from . import _errors, _library
from ._handle import Handle, Owner, Pin, view, wait
from ._library import unsigned

library = _library.library

#: Entry number of tickets for words that travel in the notification
META_FAST = _library.META_FAST


def check(result: int, call: str, device: Optional[int] = None) -> int:
    """Raises what a C function returned, if it is an error."""
    if result < 0:
        raise _errors.failure(result, call, device)
    return result


def _values(structure: ctypes.Structure, *without: str) -> dict[str, Any]:
    values = {}
    for name, *_ in structure._fields_:
        if name not in ("size", "reserved", *without):
            value = getattr(structure, name)
            if isinstance(value, ctypes.Array):
                value = bytes(value) if value._type_ is ctypes.c_uint8 else list(value)
            values[name] = value
    return values


class SlotMode(enum.IntEnum):
    """What messages a slot lets in (H 2.7)."""
    NORMAL = 0
    PARANOID = 1
    PARANOID_ONE_SHOT = 2


class Device(Owner):
    """A NIC.

    name: "/dev/hamlynN", or "shm:NAME[,size=BYTES][,guesses=N][,huge]"; None:
    $HAMLYN_DEVICE, else /dev/hamlyn0 if it is there, else "shm:default"
    """

    def __init__(self, name: Optional[str] = None):
        out = c_void_p()
        check(library.h_open(None if name is None else _library.text(name), byref(out)),
              "h_open", 0)
        self._handle = Handle("device", out.value, library.h_close)

    @property
    def name(self) -> str:
        """The name that was opened."""
        with self._need() as dev:
            return library.h_dev_name(dev).decode()

    @property
    def embedded(self) -> bool:
        """Is it an embedded device, and not a kernel device?"""
        with self._need() as dev:
            return bool(library.h_dev_is_embedded(dev))

    @property
    def fabric(self) -> bytes:
        """Which fabric it is on: 16 bytes that no other fabric has."""
        fabric = _library.FabricId()
        with self._need() as dev:
            library.h_dev_fabric(dev, byref(fabric))
        return bytes(fabric.bytes)

    def reaches(self, fabric: bytes) -> bool:
        """Can messages go to a device on that fabric, and back?"""
        with self._need() as dev:
            return bool(library.h_dev_reaches(dev, byref(_library.FabricId(tuple(fabric)))))

    def query(self) -> dict[str, Any]:
        """Limits, properties and state: the members of struct hamlyn_query."""
        query = _library.Query()
        with self._need() as dev:
            check(library.h_query(dev, byref(query)), "h_query", dev)
        return _values(query)

    def stats(self) -> dict[str, Any]:
        """Counters of the whole NIC: the members of struct hamlyn_stats."""
        stats = _library.Stats()
        with self._need() as dev:
            check(library.h_dev_stats(dev, byref(stats)), "h_dev_stats", dev)
        return _values(stats, "kind", "id")

    def audit(self, sequence: int = 0, most: int = 256) -> tuple[list[dict[str, int]], int]:
        """Packets that were rejected at own slots from a number on, and where to go on."""
        entries = (_library.AuditEntry * unsigned(most, 32))()
        at = c_uint64(unsigned(sequence))
        with self._need() as dev:
            n = check(library.h_audit(dev, entries, most, byref(at)), "h_audit", dev)
        return [_values(e) for e in entries[:n]], at.value


class Area(Owner):
    """Wired memory that messages go to, or come from; zeroed, in whole pages."""

    def __init__(self, device: Device, length: int, huge: bool = False):
        out = c_void_p()
        with device._need() as dev:
            check(library.h_area_alloc_flags(dev, unsigned(length), 2 if huge else 0,
                                             byref(out)),
                  "h_area_alloc_flags", dev)
            self._handle = Handle("area", out.value, library.h_area_remove, device._need())

    def __len__(self) -> int:
        with self._need() as area:
            return library.h_area_length(area)

    @property
    def page_size(self) -> int:
        """Bytes of the smallest page that any byte of it is in."""
        with self._need() as area:
            return library.h_area_page_size(area)

    @property
    def memory(self) -> memoryview:
        """All of it. The memory stays as long as this, or a part of it, is kept."""
        handle = self._need()
        area = handle.enter()
        return view(library.h_area_addr(area), library.h_area_length(area), Pin(handle.leave))


class Notification(NamedTuple):
    """What a notification queue tells: see struct hamlyn_nq_entry."""
    data: int
    slot: int
    index: int  # type: ignore[assignment]
    source: int
    length: int
    flags: int

    @property
    def fast(self) -> bool:
        """Is data a word that was sent?"""
        return bool(self.flags & 1)

    @property
    def peer_gone(self) -> bool:
        """Does a watch tell? Then data is its cookie."""
        return bool(self.flags & 16)


class NotificationQueue(Owner):
    """A notification queue (H 2.6), of a power of two entries."""

    def __init__(self, device: Device, entries: int = 64):
        out = c_void_p()
        with device._need() as dev:
            check(library.h_nq_create(dev, unsigned(entries, 32), byref(out)), "h_nq_create",
                  dev)
            self._handle = Handle("notification queue", out.value, library.h_nq_destroy,
                                  device._need())

    def receive(self, timeout: Optional[float] = None) -> Notification:
        """The next notification.

        Raises TimeoutError, or BlockingIOError if timeout is 0; OverflowError where some were
        lost.
        """
        entry = _library.NqEntry()
        try:
            wait(self._need(), "h_recv_block",
                 lambda nq, ns: library.h_recv_block(nq, entry, ns), timeout)
        except _errors.Error as e:
            if e.errno == errno.EOVERFLOW:
                raise OverflowError("notifications were lost") from e
            raise
        return Notification(entry.data, entry.slot, entry.index, entry.source, entry.length,
                            entry.flags)

    @property
    def lost(self) -> int:
        """Notifications lost so far, modulo 2**32."""
        with self._need() as nq:
            return library.h_nq_lost(nq)


class Ticket:
    """The right to send to a place (H 3.2): a value."""
    __slots__ = ("_ticket",)

    def __init__(self, ticket: _library.CTicket):
        self._ticket = ticket

    host = property(lambda self: self._ticket.host, doc="destination host id")
    slot = property(lambda self: self._ticket.slot, doc="destination slot")
    base = property(lambda self: self._ticket.base, doc="first byte it is for")
    length = property(lambda self: self._ticket.length, doc="bytes from there on")

    def __bytes__(self) -> bytes:
        """In a form that can travel anywhere."""
        out = ctypes.create_string_buffer(_library.TICKET_BYTES)
        library.h_ticket_export(byref(self._ticket), out)
        return out.raw

    @classmethod
    def from_bytes(cls, data: Any) -> Ticket:
        """The ticket that these bytes were made of."""
        ticket = _library.CTicket()
        with _library.Buffer(data) as b:
            check(library.h_ticket_import(b.address, b.length, byref(ticket)),
                  "h_ticket_import")
        return cls(ticket)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ticket) and bytes(self._ticket) == bytes(other._ticket)

    def __hash__(self) -> int:
        return hash(bytes(self._ticket))

    def __repr__(self) -> str:
        return (f"<hamlyn.Ticket host={self.host} slot={self.slot} base={self.base} "
                f"length={self.length}>")  # not the key


class Slot(Owner):
    """A place that others can send to (H 2.2), in an area."""

    def __init__(self, area: Area, queue: Optional[NotificationQueue] = None, *, base: int = 0,
                 length: int = 0, metadata: Optional[Area] = None, metadata_base: int = 0,
                 metadata_count: int = 0, mode: SlotMode = SlotMode.NORMAL,
                 ticket_only: bool = False):
        attr = _library.SlotAttr(base=unsigned(base), length=unsigned(length),
                                 meta_base=unsigned(metadata_base),
                                 meta_count=unsigned(metadata_count, 32),
                                 mode=unsigned(mode, 32), flags=2 if ticket_only else 0)
        parts = [x._need() for x in (area, queue, metadata) if x is not None]
        device = area._need().made_on
        out = c_void_p()
        entered = []
        try:
            for part in parts:
                part.enter()
                entered.append(part)
            attr.area = area._need().pointer
            attr.nq = queue._need().pointer if queue is not None else None
            attr.meta_area = metadata._need().pointer if metadata is not None else None
            with device as dev:
                check(library.h_slot_create(dev, byref(attr), byref(out)), "h_slot_create", dev)
                self._handle = Handle("slot", out.value, library.h_slot_destroy, device,
                                      tuple(parts))
        finally:
            for part in entered:
                part.leave()

    def ticket(self, base: int = 0, length: int = 0, index: int = 0) -> Ticket:
        """A ticket; index: metadata entry, or META_FAST for words."""
        ticket = _library.CTicket()
        with self._need() as slot:
            check(library.h_slot_ticket(slot, unsigned(base), unsigned(length),
                                        unsigned(index, 32), byref(ticket)),
                  "h_slot_ticket")
        return Ticket(ticket)

    def ticket_fd(self, base: int = 0, length: int = 0) -> int:
        """A ticket that is a descriptor (H 6.5), for the caller to close."""
        fd = c_int()
        with self._need() as slot:
            check(library.h_slot_ticket_fd(slot, unsigned(base), unsigned(length), byref(fd)),
                  "h_slot_ticket_fd")
        return fd.value

    def rekey(self) -> None:
        """A new key: all tickets given out so far are void."""
        with self._need() as slot:
            check(library.h_slot_rekey(slot), "h_slot_rekey")

    @property
    def number(self) -> int:
        """As it appears in Notification.slot."""
        with self._need() as slot:
            return library.h_slot_number(slot)

    def stats(self) -> dict[str, Any]:
        """What went wrong at it."""
        stats = _library.Stats()
        with self._need() as slot:
            check(library.h_slot_stats(slot, byref(stats)), "h_slot_stats")
        return _values(stats, "kind", "id")


def _destroy_terminus(bound: dict[int, Handle]) -> Callable[[int], Any]:
    def destroy(terminus: int) -> int:
        result = library.h_terminus_destroy(terminus)
        while bound and not result:
            bound.popitem()[1].leave()
        return result
    return destroy


class Terminus(Owner):
    """Where messages leave (H 2.3)."""

    def __init__(self, device: Device, *, entries: int = 0, entry_size: int = 0,
                 priority: int = 0, weight: int = 0):
        attr = _library.TerminusAttr(entries=unsigned(entries, 32),
                                     entry_size=unsigned(entry_size, 32),
                                     priority=unsigned(priority, 32),
                                     weight=unsigned(weight, 32))
        out = c_void_p()
        with device._need() as dev:
            check(library.h_terminus_create(dev, byref(attr), byref(out)), "h_terminus_create",
                  dev)
            self._bound: dict[int, Handle] = {}
            self._handle = Handle("terminus", out.value, _destroy_terminus(self._bound),
                                  device._need())

    def bind(self, tag: int, area: Optional[Area]) -> None:
        """Lets it send from an area; None: no more."""
        handle = area._need() if area is not None else None
        pointer = handle.enter() if handle is not None else None
        try:
            with self._need() as terminus:
                check(library.h_terminus_bind(terminus, unsigned(tag, 32), pointer, 0, 0),
                      "h_terminus_bind")
                old = self._bound.pop(tag, None)
                if handle is not None:
                    self._bound[tag] = handle
        except BaseException:
            if handle is not None:
                handle.leave()
            raise
        if old is not None:
            old.leave()

    def send(self, ticket: Ticket, data: Any = b"", metadata: Any = b"", *, offset: int = 0,
             word: int = 0) -> int:
        """Sends a message, and returns a number for wait().

        data, metadata: what has the buffer protocol. Data longer than a work queue
        entry carries must be in a bound area, and stay as it is until wait() returned.
        Raises BlockingIOError while the work queue is full.
        """
        with _library.Buffer(data) as d, _library.Buffer(metadata) as m:
            msg = _library.Msg(ticket=ctypes.pointer(ticket._ticket), offset=unsigned(offset),
                               data=d.address, length=d.length, meta=m.address,
                               meta_length=m.length, word=unsigned(word))
            with self._need() as terminus:
                return check(library.h_send(terminus, byref(msg)), "h_send")

    def wait(self, number: int, timeout: Optional[float] = None) -> None:
        """Waits until a message has left: its memory may be used again."""
        wait(self._need(), "h_send_wait",
             lambda terminus, ns: library.h_send_wait(terminus, unsigned(number, 63), ns),
             timeout)

    def import_ticket(self, fd: int) -> Ticket:
        """A ticket that came as a descriptor, for this terminus only."""
        ticket = _library.CTicket()
        with self._need() as terminus:
            check(library.h_terminus_import(terminus, fd, byref(ticket)), "h_terminus_import")
        return Ticket(ticket)

    def drop_ticket(self, ticket: Ticket) -> None:
        """Forgets an imported ticket."""
        with self._need() as terminus:
            check(library.h_terminus_drop(terminus, byref(ticket._ticket)), "h_terminus_drop")

    def stats(self) -> dict[str, Any]:
        """Counters."""
        stats = _library.Stats()
        with self._need() as terminus:
            check(library.h_terminus_stats(terminus, byref(stats)), "h_terminus_stats")
        return _values(stats, "kind", "id")


class Watch(Owner):
    """Has a queue told when a slot is gone (H 6.3), with the cookie in Notification.data."""

    def __init__(self, queue: NotificationQueue, ticket: Ticket, cookie: int = 0):
        device = queue._need().made_on
        out = c_void_p()
        with queue._need() as nq, device as dev:
            check(library.h_watch(dev, byref(ticket._ticket), nq, unsigned(cookie), byref(out)),
                  "h_watch", dev)
            self._handle = Handle("watch", out.value, library.h_unwatch, device,
                                  (queue._need(),))


__all__ = ["Area", "Device", "META_FAST", "Notification", "NotificationQueue", "Slot",
           "SlotMode", "Terminus", "Ticket", "Watch", "check"]
