# SPDX-License-Identifier: GPL-2.0-only
"""A request and its reply between two threads, on the path that is given."""
import sys
import threading

import hamlyn


def serve(listener):
    with listener.accept() as channel, channel.receive() as message:
        channel.reply(message, bytes(message.data).upper())


with hamlyn.Device() as device, hamlyn.Manager(device) as manager:
    with hamlyn.Listener(manager, sys.argv[1]) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        with hamlyn.connect(manager, sys.argv[1]) as channel:
            with channel.request(b"hello") as reply:
                assert bytes(reply) == b"HELLO", bytes(reply)
        server.join()
