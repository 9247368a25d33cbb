# SPDX-License-Identifier: MIT
"""Group receives (H 2.5), gathers and barriers."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_uint64, c_void_p
from typing import Any, Optional, Union

from . import _library
from ._datagram import c_seed
from ._device import check
from ._handle import Handle, Owner, Pin, view, wait
from ._library import unsigned
from ._manager import Endpoint, Manager

library = _library.library

_NEW_KEY = 1


def _lengths(lengths: Sequence[int]) -> Any:
    return (c_uint64 * len(lengths))(*map(unsigned, lengths))


class Share:
    """The right to fill a part of a group's buffer, once a round; from_bytes(bytes(share))."""
    __slots__ = ("_share",)

    def __init__(self, share: _library.CShare):
        self._share = share

    @classmethod
    def from_bytes(cls, data: Any) -> Share:
        """The share that these bytes were made of."""
        share = _library.CShare()
        check(library.h_share_import(c_seed(data), share), "h_share_import")
        return cls(share)

    def __bytes__(self) -> bytes:
        seed = _library.CSeed()
        check(library.h_share_export(self._share, seed), "h_share_export")
        return bytes(seed.bytes)

    @property
    def length(self) -> int:
        """Bytes of its part."""
        return self._share.ticket.length

    def split(self, parts: Union[int, Sequence[int]]) -> list[Share]:
        """Divides it into equal parts, or parts of these lengths; it is of no more use then."""
        if isinstance(parts, int):
            if parts < 0:
                raise ValueError("a share cannot be divided into fewer than no parts")
            count, lengths = unsigned(parts, 32), None
        else:
            count, lengths = len(parts), _lengths(parts)
        shares = (_library.CShare * count)()
        check(library.h_share_split(self._share, count, lengths, shares), "h_share_split")
        return [Share(_library.CShare.from_buffer_copy(s)) for s in shares]

    def send(self, manager: Manager, data: Any = b"", timeout: Optional[float] = None) -> None:
        """Does its part: data is at most as long as that."""
        with _library.Buffer(data) as b:
            wait(manager._need(), "h_share_send",
                 lambda m, ns: library.h_share_send(m, self._share, b.address, b.length, ns),
                 timeout)


class Group(Endpoint):
    """The receiving end of a group receive: many fill one buffer, it is told once."""
    _on_ready_call = library.h_group_on_ready

    def __init__(self, manager: Manager, length: int):
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_group_create(pointer, unsigned(length), None, out),
                  "h_group_create", handle.made_on.pointer)
            self._handle = Handle("group", out.value, library.h_group_destroy, handle)
        self._length = length
        self._begin(manager)

    def share(self) -> Share:
        """The share of everything: use one only, however often it is asked for."""
        share = _library.CShare()
        with self._need() as group:
            library.h_group_share(group, share)
        return Share(share)

    def receive(self, timeout: Optional[float] = None) -> memoryview:
        """Waits until all parts have arrived: the buffer, which stays as it is until reset()."""
        data = c_void_p()
        handle = self._need()
        with handle:
            wait(handle, "h_group_receive",
                 lambda group, ns: library.h_group_receive(group, byref(data), ns), timeout)
            handle.hold()
            return view(data.value or 0, self._length, Pin(handle.leave)).toreadonly()

    def reset(self, new_shares: bool = False) -> None:
        """Begins the next round; new_shares: all shares so far are void."""
        with self._need() as group:
            check(library.h_group_reset(group, _NEW_KEY if new_shares else 0), "h_group_reset")


# ---- gathers and barriers ----

class Gather(Owner):
    """The root of a gather: all to one, round after round.

    lengths: bytes of each member's part
    """

    def __init__(self, manager: Manager, lengths: Sequence[int]):
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_gather_create(pointer, len(lengths), _lengths(lengths), 0, out),
                  "h_gather_create", handle.made_on.pointer)
            self._handle = Handle("gather", out.value, library.h_gather_destroy, handle)
        self._members = len(lengths)

    def seed(self, member: int) -> bytes:
        """For a member: for one process, once."""
        seed = _library.CSeed()
        with self._need() as gather:
            check(library.h_gather_seed(gather, unsigned(member, 32), seed), "h_gather_seed")
        return bytes(seed.bytes)

    def offset(self, member: int) -> int:
        """Where the part of a member is, in what receive() gives."""
        with self._need() as gather:
            return library.h_gather_offset(gather, unsigned(member, 32))

    def receive(self, timeout: Optional[float] = None) -> memoryview:
        """Waits for all parts of the next round; two can be held until release().

        Raises BrokenPipeError if a member has left, ConnectionResetError if one is gone.
        """
        data = c_void_p()
        handle = self._need()
        with handle as pointer:
            wait(handle, "h_gather_receive",
                 lambda gather, ns: library.h_gather_receive(gather, byref(data), ns), timeout)
            handle.hold()
            return view(data.value or 0, library.h_gather_offset(pointer, self._members),
                        Pin(handle.leave)).toreadonly()

    def release(self) -> None:
        """Lets members overwrite the oldest round that was received."""
        with self._need() as gather:
            check(library.h_gather_release(gather), "h_gather_release")


class GatherMember(Owner):
    """A member of a gather, made from a seed of its root."""

    def __init__(self, manager: Manager, seed: Any):
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            check(library.h_gather_join(pointer, c_seed(seed), out), "h_gather_join",
                  handle.made_on.pointer)
            self._handle = Handle("gather member", out.value, library.h_gather_leave,
                                  manager._need())

    @property
    def length(self) -> int:
        """How long its part is."""
        with self._need() as member:
            return library.h_gather_length(member)

    def send(self, data: Any = b"", timeout: Optional[float] = None) -> None:
        """Does its part of the next round.

        Raises BrokenPipeError if the root is gone, ConnectionResetError if another member is.
        """
        with _library.Buffer(data) as b:
            wait(self._need(), "h_gather_send",
                 lambda member, ns: library.h_gather_send(member, b.address, b.length, ns),
                 timeout)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until the root has released all that it has sent."""
        wait(self._need(), "h_gather_wait", library.h_gather_wait, timeout)


class Barrier(Owner):
    """Nobody gets out before everybody has got in.

    what: how many participants there are, of whom this is one; or the seed of a barrier
    that somebody else has created.
    """

    def __init__(self, manager: Manager, what: Any):
        out = c_void_p()
        handle = manager._need()
        with handle as pointer:
            if isinstance(what, int):
                check(library.h_barrier_create(pointer, unsigned(what, 32), out),
                      "h_barrier_create", handle.made_on.pointer)
            else:
                check(library.h_barrier_join(pointer, c_seed(what), out), "h_barrier_join",
                      handle.made_on.pointer)
            self._handle = Handle("barrier", out.value, library.h_barrier_destroy,
                                  manager._need())

    def seed(self, participant: int) -> bytes:
        """For another participant, 1 and up: for one process, once."""
        seed = _library.CSeed()
        with self._need() as barrier:
            check(library.h_barrier_seed(barrier, unsigned(participant, 32), seed),
                  "h_barrier_seed")
        return bytes(seed.bytes)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until all participants wait; after TimeoutError it is to be called again.

        Raises BrokenPipeError if one has left, ConnectionResetError if one is gone.
        """
        wait(self._need(), "h_barrier_wait", library.h_barrier_wait, timeout)
