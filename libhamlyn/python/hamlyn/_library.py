# SPDX-License-Identifier: MIT
"""The shared library: where it is, its structures, its functions."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_int, c_int64,
                    c_size_t, c_ssize_t, c_ubyte, c_uint8, c_uint32, c_uint64, c_void_p, sizeof)
from typing import Any, Callable

NOWAIT = 0
FOREVER = -1

TICKET_BYTES = 48
SEED_BYTES = 80
CHANNEL_SEED_BYTES = 176
META_FAST = 0xFFFFFFFF
MAX_METADATA = 60
MAX_TAGS = 4096
EXPLAIN_BYTES = 256


def _find() -> list[str]:
    """Names to try, in this order."""
    named = os.environ.get("HAMLYN_LIBRARY")
    if named:
        return [named]
    names = []
    found = ctypes.util.find_library("hamlyn")
    if found:
        names.append(found)
    here = pathlib.Path(__file__).resolve().parent
    for folder in (here, here.parent):
        names += [str(p) for p in sorted(folder.glob("libhamlyn.so*"))]
    return names


def _load() -> ctypes.CDLL:
    names = _find()
    problems = []
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as e:
            problems.append(str(e))
    raise ImportError("libhamlyn.so cannot be loaded: install it, or name it in HAMLYN_LIBRARY"
                      + "".join("; " + p for p in problems))


library = _load()


# ---- structures; tests/test_layout.py compares them with the headers ----

class Query(Structure):
    """struct hamlyn_query"""
    _fields_ = [("size", c_uint32), ("abi_version", c_uint32), ("host", c_uint32),
                ("engine_mode", c_uint32), ("packet_size", c_uint32), ("max_slots", c_uint32),
                ("max_nq_entries", c_uint32), ("max_wq_entries", c_uint32),
                ("max_entry_size", c_uint32), ("fabric", c_uint32), ("max_area", c_uint64),
                ("max_message", c_uint64), ("state", c_uint32), ("engines", c_uint32),
                ("max_tags", c_uint32), ("max_tickets", c_uint32),
                ("doorbells", c_uint32), ("reserved", c_uint32),
                ("fabric_id", c_uint8 * 16)]


class FabricId(Structure):
    """struct h_fabric_id"""
    _fields_ = [("bytes", c_uint8 * 16)]


class Stats(Structure):
    """struct hamlyn_stats"""
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("id", c_uint32),
                ("reserved", c_uint32), ("messages", c_uint64), ("packets", c_uint64),
                ("bytes", c_uint64), ("failed", c_uint64), ("notifications", c_uint64),
                ("overruns", c_uint64), ("kicks", c_uint64), ("rejects", c_uint64 * 16)]


class AuditEntry(Structure):
    """struct hamlyn_audit_entry"""
    _fields_ = [("time_ns", c_uint64), ("sequence", c_uint64), ("offset", c_uint64),
                ("length", c_uint32), ("slot", c_uint32), ("reason", c_uint32),
                ("source", c_uint32), ("pid", c_uint32), ("uid", c_uint32)]


class NqEntry(Structure):
    """struct hamlyn_nq_entry"""
    _fields_ = [("data", c_uint64), ("slot", c_uint32), ("index", c_uint32),
                ("source", c_uint32), ("length", c_uint32), ("flags", c_uint32),
                ("sequence", c_uint32)]


class CTicket(Structure):
    """struct h_ticket"""
    _fields_ = [("host", c_uint32), ("slot", c_uint32), ("key", c_uint64), ("base", c_uint64),
                ("length", c_uint64), ("meta_index", c_uint32), ("flags", c_uint32)]


class SlotAttr(Structure):
    """struct h_slot_attr"""
    _fields_ = [("area", c_void_p), ("base", c_uint64), ("length", c_uint64),
                ("meta_area", c_void_p), ("meta_base", c_uint64), ("meta_count", c_uint32),
                ("mode", c_uint32), ("flags", c_uint32), ("reserved", c_uint32),
                ("nq", c_void_p), ("key", c_uint64)]


class TerminusAttr(Structure):
    """struct h_terminus_attr"""
    _fields_ = [("entries", c_uint32), ("entry_size", c_uint32), ("flags", c_uint32),
                ("priority", c_uint32), ("weight", c_uint32)]


class Msg(Structure):
    """struct h_msg"""
    _fields_ = [("ticket", POINTER(CTicket)), ("offset", c_uint64), ("data", c_void_p),
                ("length", c_size_t), ("iov", c_void_p), ("iovcnt", c_int),
                ("delta", c_uint32), ("meta", c_void_p), ("meta_length", c_size_t),
                ("word", c_uint64), ("flags", c_uint32)]


class ManagerAttr(Structure):
    """struct h_manager_attr"""
    _fields_ = [("nq_entries", c_uint32), ("flags", c_uint32), ("spin_ns", c_int64),
                ("wq_entries", c_uint32), ("wq_entry_size", c_uint32), ("priority", c_uint32),
                ("weight", c_uint32), ("channels", c_uint32), ("reserved", c_uint32),
                ("budget", c_uint64)]


class CSeed(Structure):
    """struct h_seed"""
    _fields_ = [("bytes", c_ubyte * SEED_BYTES)]


class StreamAttr(Structure):
    """struct h_stream_attr"""
    _fields_ = [("buffers", c_uint32), ("buffer_size", c_uint32),
                ("max_buffer_size", c_uint32), ("flags", c_uint32)]


class CRecord(Structure):
    """struct h_record"""
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("number", c_uint32)]


NONE = 0xffffffff  # HAMLYN_NONE


class CPeer(Structure):
    """struct h_peer"""
    _fields_ = [("pid", c_int), ("uid", c_uint32), ("gid", c_uint32), ("host", c_uint32),
                ("user", c_uint32)]


class CStreamPair(Structure):
    """struct h_stream_pair"""
    _fields_ = [("sender", c_void_p), ("receiver", c_void_p), ("peer", CPeer)]


class ListenerAttr(Structure):
    """struct h_listener_attr"""
    _fields_ = [("flags", c_uint32), ("mode", c_uint32), ("waiting", c_uint32),
                ("uid_count", c_uint32), ("uids", POINTER(c_uint32)), ("patience_ns", c_int64),
                ("dev", c_void_p)]


class ConnectAttr(Structure):
    """struct h_connect_attr"""
    _fields_ = [("flags", c_uint32), ("uid_count", c_uint32), ("uids", POINTER(c_uint32)),
                ("buffers", c_uint32), ("buffer_size", c_uint32),
                ("max_buffer_size", c_uint32), ("reserved", c_uint32)]


class ChannelAttr(Structure):
    """struct h_channel_attr"""
    _fields_ = [("max_message", c_uint64), *ConnectAttr._fields_, ("device", c_char_p)]


class CChannelSeed(Structure):
    """struct h_channel_seed"""
    _fields_ = [("bytes", c_ubyte * CHANNEL_SEED_BYTES)]


class CMessage(Structure):
    """struct h_message"""
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("serial", c_uint64),
                ("is_long", c_uint64), ("number", c_uint32), ("held", c_uint32)]


class DatagramAttr(Structure):
    """struct h_datagram_attr"""
    _fields_ = [("length", c_size_t), ("flags", c_uint32), ("reserved", c_uint32)]


class CDatagramAddress(Structure):
    """struct h_datagram_address"""
    _fields_ = [("ticket", CTicket)]


class CDatagram(Structure):
    """struct h_datagram"""
    _fields_ = [("data", c_void_p), ("offset", c_size_t), ("length", c_size_t),
                ("has_reply", c_bool), ("reply", CDatagramAddress)]


class CDatagramStats(Structure):
    """struct h_datagram_stats"""
    _fields_ = [("received", c_uint64), ("malformed", c_uint64), ("dropped", c_uint64)]


class CLoan(Structure):
    """struct h_loan"""
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("serial", c_uint64),
                ("held", c_uint32), ("reserved", c_uint32)]


class PublisherAttr(Structure):
    """struct h_publisher_attr"""
    _fields_ = [("device", c_char_p), ("on_subscriber", c_void_p), ("on_end", c_void_p),
                ("arg", c_void_p), ("patience_ns", c_int64), ("uids", POINTER(c_uint32)),
                ("uid_count", c_uint32), ("mode", c_uint32), ("flags", c_uint32),
                ("history", c_uint32), ("max_message", c_uint64), ("subscribers", c_uint32),
                ("subscribers_of_user", c_uint32)]


class CPublisherStats(Structure):
    """struct h_publisher_counters"""
    _fields_ = [("published", c_uint64), ("sent", c_uint64), ("dropped", c_uint64),
                ("given_up", c_uint64), ("subscribers", c_uint32), ("lagging", c_uint32)]


class SubscriberAttr(Structure):
    """struct h_subscriber_attr"""
    _fields_ = [("device", c_char_p), ("uids", POINTER(c_uint32)), ("uid_count", c_uint32),
                ("flags", c_uint32), ("policy", c_uint32), ("history", c_uint32),
                ("max_message", c_uint64), ("buffers", c_uint32), ("buffer_size", c_uint32),
                ("max_buffer_size", c_uint32), ("reserved", c_uint32)]


class CPublication(Structure):
    """struct h_publication"""
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("number", c_uint64),
                ("lost", c_uint64), ("message", CMessage)]


#: What a work queue calls back: the number of an item, bytes, how many.
WORK = CFUNCTYPE(None, c_uint64, c_void_p, c_size_t, c_void_p)


class WorkAttr(Structure):
    """struct h_work_attr"""
    _fields_ = [("device", c_char_p), ("on_done", WORK), ("on_failed", WORK),
                ("on_worker", c_void_p), ("on_end", c_void_p), ("arg", c_void_p),
                ("patience_ns", c_int64), ("uids", POINTER(c_uint32)), ("uid_count", c_uint32),
                ("mode", c_uint32), ("flags", c_uint32), ("items", c_uint32),
                ("max_message", c_uint64), ("bytes", c_uint64), ("deliveries", c_uint32),
                ("workers", c_uint32), ("workers_of_user", c_uint32), ("reserved", c_uint32)]


class CWorkStats(Structure):
    """struct h_work_counters"""
    _fields_ = [("added", c_uint64), ("done", c_uint64), ("failed", c_uint64),
                ("deliveries", c_uint64), ("waiting", c_uint32), ("out", c_uint32),
                ("workers", c_uint32), ("reserved", c_uint32)]


class WorkerAttr(Structure):
    """struct h_worker_attr"""
    _fields_ = [("device", c_char_p), ("uids", POINTER(c_uint32)), ("uid_count", c_uint32),
                ("flags", c_uint32), ("at_once", c_uint32), ("buffers", c_uint32),
                ("buffer_size", c_uint32), ("max_buffer_size", c_uint32),
                ("max_message", c_uint64)]


class CWorkItem(Structure):
    """struct h_work_item"""
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("id", c_uint64),
                ("delivery", c_uint32), ("reserved", c_uint32), ("message", CMessage)]


class CChannelStats(Structure):
    """struct h_channel_counters"""
    _fields_ = [*((name, c_uint64) for name in ("sent", "sent_bytes", "received",
                                                "received_bytes", "waits")),
                *((name, c_uint32) for name in ("in_flight", "buffers", "buffer_size", "held",
                                                "kept", "requests"))]


class CManagerStats(Structure):
    """struct h_manager_counters"""
    _fields_ = [("arrivals", c_uint32), ("sleepers", c_uint32), ("receivers", c_uint32),
                ("reserved", c_uint32), ("sleeps", c_uint64), ("receive_bytes", c_uint64),
                ("send_bytes", c_uint64), ("budget", c_uint64),
                ("budget_taken", c_uint64)]


class TaggedAttr(Structure):
    """struct h_tagged_attr"""
    _fields_ = [("length", c_size_t), ("arrivals", c_uint32), ("max_tags", c_uint32),
                ("flags", c_uint32), ("reserved", c_uint32)]


class GroupAttr(Structure):
    """struct h_group_attr"""
    _fields_ = [("flags", c_uint32)]


class CTaggedAddress(Structure):
    """struct h_tagged_address"""
    _fields_ = [("ticket", CTicket)]


class CShare(Structure):
    """struct h_share"""
    _fields_ = [("ticket", CTicket), ("counter", c_uint64)]


class IoVec(Structure):
    """struct iovec"""
    _fields_ = [("iov_base", c_void_p), ("iov_len", c_size_t)]


#: Names of the C structures, and what mirrors them.
STRUCTURES = {
    "hamlyn_query": Query,
    "h_fabric_id": FabricId,
    "hamlyn_stats": Stats,
    "hamlyn_audit_entry": AuditEntry,
    "hamlyn_nq_entry": NqEntry,
    "h_ticket": CTicket,
    "h_slot_attr": SlotAttr,
    "h_terminus_attr": TerminusAttr,
    "h_msg": Msg,
    "h_manager_attr": ManagerAttr,
    "h_seed": CSeed,
    "h_stream_attr": StreamAttr,
    "h_record": CRecord,
    "h_peer": CPeer,
    "h_stream_pair": CStreamPair,
    "h_listener_attr": ListenerAttr,
    "h_connect_attr": ConnectAttr,
    "h_channel_attr": ChannelAttr,
    "h_channel_seed": CChannelSeed,
    "h_message": CMessage,
    "h_loan": CLoan,
    "h_publisher_attr": PublisherAttr,
    "h_publisher_counters": CPublisherStats,
    "h_subscriber_attr": SubscriberAttr,
    "h_publication": CPublication,
    "h_work_attr": WorkAttr,
    "h_work_counters": CWorkStats,
    "h_worker_attr": WorkerAttr,
    "h_work_item": CWorkItem,
    "h_datagram_attr": DatagramAttr,
    "h_datagram_address": CDatagramAddress,
    "h_datagram": CDatagram,
    "h_datagram_stats": CDatagramStats,
    "h_channel_counters": CChannelStats,
    "h_manager_counters": CManagerStats,
    "h_tagged_attr": TaggedAttr,
    "h_group_attr": GroupAttr,
    "h_tagged_address": CTaggedAddress,
    "h_share": CShare,
    "iovec": IoVec,
}


# ---- functions ----

#: What the library calls back: an end point, and a number that we gave it.
READY = CFUNCTYPE(None, c_void_p, c_void_p)

_OBJECT = c_void_p
_OUT = POINTER(c_void_p)


#: Functions that the library does not have: it is older than this package.
missing: set[str] = set()


def _missing(name: str) -> Callable[..., Any]:
    missing.add(name)

    def function(*_arguments: Any) -> Any:
        raise NotImplementedError(f"this libhamlyn has no {name}()")
    return function


def _declare(name: str, result: Any, *arguments: Any) -> None:
    try:
        function = getattr(library, name)
    except AttributeError:
        setattr(library, name, _missing(name))
        return
    function.restype = result
    function.argtypes = arguments


def _declare_sized(name: str, result: Any, *arguments: Any) -> None:
    """A function that is inline in C, and hands over the size of one structure as well."""
    at = next(i for i, a in enumerate(arguments) if a in _SIZED)
    size = sizeof(arguments[at]._type_)
    inner = "h__" + name[len("h_"):]
    _declare(inner, result, *arguments[:at + 1], c_size_t, *arguments[at + 1:])
    function = getattr(library, inner)

    def sized(*given: Any) -> Any:
        return function(*given[:at + 1], size, *given[at + 1:])
    setattr(library, name, sized)


_SIZED = [POINTER(structure) for structure in (
    SlotAttr, TerminusAttr, ManagerAttr, StreamAttr, ListenerAttr, ConnectAttr, ChannelAttr,
    DatagramAttr, TaggedAttr, GroupAttr, CDatagramStats, CChannelStats, CManagerStats,
    PublisherAttr, CPublisherStats, SubscriberAttr, WorkAttr, CWorkStats, WorkerAttr)]

_declare("h_open", c_int, c_char_p, _OUT)
_declare("h_close", None, _OBJECT)
_declare("h_dev_name", c_char_p, _OBJECT)
_declare("h_dev_fd", c_int, _OBJECT)
_declare("h_dev_is_embedded", c_int, _OBJECT)
_declare("h_dev_fabric", None, _OBJECT, POINTER(FabricId))
_declare("h_dev_reaches", c_int, _OBJECT, POINTER(FabricId))
_declare("h_query", c_int, _OBJECT, POINTER(Query))
_declare("h_dev_stats", c_int, _OBJECT, POINTER(Stats))
_declare("h_audit", c_int, _OBJECT, POINTER(AuditEntry), c_uint32, POINTER(c_uint64))
_declare("h_explain", c_int, _OBJECT, c_char_p, c_size_t)
_declare("h_area_alloc_flags", c_int, _OBJECT, c_size_t, c_uint32, _OUT)
_declare("h_area_remove", c_int, _OBJECT)
_declare("h_area_addr", c_void_p, _OBJECT)
_declare("h_area_length", c_size_t, _OBJECT)
_declare("h_area_page_size", c_size_t, _OBJECT)
_declare("h_nq_create", c_int, _OBJECT, c_uint32, _OUT)
_declare("h_nq_destroy", c_int, _OBJECT)
_declare("h_recv_block", c_int, _OBJECT, POINTER(NqEntry), c_int64)
_declare("h_nq_lost", c_uint32, _OBJECT)
_declare_sized("h_slot_create", c_int, _OBJECT, POINTER(SlotAttr), _OUT)
_declare("h_slot_destroy", c_int, _OBJECT)
_declare("h_slot_rekey", c_int, _OBJECT)
_declare("h_slot_number", c_uint32, _OBJECT)
_declare("h_slot_stats", c_int, _OBJECT, POINTER(Stats))
_declare("h_slot_ticket", c_int, _OBJECT, c_uint64, c_uint64, c_uint32, POINTER(CTicket))
_declare("h_slot_ticket_fd", c_int, _OBJECT, c_uint64, c_uint64, POINTER(c_int))
_declare("h_ticket_export", None, POINTER(CTicket), c_void_p)
_declare("h_ticket_import", c_int, c_void_p, c_size_t, POINTER(CTicket))
_declare_sized("h_terminus_create", c_int, _OBJECT, POINTER(TerminusAttr), _OUT)
_declare("h_terminus_destroy", c_int, _OBJECT)
_declare("h_terminus_bind", c_int, _OBJECT, c_uint32, _OBJECT, c_uint64, c_uint64)
_declare("h_terminus_import", c_int, _OBJECT, c_int, POINTER(CTicket))
_declare("h_terminus_drop", c_int, _OBJECT, POINTER(CTicket))
_declare("h_terminus_stats", c_int, _OBJECT, POINTER(Stats))
_declare("h_send", c_int64, _OBJECT, POINTER(Msg))
_declare("h_send_wait", c_int, _OBJECT, c_int64, c_int64)
_declare("h_watch", c_int, _OBJECT, POINTER(CTicket), _OBJECT, c_uint64, _OUT)
_declare("h_unwatch", c_int, _OBJECT)
_declare_sized("h_manager_create", c_int, _OBJECT, POINTER(ManagerAttr), _OUT)
_declare("h_manager_destroy", c_int, _OBJECT)
_declare("h_manager_poll", c_int, _OBJECT)
_declare("h_manager_alloc", c_int, _OBJECT, c_size_t, _OUT)
_declare("h_manager_free", c_int, _OBJECT, c_void_p)
_declare("h_manager_fd", c_int, _OBJECT)
_declare_sized("h_manager_stats", c_int, _OBJECT, POINTER(CManagerStats))
_declare("h_manager_dispatch", c_int, _OBJECT)
_declare("h_manager_wait", c_int, _OBJECT, c_int64)
_declare("h_manager_kick", None, _OBJECT)
_declare("h_manager_drain", c_int, _OBJECT, c_int64)
_declare_sized("h_stream_receiver_create", c_int, _OBJECT, POINTER(StreamAttr), _OUT)
_declare("h_stream_receiver_destroy", c_int, _OBJECT)
_declare("h_stream_receiver_seed", None, _OBJECT, POINTER(CSeed))
_declare("h_stream_receive", c_int, _OBJECT, POINTER(CRecord), c_int64)
_declare("h_stream_release", None, _OBJECT, POINTER(CRecord))
_declare("h_stream_receive_copy", c_ssize_t, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_stream_receiver_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_stream_sender_create", c_int, _OBJECT, POINTER(CSeed), _OUT)
_declare("h_stream_send", c_ssize_t, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_stream_flush", c_int, _OBJECT, c_int64)
_declare("h_stream_sender_close", c_int, _OBJECT, c_int64)
_declare("h_stream_sender_shutdown", c_int, _OBJECT, c_int64)
_declare("h_stream_sender_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_manager_dev", c_void_p, _OBJECT)
_declare_sized("h_listener_create", c_int, c_char_p, POINTER(ListenerAttr), _OUT)
_declare_sized("h_listener_accept", c_int, _OBJECT, _OBJECT, POINTER(StreamAttr),
         POINTER(CStreamPair), c_int64)
_declare("h_listener_fd", c_int, _OBJECT)
_declare("h_listener_destroy", None, _OBJECT)
_declare_sized("h_connect", c_int, _OBJECT, c_char_p, POINTER(ConnectAttr), POINTER(CStreamPair),
         c_int64)
_declare_sized("h_channel_connect", c_int, _OBJECT, c_char_p, POINTER(ChannelAttr), _OUT, c_int64)
_declare_sized("h_channel_accept", c_int, _OBJECT, _OBJECT, POINTER(ChannelAttr), _OUT, c_int64)
_declare_sized("h_channel_pair", c_int, _OBJECT, _OBJECT, POINTER(ChannelAttr), _OUT, _OUT)
_declare_sized("h_channel_create", c_int, _OBJECT, POINTER(ChannelAttr), _OUT)
_declare("h_channel_seed", None, _OBJECT, POINTER(CChannelSeed))
_declare("h_channel_join", c_int, _OBJECT, POINTER(CChannelSeed))
_declare("h_channel_peer", c_int, _OBJECT, POINTER(CPeer))
_declare_sized("h_channel_stats", c_int, _OBJECT, POINTER(CChannelStats))
_declare("h_channel_send", c_int, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_channel_send_checked", c_int, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_channel_sendv", c_int, _OBJECT, POINTER(IoVec), c_int, c_int64)
_declare("h_channel_reserve", c_int, _OBJECT, c_size_t, POINTER(CLoan))
_declare("h_channel_commit", c_int, _OBJECT, POINTER(CLoan), c_size_t, c_int64)
_declare("h_channel_abandon", c_int, _OBJECT, POINTER(CLoan))
_declare("h_channel_receive", c_int, _OBJECT, POINTER(CMessage), c_int64)
_declare("h_channel_release", c_int, _OBJECT, POINTER(CMessage))
_declare("h_channel_receive_copy", c_ssize_t, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_channel_request_send", c_int, _OBJECT, c_void_p, c_size_t, POINTER(c_uint32), c_int64)
_declare("h_channel_request_wait", c_int, _OBJECT, c_uint32, POINTER(CMessage), c_int64)
_declare("h_channel_request_cancel", None, _OBJECT, c_uint32)
_declare("h_channel_is_request", c_int, POINTER(CMessage))
_declare("h_channel_reply", c_int, _OBJECT, POINTER(CMessage), c_void_p, c_size_t, c_int64)
_declare("h_channel_reply_only", None, _OBJECT)
_declare("h_channel_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_channel_pause", None, _OBJECT, c_bool)
_declare("h_channel_shutdown", c_int, _OBJECT, c_int64)
_declare("h_channel_close", c_int, _OBJECT, c_int64)
_declare_sized("h_publisher_create", c_int, c_char_p, POINTER(PublisherAttr), _OUT)
_declare("h_publisher_send", c_int, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_publisher_reserve", c_int, _OBJECT, c_size_t, POINTER(CLoan))
_declare("h_publisher_commit", c_int, _OBJECT, POINTER(CLoan), c_size_t, c_int64)
_declare("h_publisher_abandon", c_int, _OBJECT, POINTER(CLoan))
_declare("h_publisher_run", c_int, _OBJECT, c_int64)
_declare("h_publisher_fd", c_int, _OBJECT)
_declare("h_publisher_dispatch", c_int, _OBJECT)
_declare_sized("h_publisher_stats", c_int, _OBJECT, POINTER(CPublisherStats))
_declare("h_publisher_close", c_int, _OBJECT, c_int64)
_declare_sized("h_subscriber_create", c_int, c_char_p, POINTER(SubscriberAttr), _OUT, c_int64)
_declare("h_subscriber_receive", c_int, _OBJECT, POINTER(CPublication), c_int64)
_declare("h_subscriber_release", c_int, _OBJECT, POINTER(CPublication))
_declare("h_subscriber_fd", c_int, _OBJECT)
_declare("h_subscriber_close", c_int, _OBJECT)
_declare_sized("h_work_create", c_int, c_char_p, POINTER(WorkAttr), _OUT)
_declare("h_work_add", c_int, _OBJECT, c_void_p, c_size_t, POINTER(c_uint64), c_int64)
_declare("h_work_run", c_int, _OBJECT, c_int64)
_declare("h_work_fd", c_int, _OBJECT)
_declare("h_work_dispatch", c_int, _OBJECT)
_declare_sized("h_work_stats", c_int, _OBJECT, POINTER(CWorkStats))
_declare("h_work_close", c_int, _OBJECT, c_int64)
_declare_sized("h_worker_create", c_int, c_char_p, POINTER(WorkerAttr), _OUT, c_int64)
_declare("h_worker_take", c_int, _OBJECT, POINTER(CWorkItem), c_int64)
_declare("h_worker_done", c_int, _OBJECT, POINTER(CWorkItem), c_void_p, c_size_t, c_int64)
_declare("h_worker_fail", c_int, _OBJECT, POINTER(CWorkItem), c_int64)
_declare("h_worker_fd", c_int, _OBJECT)
_declare("h_worker_close", c_int, _OBJECT, c_int64)
_declare_sized("h_datagram_receiver_create", c_int, _OBJECT, POINTER(DatagramAttr), _OUT)
_declare("h_datagram_receiver_destroy", c_int, _OBJECT)
_declare("h_datagram_receiver_seed", None, _OBJECT, POINTER(CSeed))
_declare("h_datagram_receiver_address", None, _OBJECT, POINTER(CDatagramAddress))
_declare("h_datagram_receive", c_int, _OBJECT, POINTER(CDatagram), c_int64)
_declare("h_datagram_release", None, _OBJECT)
_declare("h_datagram_revoke", c_int, _OBJECT)
_declare("h_datagram_rekey", c_int, _OBJECT, POINTER(CSeed))
_declare_sized("h_datagram_receiver_stats", c_int, _OBJECT, POINTER(CDatagramStats))
_declare("h_datagram_receiver_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_datagram_resolve", c_int, POINTER(CSeed), POINTER(CDatagramAddress))
_declare("h_datagram_send", c_int, _OBJECT, POINTER(CDatagramAddress), c_size_t, c_void_p,
         c_size_t, POINTER(CDatagramAddress), c_int64)
_declare("h_datagram_request", c_int, _OBJECT, POINTER(CDatagramAddress), c_void_p, c_size_t,
         POINTER(CDatagram), c_int64)
_declare_sized("h_tagged_receiver_create", c_int, _OBJECT, POINTER(TaggedAttr), _OUT)
_declare("h_tagged_receiver_destroy", c_int, _OBJECT)
_declare("h_tagged_receiver_seed", None, _OBJECT, POINTER(CSeed))
_declare("h_tagged_receiver_rekey", c_int, _OBJECT, POINTER(CSeed))
_declare("h_tagged_receiver_data", c_void_p, _OBJECT)
_declare("h_tagged_get_tag", c_int, _OBJECT, POINTER(c_uint64), POINTER(c_uint32), c_int64)
_declare("h_tagged_get_specific_tag", c_int, _OBJECT, c_uint64, POINTER(c_uint32), c_int64)
_declare("h_tagged_receiver_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_tagged_resolve", c_int, POINTER(CSeed), POINTER(CTaggedAddress))
_declare("h_tagged_send", c_int, _OBJECT, POINTER(CTaggedAddress), c_size_t, c_void_p, c_size_t,
         c_uint64, c_int64)
_declare("h_share_split", c_int, POINTER(CShare), c_uint32, POINTER(c_uint64), POINTER(CShare))
_declare("h_share_export", c_int, POINTER(CShare), POINTER(CSeed))
_declare("h_share_import", c_int, POINTER(CSeed), POINTER(CShare))
_declare("h_share_send", c_int, _OBJECT, POINTER(CShare), c_void_p, c_size_t, c_int64)
_declare_sized("h_group_create", c_int, _OBJECT, c_size_t, POINTER(GroupAttr), _OUT)
_declare("h_group_destroy", c_int, _OBJECT)
_declare("h_group_share", None, _OBJECT, POINTER(CShare))
_declare("h_group_receive", c_int, _OBJECT, POINTER(c_void_p), c_int64)
_declare("h_group_reset", c_int, _OBJECT, c_uint32)
_declare("h_group_on_ready", None, _OBJECT, c_void_p, c_void_p)
_declare("h_gather_create", c_int, _OBJECT, c_uint32, POINTER(c_uint64), c_uint64, _OUT)
_declare("h_gather_destroy", c_int, _OBJECT)
_declare("h_gather_seed", c_int, _OBJECT, c_uint32, POINTER(CSeed))
_declare("h_gather_offset", c_uint64, _OBJECT, c_uint32)
_declare("h_gather_receive", c_int, _OBJECT, POINTER(c_void_p), c_int64)
_declare("h_gather_release", c_int, _OBJECT)
_declare("h_gather_join", c_int, _OBJECT, POINTER(CSeed), _OUT)
_declare("h_gather_length", c_uint64, _OBJECT)
_declare("h_gather_send", c_int, _OBJECT, c_void_p, c_size_t, c_int64)
_declare("h_gather_wait", c_int, _OBJECT, c_int64)
_declare("h_gather_leave", c_int, _OBJECT)
_declare("h_barrier_create", c_int, _OBJECT, c_uint32, _OUT)
_declare("h_barrier_seed", c_int, _OBJECT, c_uint32, POINTER(CSeed))
_declare("h_barrier_join", c_int, _OBJECT, POINTER(CSeed), _OUT)
_declare("h_barrier_wait", c_int, _OBJECT, c_int64)
_declare("h_barrier_destroy", c_int, _OBJECT)


# ---- what C is given ----

def text(name: Any) -> bytes:
    """A path, or a name of a device, for C, where a null character would end it."""
    encoded = os.fsencode(name)
    if b"\0" in encoded:
        raise ValueError(f"{name!r} has a null character in it")
    return encoded


def unsigned(value: int, bits: int = 64) -> int:
    """The integer, if it fits; ctypes would take what is left of it."""
    if not 0 <= value < 1 << bits:
        raise OverflowError(f"{value} is not in 0..{(1 << bits) - 1}")
    return value


# ---- buffers ----

class _PyBuffer(Structure):
    """Py_buffer of Python's C API"""
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t),
                ("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int),
                ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p),
                ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None


class Buffer:
    """Address and length of what has the buffer protocol, while in its context.

    Raises TypeError for what has not, BufferError for what is not contiguous or, if
    it is to be written to, is read-only.
    """
    __slots__ = ("_view", "address", "length")

    def __init__(self, data: Any, writable: bool = False):
        view = _PyBuffer()
        _get_buffer(data, view, 1 if writable else 0)
        self._view = view
        self.address = view.buf
        self.length = view.len

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *exc: Any) -> None:
        _release_buffer(self._view)
