# SPDX-License-Identifier: MIT
"""libhamlyn for Python: protected messages between processes, without system calls.

    import hamlyn

    with hamlyn.dial("/run/echo") as channel:
        channel.send(b"hello")
        with channel.receive() as message:
            print(bytes(message.data))

Calls let other threads of the interpreter run while they are in the library. Objects
can be used by several threads; calls on what was closed raise ValueError, also in a
child process after fork(). For asyncio there is hamlyn.aio.
"""

from ._channel import LINGER, Channel, Listener, Loan, Message, connect, connect_streams, dial
from ._datagram import (Datagram, DatagramAddress, DatagramReceiver, Tag, TaggedAddress,
                        TaggedReceiver)
from ._device import (META_FAST, Area, Device, Notification, NotificationQueue, Slot, SlotMode,
                      Terminus, Ticket, Watch)
from ._errors import Error
from ._group import Barrier, Gather, GatherMember, Group, Share
from ._manager import Manager
from ._publish import Policy, Publication, Publisher, Subscriber
from ._server import Server, serve
from ._stream import Peer, Record, StreamPair, StreamReceiver, StreamSender
from ._work import Worker, WorkItem, WorkQueue

__version__ = "0.3.0"

__all__ = [
    "Area", "Barrier", "Channel", "Datagram", "DatagramAddress", "DatagramReceiver", "Device",
    "Error", "Gather", "GatherMember", "Group", "LINGER", "Listener", "Loan", "META_FAST",
    "Manager", "Message", "Notification", "NotificationQueue", "Peer", "Policy", "Publication",
    "Publisher", "Record", "Server", "Share", "Slot", "SlotMode", "StreamPair",
    "StreamReceiver", "StreamSender", "Subscriber", "Tag", "TaggedAddress", "TaggedReceiver",
    "Terminus", "Ticket", "Watch", "WorkItem", "WorkQueue", "Worker", "connect",
    "connect_streams", "dial", "serve",
]
