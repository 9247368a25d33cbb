# SPDX-License-Identifier: MIT
"""Channels, listeners, streams."""

import array
import errno
import mmap
import multiprocessing
import os
import signal
import tempfile
import threading
import time
import unittest

import hamlyn
from common import PATIENCE, DeviceTest, name

try:
    import numpy
except ImportError:
    numpy = None


def echo(path):
    """A server, in a process of its own."""
    with hamlyn.Device() as device, hamlyn.Manager(device) as manager:
        with hamlyn.Listener(manager, path) as listener:
            with listener.accept(PATIENCE) as channel:
                for message in channel:
                    with message:
                        channel.send(message.data, PATIENCE)


class Channels(DeviceTest):
    def test_what_was_sent_is_drained(self):
        a, b = self.pair(max_message=1 << 20, buffers=2, buffer_size=4096, max_buffer_size=4096)
        with self.assertRaises((BlockingIOError, TimeoutError)):
            a.send(bytes(4096 * 8 + 100), 0.05)
            self.manager.drain(0)
        b.close()
        self.manager.drain(PATIENCE)

    def test_a_loan_is_built_where_it_leaves_from(self):
        a, b = self.pair()
        with a.reserve(5000) as loan:
            self.assertEqual(len(loan), 5000)
            loan.data[:] = b"x" * 5000
            with self.assertRaises(hamlyn.Error) as caught:
                loan.commit(5001)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            part = loan.data[10:20]
            with self.assertRaises(BufferError):
                loan.commit(4000)
            part.release()
            loan.commit(4000, PATIENCE)
            for use in (lambda: loan.data, loan.commit, lambda: len(loan)):
                with self.assertRaises(ValueError):
                    use()
        self.assertEqual(b.receive_bytes(PATIENCE), b"x" * 4000)
        loan = a.reserve(3)
        loan.data[:] = b"all"
        loan.commit()
        self.assertEqual(b.receive_bytes(PATIENCE), b"all")

    def test_memory_that_has_gone_is_an_error(self):
        a, b = self.pair()
        with tempfile.TemporaryFile() as f:
            f.truncate(8192)
            with mmap.mmap(f.fileno(), 8192) as memory:
                memory[:4096] = b"x" * 4096
                f.truncate(4096)
                with self.assertRaises(hamlyn.Error) as caught:
                    a.send_checked(memory, PATIENCE)
                self.assertEqual(caught.exception.errno, errno.EFAULT)
                with memoryview(memory) as view:
                    a.send_checked(view[:4096], PATIENCE)
        self.assertEqual(b.receive_bytes(PATIENCE), b"x" * 4096)

    def test_a_loan_that_is_not_committed_goes_back(self):
        a, b = self.pair()
        for _ in range(100):
            a.reserve(100000)
        before = self.manager.stats()["send_bytes"]
        kept = []
        for _ in range(100):
            with a.reserve(100000) as loan:
                kept = [loan.data[:10]]
        kept[0][:] = b"0123456789"
        del kept
        self.assertLessEqual(self.manager.stats()["send_bytes"], before + (1 << 18))
        loan = a.reserve(10)
        b.close(0)
        with self.assertRaises(BrokenPipeError):
            while True:
                loan.commit(timeout=PATIENCE)
                loan = a.reserve(10)
        a.close(0)
        loan.abandon()

    def test_stats(self):
        a, b = self.pair(buffers=4, buffer_size=1024)
        a.send(b"four")
        with b.receive(PATIENCE):
            self.assertEqual(b.stats()["held"], 1)
        self.assertEqual((a.stats()["sent"], a.stats()["sent_bytes"]), (1, 4))
        self.assertEqual((b.stats()["received"], b.stats()["received_bytes"]), (1, 4))
        self.assertEqual((b.stats()["buffers"], b.stats()["buffer_size"]), (4, 1024))
        stats = self.manager.stats()
        self.assertGreater(stats["arrivals"], 0)
        self.assertGreaterEqual(stats["receive_bytes"], 8192)
        a.close()
        with self.assertRaises(ValueError):
            a.stats()

    def test_both_ways(self):
        a, b = self.pair()
        a.send(b"there")
        b.send(b"back")
        with b.receive(PATIENCE) as message:
            self.assertEqual(message.data, b"there")
            self.assertEqual(len(message), 5)
            self.assertTrue(message.data.readonly)
        self.assertEqual(a.receive_bytes(PATIENCE), b"back")
        self.assertIsNone(a.peer)

    def test_empty_message(self):
        a, b = self.pair()
        a.send(b"")
        with b.receive(PATIENCE) as message:
            self.assertEqual(bytes(message), b"")

    def test_buffer_protocol(self):
        a, b = self.pair()
        mapped = mmap.mmap(-1, 4096)
        mapped[:3] = b"map"
        sent = [b"bytes", bytearray(b"bytearray"), memoryview(b"read-only")[2:],
                memoryview(bytearray(b"writable"))[1:3], array.array("d", [1.5, 2.5]), mapped]
        if numpy is not None:
            sent.append(numpy.arange(12, dtype="int32").reshape(3, 4))
        for data in sent:
            a.send(data)
            self.assertEqual(b.receive_bytes(PATIENCE), memoryview(data).tobytes())
        a.sendmsg([b"in ", bytearray(b"three "), memoryview(b"pieces")])
        self.assertEqual(b.receive_bytes(PATIENCE), b"in three pieces")
        with self.assertRaises(BufferError):
            a.send(memoryview(b"every other")[::2])
        with self.assertRaises(TypeError):
            a.send("text")
        with self.assertRaises(TypeError):
            a.send(5)

    def test_receive_into(self):
        a, b = self.pair()
        a.send(b"hello")
        with self.assertRaises(hamlyn.Error) as caught:
            b.receive_into(bytearray(2), PATIENCE)
        self.assertEqual(caught.exception.errno, errno.EMSGSIZE)
        room = bytearray(10)
        self.assertEqual(b.receive_into(room, PATIENCE), 5)
        self.assertEqual(room[:5], b"hello")
        with self.assertRaises(BufferError):
            b.receive_into(bytes(10), 0)

    def test_sixteen_mebibytes(self):
        a, b = self.pair()
        data = os.urandom(1 << 20) * 16
        sender = threading.Thread(target=a.send, args=(data, PATIENCE))
        sender.start()
        with b.receive(PATIENCE) as message:
            self.assertTrue(message.data == data)
        sender.join()
        with self.assertRaises(hamlyn.Error) as caught:
            a.send(data + b"x", PATIENCE)
        self.assertEqual(caught.exception.errno, errno.EMSGSIZE)

    def test_memory_of_the_manager(self):
        a, b = self.pair()
        memory = self.manager.allocate(100000)
        memory[:] = b"m" * 100000
        sender = threading.Thread(target=a.send, args=(memory, PATIENCE))
        sender.start()
        self.assertEqual(b.receive_bytes(PATIENCE), b"m" * 100000)
        sender.join()

    def test_time_outs(self):
        _, b = self.pair()
        with self.assertRaises(BlockingIOError):
            b.receive(0)
        start = time.monotonic()
        with self.assertRaises(TimeoutError):
            b.receive(0.3)
        self.assertGreaterEqual(time.monotonic() - start, 0.29)

    def test_for_ever(self):
        a, b = self.pair()
        for data in (b"short", b"x" * 200):
            a.send(data, float("inf"))
            self.assertEqual(b.receive_bytes(float("inf")), data)
        a.sendmsg([b"in", b"two"], 1e300)
        self.assertEqual(b.receive_bytes(10**30), b"intwo")
        hamlyn.Manager(self.device, spin=float("inf")).close()
        hamlyn.Listener(self.manager, name("patient"), patience=float("inf")).close()

    def test_full(self):
        a, b = self.pair(buffers=2, buffer_size=128, max_buffer_size=1)
        with self.assertRaises(BlockingIOError):
            for _ in range(100000):
                a.send(b"x" * 100, 0)
        with self.assertRaises(TimeoutError):
            a.send(b"x" * 100, 0.02)
        self.assertEqual(b.receive_bytes(PATIENCE), b"x" * 100)

    def test_ends(self):
        a, b = self.pair()
        a.send(b"last")
        a.shutdown(PATIENCE)
        self.assertEqual([bytes(m) for m in b], [b"last"])
        self.assertIsNone(b.receive_bytes(0))
        self.assertIsNone(b.receive_into(bytearray(1), 0))
        with self.assertRaises(BrokenPipeError):
            a.send(b"x")
        b.send(b"still")
        self.assertEqual(a.receive_bytes(PATIENCE), b"still")

    def test_other_end_closed(self):
        a, b = self.pair()
        b.close()
        with self.assertRaises(BrokenPipeError):
            for _ in range(1000):
                a.send(b"x", 0.01)
        self.assertIsNone(a.receive(PATIENCE))

    def test_request(self):
        a, b = self.pair()

        def answer():
            with b.receive(PATIENCE) as message:
                b.send(bytes(message).upper())

        thread = threading.Thread(target=answer)
        thread.start()
        with a.request(b"question", PATIENCE) as reply:
            self.assertEqual(bytes(reply), b"QUESTION")
        thread.join()

    def test_request_gets_its_own_reply(self):
        a, b = self.pair()
        for timeout in (0.01, 0):
            with self.assertRaises(TimeoutError):
                a.request(b"late", timeout)
            late = b.receive(PATIENCE)
            self.assertTrue(late.is_request)
            first, second = a.request_send(b"1"), a.request_send(b"2")
            b.reply(late, b"late")
            late.release()
            b.send(b"plain")
            with self.assertRaises(BlockingIOError):
                a.request_wait(first, 0)
            with b.receive(PATIENCE) as one, b.receive(PATIENCE) as two:
                b.reply(two, bytearray(b"to 2"))
                b.reply(one, b"to 1")
            for number in (first, second):
                with a.request_wait(number, PATIENCE) as reply:
                    self.assertFalse(reply.is_request)
                    self.assertEqual(bytes(reply), b"to 1" if number == first else b"to 2")
            self.assertEqual(a.receive_bytes(PATIENCE), b"plain")
            with self.assertRaises(hamlyn.Error) as e:
                a.request_wait(first, PATIENCE)
            self.assertEqual(e.exception.errno, errno.EINVAL)
        a.send(b"no request")
        with b.receive(PATIENCE) as message:
            with self.assertRaises(hamlyn.Error):
                b.reply(message, b"x")
            with self.assertRaises(ValueError):
                a.reply(message, b"x")
        with self.assertRaises(ValueError):
            b.reply(message, b"x")

    def test_request_that_was_not_sent(self):
        a, b = self.pair()
        sent = 0
        with self.assertRaises(TimeoutError):
            while True:
                a.send(b"x", 0.05)
                sent += 1
        for timeout in (0, 0.01):
            with self.assertRaises(BlockingIOError):
                a.request(b"?", timeout)
        for _ in range(sent):
            self.assertEqual(b.receive_bytes(PATIENCE), b"x")
        with self.assertRaises(TimeoutError):
            b.receive(0.01)

    def test_seeds(self):
        a, b = hamlyn.Channel(self.manager), hamlyn.Channel(self.manager)
        a.join(b.seed())
        b.join(bytearray(a.seed()))
        a.send(b"by seeds")
        self.assertEqual(b.receive_bytes(PATIENCE), b"by seeds")
        with self.assertRaises(hamlyn.Error):
            hamlyn.Channel(self.manager).join(b"short")
        with self.assertRaises(hamlyn.Error) as caught:
            hamlyn.Channel(self.manager).join(a.seed())
        self.assertEqual(caught.exception.errno, errno.EALREADY)
        a.close()
        b.close()

    def test_echo_between_processes(self):
        path = name("echo")
        process = multiprocessing.get_context("spawn").Process(target=echo, args=(path,))
        process.start()
        with hamlyn.connect(self.manager, path, PATIENCE, wait_for_server=True) as channel:
            self.assertEqual(channel.peer.pid, process.pid)
            self.assertEqual(channel.peer.uid, os.geteuid())
            for i in range(500):
                with channel.request(str(i).encode(), PATIENCE) as reply:
                    self.assertEqual(bytes(reply), str(i).encode())
            with channel.request(bytes(300000), PATIENCE) as reply:
                self.assertEqual(len(reply), 300000)
        process.join(PATIENCE)
        self.assertEqual(process.exitcode, 0)

    def test_killed_peer(self):
        path = name("killed")
        process = multiprocessing.get_context("spawn").Process(target=echo, args=(path,))
        process.start()
        channel = hamlyn.connect(self.manager, path, PATIENCE, wait_for_server=True)
        channel.request(b"are you there?", PATIENCE).release()
        os.kill(process.pid, signal.SIGKILL)
        process.join(PATIENCE)
        with self.assertRaises(ConnectionResetError):
            channel.receive(PATIENCE)
        channel.close()

    def test_null_characters(self):
        for call in (lambda: hamlyn.connect(self.manager, name("a\0b"), 0),
                     lambda: hamlyn.connect_streams(self.manager, name("a\0b"), 0),
                     lambda: hamlyn.Listener(self.manager, name("a\0b")),
                     lambda: hamlyn.Device("shm:null\0x")):
            with self.assertRaisesRegex(ValueError, "null character"):
                call()

    def test_nobody_listens(self):
        with self.assertRaises(ConnectionRefusedError):
            hamlyn.connect(self.manager, name("nobody"), 1)
        with self.assertRaises(FileNotFoundError):
            hamlyn.connect(self.manager, "/nonexistent/hamlyn", 1)
        with hamlyn.Listener(self.manager, name("taken")) as listener:
            with self.assertRaises(OSError) as caught:
                hamlyn.Listener(self.manager, name("taken"))
            self.assertEqual(caught.exception.errno, errno.EADDRINUSE)
            with self.assertRaises(TimeoutError):
                listener.accept(0.01)
            with self.assertRaises(BlockingIOError):
                listener.accept(0)

    def test_user_who_may_not(self):
        path = name("users")
        with hamlyn.Listener(self.manager, path, uids=[54321]) as listener:
            refused = []

            def client():
                try:
                    hamlyn.connect(self.manager, path, PATIENCE)
                except PermissionError as e:
                    refused.append(e)

            # It is refused by who accepts: he does so until it has come.
            thread = threading.Thread(target=client, daemon=True)
            thread.start()
            end = time.monotonic() + PATIENCE
            while thread.is_alive() and time.monotonic() < end:
                with self.assertRaises(TimeoutError):
                    listener.accept(0.1)
            thread.join(0)
            self.assertFalse(thread.is_alive())
            self.assertEqual(len(refused), 1)
        with self.assertRaises(ValueError):
            hamlyn.Listener(self.manager, path, uids=[])

    def test_call_backs(self):
        a, b = self.pair()
        got = []
        b.on_ready(lambda: got.append(b.receive_bytes(0)))
        self.assertGreaterEqual(self.manager.fileno(), 0)
        a.send(b"x")
        end = time.monotonic() + PATIENCE
        while not got and time.monotonic() < end:
            self.manager.wait(PATIENCE)
            try:
                self.manager.dispatch()
            except BlockingIOError:
                pass  # it was called for something of the library's own
        self.assertEqual(got, [b"x"])

        def bad():
            raise KeyError("from a call back")

        b.on_ready(bad)
        a.send(b"y")
        with self.assertRaises(KeyError):
            while time.monotonic() < end:
                self.manager.dispatch()
        b.on_ready(b.close)
        while not b.closed and time.monotonic() < end:
            self.manager.dispatch()
        self.assertTrue(b.closed)

    def test_a_kick_ends_a_wait(self):
        with self.assertRaises(BlockingIOError):
            self.manager.wait(0)
        self.manager.kick()
        self.manager.kick()
        self.manager.wait()
        with self.assertRaises(BlockingIOError):
            self.manager.wait(0)
        kicker = threading.Timer(0.05, self.manager.kick)
        kicker.start()
        self.manager.wait()
        kicker.join()

    def test_streams(self):
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        with self.assertRaises(hamlyn.Error) as caught:
            hamlyn.StreamSender(self.manager, receiver.seed())
        self.assertEqual(caught.exception.errno, errno.EALREADY)
        self.assertEqual(sender.send(b"hello "), 6)
        sender.send(bytearray(b"world"))
        sender.flush(PATIENCE)
        got = b""
        while len(got) < 11:
            got += receiver.read(100, PATIENCE)
        self.assertEqual(got, b"hello world")
        sender.send(b"more")
        sender.close()
        sender.close()
        self.assertEqual(b"".join(bytes(r) for r in receiver), b"more")
        self.assertEqual(receiver.read(1), b"")
        with self.assertRaises(ValueError):
            sender.send(b"x")
        with self.assertRaises(hamlyn.Error):
            hamlyn.StreamSender(self.manager, b"short")

    def test_closed_while_another_thread_sends(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128, max_buffer_size=1)
        self.addCleanup(receiver.close)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        ended = []

        def send():
            try:
                sender.send(bytes(100000))
            except ValueError as e:
                ended.append(e)

        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(0.1)
        with self.assertRaises(TimeoutError):
            sender.close(0.3)  # nobody receives what was sent
        thread.join(PATIENCE)
        self.assertEqual(len(ended), 1)
        sender.close(0.3)

    def test_closed_while_another_thread_sends_and_all_arrives(self):
        for patience in (None, float("inf"), PATIENCE):
            other = hamlyn.Manager(self.device)
            receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128,
                                             max_buffer_size=1)
            sender = hamlyn.StreamSender(self.manager, receiver.seed())
            ended = []

            def send(to=sender, ended=ended):
                try:
                    to.send(bytes(100000))
                except ValueError as e:
                    ended.append(e)

            def read(source=receiver):
                time.sleep(0.5)
                while source.read(1000, PATIENCE):
                    pass

            threads = [threading.Thread(target=f) for f in (send, read)]
            for thread in threads:
                thread.start()
            time.sleep(0.1)
            sender.close(patience)
            for thread in threads:
                thread.join(PATIENCE)
            self.assertEqual(len(ended), 1)
            other.close()

    def test_shut_down_in_several_tries(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other)
        self.addCleanup(receiver.close)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        self.addCleanup(sender.close, 0)
        sender.send(b"all", PATIENCE)
        with self.assertRaises(BlockingIOError):
            sender.shutdown(0)
        self.assertEqual(receiver.read(10, PATIENCE), b"all")
        self.assertEqual(receiver.read(10, PATIENCE), b"")
        sender.shutdown(PATIENCE)
        with self.assertRaises(BrokenPipeError):
            sender.send(b"more", PATIENCE)
        sender.close(0)

    def test_closing_goes_on_after_a_signal(self):
        other = hamlyn.Manager(self.device)
        receiver = hamlyn.StreamReceiver(other)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        handled = []
        before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        sender.send(b"all", PATIENCE)
        got = []

        def read():
            time.sleep(0.5)
            got.append(receiver.read(10, PATIENCE))
            got.append(receiver.read(10, PATIENCE))

        thread = threading.Thread(target=read)
        thread.start()
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.02)
        sender.close(PATIENCE)
        signal.setitimer(signal.ITIMER_REAL, 0)
        thread.join(PATIENCE)
        self.assertEqual(got, [b"all", b""])
        self.assertTrue(handled)
        other.close()

    def test_closed_while_another_thread_sends_until_ctrl_c(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128, max_buffer_size=1)
        self.addCleanup(receiver.close)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        ended = []

        def close():
            time.sleep(0.1)
            try:
                sender.close(None)  # nobody receives what was sent
            except TimeoutError as e:
                ended.append(e)

        def interrupt():
            time.sleep(0.5)  # it closes on its way out by then
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threads = [threading.Thread(target=f, daemon=True) for f in (close, interrupt)]
        for thread in threads:
            thread.start()
        with self.assertRaises(KeyboardInterrupt):
            sender.send(bytes(100000))
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(len(ended), 1)

    def test_closed_by_a_handler_of_a_signal(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128, max_buffer_size=1)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        took = []

        def close(*_):
            begin = time.monotonic()
            sender.close(PATIENCE)
            took.append(time.monotonic() - begin)
            receiver.close()  # nobody is waited for any more

        before = signal.signal(signal.SIGALRM, close)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with self.assertRaises((ValueError, hamlyn.Error)):
            sender.send(bytes(100000))
        self.assertEqual(len(took), 1)
        self.assertLess(took[0], PATIENCE / 2)

    def test_sending_takes_all_of_its_time(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128, max_buffer_size=1)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        self.addCleanup(sender.close, 0)
        data = bytes(range(250)) * 8
        got = bytearray()

        def read():
            time.sleep(0.5)  # longer than what send() sleeps at a time
            while len(got) < len(data):
                got.extend(receiver.read(100, PATIENCE))

        thread = threading.Thread(target=read)
        thread.start()
        self.assertEqual(sender.send(data, PATIENCE), len(data))
        sender.flush(PATIENCE)
        thread.join(PATIENCE)
        self.assertEqual(got, data)
        before = time.monotonic()
        self.assertLess(sender.send(data, 0.5), len(data))
        self.assertGreaterEqual(time.monotonic() - before, 0.5)
        with self.assertRaises(BlockingIOError):
            sender.send(data, 0)

    def test_sending_takes_no_more_than_its_time(self):
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        receiver = hamlyn.StreamReceiver(other, buffers=2, buffer_size=128, max_buffer_size=1)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        self.addCleanup(sender.close, 0)
        over = threading.Event()
        end = time.monotonic() + PATIENCE

        def drip():
            while not over.wait(0.1) and time.monotonic() < end:
                receiver.read(100, PATIENCE)

        thread = threading.Thread(target=drip)
        thread.start()
        before = time.monotonic()
        taken = sender.send(bytes(1000000), 0.5)
        took = time.monotonic() - before
        over.set()
        thread.join(PATIENCE)
        self.assertLess(taken, 1000000)
        self.assertGreaterEqual(took, 0.5)
        self.assertLess(took, PATIENCE / 2)

    def test_records_in_any_order(self):
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        records = []
        for i in range(8):
            sender.send(str(i).encode())
            sender.flush(PATIENCE)
            records.append(receiver.receive(PATIENCE))
        for record in reversed(records[1:]):
            record.release()
        for _ in range(10):
            try:
                sender.send(b"xxxx", 0)
                sender.flush(0)
            except BlockingIOError:
                break
        self.assertEqual(bytes(records[0]), b"0")
        records[0].release()

    def test_stream_pair(self):
        path = name("streams")
        with hamlyn.Listener(self.manager, path) as listener:
            pairs = []
            thread = threading.Thread(target=lambda: pairs.append(
                hamlyn.connect_streams(self.manager, path, PATIENCE)))
            thread.start()
            server = listener.accept_streams(PATIENCE)
            thread.join()
            client = pairs[0]
            self.assertEqual(server.peer.pid, os.getpid())
            client.sender.send(b"x")
            client.sender.flush(PATIENCE)
            self.assertEqual(server.receiver.read(1, PATIENCE), b"x")
            server.receiver.close()  # before its sender
            server.sender.close(0)
            client.sender.close(0)
            client.receiver.close()


if __name__ == "__main__":
    unittest.main()
