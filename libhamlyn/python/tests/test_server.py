# SPDX-License-Identifier: MIT
"""Servers, and channels that are dialled."""

import os
import signal
import threading
import time
import unittest

import hamlyn
from common import PATIENCE, name


def echo(_channel, message):
    return message.data


class Servers(unittest.TestCase):
    def serve(self, handler=echo, **options):
        """A server that runs in a thread until the test is over."""
        self.path = name("server")
        self.raised = []
        server = hamlyn.serve(self.path, handler, **options)

        def run():
            while True:
                try:
                    server.run()
                    return
                except ZeroDivisionError as e:
                    self.raised.append(e)

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            server.stop()
            thread.join(PATIENCE)
            server.close(PATIENCE)

        self.addCleanup(end)
        return server

    def dial(self):
        channel = hamlyn.dial(self.path, PATIENCE)
        self.addCleanup(channel.close, 0)
        return channel

    def asks(self, channel, text=b"are you there?"):
        with channel.request(text, PATIENCE) as reply:
            self.assertEqual(bytes(reply.data), text)

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < end:
            time.sleep(0.001)
        self.assertTrue(condition())

    def test_messages_come_back(self):
        self.serve()
        with self.dial() as channel:
            for size in 0, 1, 100, 5000, 300000:
                data = os.urandom(size)
                self.asks(channel, data)
                channel.send(data, PATIENCE)
                self.assertEqual(channel.receive_bytes(PATIENCE), data)
            manager = channel.manager
        self.assertTrue(manager.closed)

    def test_a_hundred_clients(self):
        server = self.serve(clients=100, buffers=4, buffer_size=256)
        with hamlyn.Device() as device, hamlyn.Manager(device, channels=100) as manager:
            channels = [hamlyn.connect(manager, self.path, PATIENCE, buffers=4, buffer_size=256)
                        for _ in range(100)]
            for _ in range(2):
                for number, channel in enumerate(channels):
                    self.asks(channel, b"%d" % number)
            for channel in channels:
                channel.close(PATIENCE)
        self.until(lambda: not server.clients)

    def test_who_takes_no_replies_delays_nobody_else(self):
        self.serve()
        slow, other = self.dial(), self.dial()
        sent = tries = 0
        while tries < 30 and sent < 20000:
            try:
                slow.send(b"%d" % sent, 0)
                sent += 1
                tries = 0
            except BlockingIOError:
                tries += 1
                time.sleep(0.001)
        self.assertLess(sent, 20000)
        for _ in range(20):
            self.asks(other)
        for number in range(sent):
            self.assertEqual(slow.receive_bytes(PATIENCE), b"%d" % number)
        self.asks(slow)

    def test_a_client_is_killed(self):
        reasons = []
        server = self.serve(on_end=lambda _channel, reason: reasons.append(reason))
        pid = os.fork()
        if not pid:
            try:
                channel = hamlyn.dial(self.path, PATIENCE)
                channel.send(b"last words", PATIENCE)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        other = self.dial()
        self.asks(other)
        os.waitpid(pid, 0)
        self.until(lambda: reasons)
        self.assertIsInstance(reasons[0], OSError)
        self.asks(other)
        self.assertEqual(server.clients, 1)

    def test_half_closed(self):
        self.serve()
        with self.dial() as channel:
            for number in range(10):
                channel.send(b"%d" % number, PATIENCE)
            try:
                channel.shutdown(0)
            except BlockingIOError:
                pass
            got = [bytes(message.data) for message in channel]
        self.assertEqual(got, [b"%d" % number for number in range(10)])

    def test_what_a_handler_raises(self):
        def handler(_channel, message):
            if message.data == b"error":
                raise OSError("nonsense")
            if message.data == b"bug":
                return 1 // 0
            return message.data

        self.serve(handler)
        good = self.dial()
        for text in b"error", b"bug":
            with self.dial() as bad:
                bad.send(text, PATIENCE)
                try:
                    self.assertIsNone(bad.receive(PATIENCE))
                except ConnectionResetError:
                    pass
            self.asks(good)
        self.assertEqual(len(self.raised), 1)

    def test_no_more_clients_than_there_may_be(self):
        server = self.serve(clients=1)
        first = self.dial()
        self.asks(first)
        try:
            with hamlyn.dial(self.path, PATIENCE) as second:
                self.assertIsNone(second.receive(PATIENCE))
        except OSError:
            pass
        self.asks(first)
        self.assertEqual(server.clients, 1)

    def test_the_time_is_over(self):
        with hamlyn.serve(name("time"), echo) as server:
            with self.assertRaises(TimeoutError):
                server.run(0.001)
            server.stop()
            server.run()
        server.close()

    def test_nobody_there(self):
        with self.assertRaises((FileNotFoundError, ConnectionRefusedError)):
            hamlyn.dial(name("nobody"))
        with self.assertRaises(hamlyn.Error):
            hamlyn.dial(name("nobody"), device="shm:no/name")
        with self.assertRaises(hamlyn.Error):
            hamlyn.serve("/nonexistent/path", echo)


if __name__ == "__main__":
    unittest.main()
