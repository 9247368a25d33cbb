# SPDX-License-Identifier: MIT
"""Datagrams, tagged remote writes, group receives, gathers, barriers."""

import asyncio
import errno
import signal
import threading
import time
import unittest

import hamlyn
from hamlyn import _library, aio
from common import PATIENCE, DeviceTest


class Datagrams(DeviceTest):
    def test_one_at_a_time(self):
        receiver = hamlyn.DatagramReceiver(self.manager, 8192)
        to = hamlyn.DatagramAddress(receiver.seed())
        with self.assertRaises(BlockingIOError):
            receiver.receive(0)
        to.send(self.manager, b"hello", 100)
        with receiver.receive(PATIENCE) as datagram:
            self.assertEqual(datagram.data, b"hello")
            self.assertEqual(datagram.offset, 100)
            self.assertIsNone(datagram.reply)
            to.send(self.manager, b"lost")
            with self.assertRaises(TimeoutError):
                receiver.receive(0.01)
        to.send(self.manager, bytearray(b"again"))
        self.assertEqual(bytes(receiver.receive(PATIENCE)), b"again")
        self.assertEqual(receiver.stats(), {"received": 2, "malformed": 0, "dropped": 1})
        with self.assertRaises(hamlyn.Error) as caught:
            to.send(self.manager, b"outside", 8190)
        self.assertEqual(caught.exception.errno, errno.ERANGE)
        with self.assertRaises(hamlyn.Error):
            hamlyn.DatagramAddress(bytes(80))

    def test_answer(self):
        server = hamlyn.DatagramReceiver(self.manager)
        replies = hamlyn.DatagramReceiver(self.manager)
        to = hamlyn.DatagramAddress(server.seed())

        def answer():
            with server.receive(PATIENCE) as datagram:
                datagram.reply.send(self.manager, bytes(datagram).upper())

        thread = threading.Thread(target=answer)
        thread.start()
        with replies.request(to, b"question", PATIENCE) as reply:
            self.assertEqual(bytes(reply), b"QUESTION")
        thread.join()
        with self.assertRaises(TimeoutError):
            replies.request(to, b"nobody answers", 0.01)

    def ask(self, replies, to, timeout, seen):
        try:
            with replies.request(to, b"?", timeout) as answer:
                seen.append(bytes(answer))
        except (OSError, ValueError) as e:
            seen.append(type(e).__name__)

    def test_late_answer(self):
        server = hamlyn.DatagramReceiver(self.manager)
        replies = hamlyn.DatagramReceiver(self.manager)
        to = server.address()
        with self.assertRaises(BlockingIOError):
            replies.request(to, b"1", 0)
        with self.assertRaises(TimeoutError):
            replies.request(to, b"1", 0.01)
        with server.receive(PATIENCE) as asked:
            late = asked.reply
        replies.address().send(self.manager, b"early")
        seen = []
        thread = threading.Thread(target=self.ask, args=(replies, to, PATIENCE, seen))
        thread.start()
        with server.receive(PATIENCE) as asked:
            late.send(self.manager, b"late")
            asked.reply.send(self.manager, b"in time")
        thread.join(PATIENCE)
        self.assertEqual(seen, [b"in time"])
        to.send(self.manager, b"x", reply=replies.address())
        with server.receive(PATIENCE) as asked:
            asked.reply.send(self.manager, b"held")
        with replies.receive(PATIENCE), self.assertRaises(hamlyn.Error) as caught:
            replies.request(to, b"2", PATIENCE)
        self.assertEqual(caught.exception.errno, errno.EBUSY)

    def test_request_after_revoke(self):
        server = hamlyn.DatagramReceiver(self.manager)
        replies = hamlyn.DatagramReceiver(self.manager)
        before = bytes(replies.address()._address)
        replies.revoke()
        seen = []
        thread = threading.Thread(target=self.ask,
                                  args=(replies, server.address(), PATIENCE, seen))
        thread.start()
        with server.receive(PATIENCE) as asked:
            self.assertNotEqual(bytes(asked.reply._address), before)
            asked.reply.send(self.manager, b"answer")
        thread.join(PATIENCE)
        self.assertEqual(seen, [b"answer"])

    def test_request_and_a_close(self):
        server = hamlyn.DatagramReceiver(self.manager)
        replies = hamlyn.DatagramReceiver(self.manager)
        seen = []
        thread = threading.Thread(target=self.ask,
                                  args=(replies, server.address(), PATIENCE, seen))
        before = time.monotonic()
        thread.start()
        time.sleep(0.05)
        replies.close()
        thread.join(PATIENCE)
        self.assertEqual(seen, ["ValueError"])
        self.assertLess(time.monotonic() - before, PATIENCE / 2)

    def test_request_and_a_signal(self):
        server = hamlyn.DatagramReceiver(self.manager)
        replies = hamlyn.DatagramReceiver(self.manager)
        before = signal.signal(signal.SIGALRM, lambda *_: None)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(TimeoutError):
            replies.request(server.address(), b"?", 0.3)

    def test_revoked(self):
        receiver = hamlyn.DatagramReceiver(self.manager)
        old = hamlyn.DatagramAddress(receiver.seed())
        now = hamlyn.DatagramAddress(receiver.rekey())
        old.send(self.manager, b"void")
        now.send(self.manager, b"good")
        datagram = receiver.receive(PATIENCE)
        self.assertEqual(bytes(datagram), b"good")
        part = datagram.data[1:]
        receiver.revoke()
        receiver.close()
        self.device.close()
        self.assertEqual(part, b"ood")
        with self.assertRaises(ValueError):
            receiver.receive(0)

    def test_event_loop(self):
        async def main():
            receiver = hamlyn.DatagramReceiver(self.manager)
            tagged = hamlyn.TaggedReceiver(self.manager)
            group = hamlyn.Group(self.manager, 4)
            waiting = [asyncio.create_task(aio.receive(receiver)),
                       asyncio.create_task(aio.receive(tagged, 9)),
                       asyncio.create_task(aio.receive(group))]
            await asyncio.sleep(0.02)
            self.assertFalse(any(task.done() for task in waiting))
            hamlyn.DatagramAddress(receiver.seed()).send(self.manager, b"woken")
            self.assertEqual(bytes(await waiting[0]), b"woken")
            to = hamlyn.TaggedAddress(tagged.seed())
            to.send(self.manager, b"", 0, 8)
            to.send(self.manager, b"", 0, 9)
            self.assertEqual((await waiting[1]).tag, 9)
            group.share().send(self.manager, b"full")
            self.assertEqual(await waiting[2], b"full")

        asyncio.run(asyncio.wait_for(main(), PATIENCE))


class Tagged(DeviceTest):
    def test_writes(self):
        receiver = hamlyn.TaggedReceiver(self.manager, 1000)
        to = hamlyn.TaggedAddress(receiver.seed())
        memory = receiver.memory
        self.assertEqual(len(memory), 1000)
        to.send(self.manager, b"one", 0, 1)
        to.send(self.manager, memoryview(b"two!"), 500, 2)
        self.assertEqual(receiver.receive(2, PATIENCE), hamlyn.Tag(2, 4))
        self.assertEqual(receiver.receive(timeout=PATIENCE), (1, 3))
        self.assertEqual(memory[500:504], b"two!")
        with self.assertRaises(TimeoutError):
            receiver.receive(timeout=0.01)
        with self.assertRaises(BlockingIOError):
            receiver.receive(7, 0)
        hamlyn.TaggedAddress(receiver.rekey()).send(self.manager, b"", 0, 2 ** 64 - 1)
        self.assertEqual(receiver.receive(timeout=PATIENCE).tag, 2 ** 64 - 1)
        receiver.close()
        self.assertEqual(memory[:3], b"one")
        with self.assertRaises(ValueError):
            receiver.seed()

    def test_lost_tags(self):
        receiver = hamlyn.TaggedReceiver(self.manager, max_tags=4)
        to = hamlyn.TaggedAddress(receiver.seed())
        end = time.monotonic() + PATIENCE
        with self.assertRaises(OverflowError):
            for i in range(1000):
                to.send(self.manager, b"", 0, i, PATIENCE)
                self.manager.poll()
            while time.monotonic() < end:
                receiver.receive(timeout=PATIENCE)


class Groups(DeviceTest):
    def test_round(self):
        group = hamlyn.Group(self.manager, 10)
        everything = group.share()
        parts = everything.split([3, 3, 4])
        with self.assertRaises(hamlyn.Error):
            everything.split(2)
        self.assertEqual([p.length for p in parts], [3, 3, 4])
        parts[0].send(self.manager, b"abc")
        with self.assertRaises(TimeoutError):
            group.receive(0.01)
        with self.assertRaises(hamlyn.Error) as caught:
            group.reset()
        self.assertEqual(caught.exception.errno, errno.EBUSY)
        hamlyn.Share.from_bytes(bytes(parts[1])).send(self.manager, b"def")
        for half, data in zip(parts[2].split(2), (b"gh", b"ij")):
            half.send(self.manager, data)
        self.assertEqual(group.receive(PATIENCE), b"abcdefghij")
        group.reset()
        parts[0].send(self.manager, b"ABC")
        group.reset(new_shares=True)
        group.share().send(self.manager, b"0123456789")
        got = group.receive(PATIENCE)
        group.close()
        self.assertEqual(got, b"0123456789")
        with self.assertRaises(ValueError):
            group.receive(0)
        with self.assertRaises(hamlyn.Error):
            hamlyn.Share.from_bytes(bytes(80))

    def test_of_nothing(self):
        group = hamlyn.Group(self.manager, 0)
        for share in group.share().split(5):
            share.send(self.manager)
        self.assertEqual(group.receive(PATIENCE), b"")


@unittest.skipIf("h_gather_create" in _library.missing, "the library has no gathers")
class Gathers(DeviceTest):
    def test_rounds(self):
        root = hamlyn.Gather(self.manager, [3, 0, 2])
        other = hamlyn.Manager(self.device)
        members = [hamlyn.GatherMember(other, root.seed(i)) for i in range(3)]
        self.assertEqual([m.length for m in members], [3, 0, 2])
        for _ in range(5):
            for member, data in zip(members, (b"abc", b"", b"de")):
                member.send(data, PATIENCE)
            got = root.receive(PATIENCE)
            self.assertEqual(got, b"abcde")
            self.assertEqual(got[root.offset(2):], b"de")
            root.release()
        with self.assertRaises(hamlyn.Error):
            root.release()
        with self.assertRaises(hamlyn.Error):
            root.seed(3)
        with self.assertRaises(TimeoutError):
            root.receive(0.01)
        root.close()
        self.assertEqual(got, b"abcde")
        members[0].send(b"abc", PATIENCE)
        del got  # now it is destroyed
        with self.assertRaises(BrokenPipeError):
            for _ in range(1000):
                members[0].send(b"abc", 0.01)
        for member in members:
            member.close()
        with self.assertRaises(ValueError):
            members[0].wait()
        other.close()

    def test_barrier(self):
        first = hamlyn.Barrier(self.manager, 2)
        seed = first.seed(1)
        passed = []

        def participate():
            with hamlyn.Manager(self.device) as manager, hamlyn.Barrier(manager, seed) as barrier:
                for i in range(50):
                    barrier.wait(PATIENCE)
                    passed.append(i)
                barrier.wait(PATIENCE)

        thread = threading.Thread(target=participate)
        thread.start()
        for _ in range(51):
            first.wait(PATIENCE)
        self.assertEqual(passed, list(range(50)))
        with self.assertRaises(BrokenPipeError):
            first.wait(PATIENCE)
        thread.join()
        first.close()
        first.close()
        with self.assertRaises(ValueError):
            first.wait()
        with self.assertRaises(hamlyn.Error):
            hamlyn.Barrier(self.manager, bytes(80))


if __name__ == "__main__":
    unittest.main()
