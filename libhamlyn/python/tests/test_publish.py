# SPDX-License-Identifier: MIT
"""Publishers and subscribers."""

import errno
import os
import select
import threading
import time
import unittest

import hamlyn
from common import PATIENCE, name


class Publishing(unittest.TestCase):
    def publisher(self, **options):
        """One that sees to its subscribers in a thread until the test is over."""
        self.path = name("publish")
        publisher = hamlyn.Publisher(self.path, **options)
        self.stopping = False

        def run():
            while not self.stopping:
                publisher.run(0.002)

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            self.stopping = True
            thread.join(PATIENCE)
            publisher.close(0)

        self.addCleanup(end)
        return publisher

    def subscriber(self, **options):
        subscriber = hamlyn.Subscriber(self.path, PATIENCE, **options)
        self.addCleanup(subscriber.close)
        return subscriber

    def test_all_get_it(self):
        publisher = self.publisher()
        publisher.send(b"before")
        subscribers = [self.subscriber(history=i) for i in range(2)]
        with subscribers[1].receive(PATIENCE) as publication:
            self.assertEqual((bytes(publication), publication.number), (b"before", 1))
        publisher.send(b"hello")
        with publisher.reserve(100) as loan:
            loan.data[:5] = b"world"
            loan.commit(5)
        for subscriber in subscribers:
            for number, text in (2, b"hello"), (3, b"world"):
                with subscriber.receive(PATIENCE) as publication:
                    self.assertEqual(bytes(publication), text)
                    self.assertEqual((publication.number, publication.lost), (number, 0))
        stats = publisher.stats()
        self.assertEqual((stats["published"], stats["sent"], stats["subscribers"]), (3, 5, 2))

    def test_policies(self):
        publisher = self.publisher(history=4, patience=3600)
        small = {"buffers": 2, "buffer_size": 256, "max_buffer_size": 256}
        oldest = self.subscriber(**small)
        newest = self.subscriber(policy=hamlyn.Policy.DROP_NEWEST, **small)
        waits = self.subscriber(policy=hamlyn.Policy.WAIT, **small)
        sent = 0
        with self.assertRaises(BlockingIOError):
            while True:
                publisher.send(b"%d" % sent, 0)
                sent += 1
        with self.assertRaises(TimeoutError):
            publisher.send(b"x", 0.01)
        for number in range(1, sent + 1):
            with waits.receive(PATIENCE) as publication:
                self.assertEqual((publication.number, publication.lost), (number, 0))
        publisher.send(b"last", PATIENCE)
        expected = 1
        while expected <= sent + 1:
            with oldest.receive(PATIENCE) as publication:
                self.assertEqual(publication.number, expected + publication.lost)
                expected = publication.number + 1
        with newest.receive(PATIENCE) as publication:
            self.assertEqual(publication.number, 1)

    def test_nobody_is_waited_for_unless_it_is_said(self):
        self.publisher()
        with self.assertRaises(hamlyn.Error) as caught:
            self.subscriber(policy=hamlyn.Policy.WAIT)
        self.assertEqual(caught.exception.errno, errno.EOPNOTSUPP)
        self.assertIn("publisher", caught.exception.explanation)

    def test_event_loops(self):
        self.path = name("publish")
        with hamlyn.Publisher(self.path) as publisher:
            got = []
            poll = select.poll()
            poll.register(publisher, select.POLLIN)

            def receive():
                subscriber = self.subscriber()
                readable = select.poll()
                readable.register(subscriber, select.POLLIN)
                while not got:
                    self.assertTrue(readable.poll(PATIENCE * 1000))
                    try:
                        with subscriber.receive(0) as publication:
                            got.append(bytes(publication))
                    except BlockingIOError:
                        pass

            thread = threading.Thread(target=receive)
            thread.start()
            end = time.monotonic() + PATIENCE
            while not publisher.stats()["subscribers"] and time.monotonic() < end:
                poll.poll(100)
                publisher.dispatch()
            publisher.send(b"hello")
            thread.join(PATIENCE)
            self.assertEqual(got, [b"hello"])

    def test_the_end(self):
        self.path = name("publish")
        publisher = hamlyn.Publisher(self.path)
        got = []

        def run():
            for publication in self.subscriber():
                with publication:
                    got.append(bytes(publication))

        thread = threading.Thread(target=run)
        thread.start()
        end = time.monotonic() + PATIENCE
        while not publisher.stats()["subscribers"] and time.monotonic() < end:
            publisher.run(0.01)
        for i in range(100):
            publisher.send(b"%d" % i)
        publisher.close(PATIENCE)
        thread.join(PATIENCE)
        self.assertEqual(got[-1], b"99")
        with self.assertRaises(ValueError):
            publisher.send(b"x")

    def test_children(self):
        publisher = self.publisher()
        subscriber = self.subscriber()
        pid = os.fork()
        if not pid:
            try:
                publisher.close()
                subscriber.close()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        publisher.send(b"x")
        with subscriber.receive(PATIENCE) as publication:
            self.assertEqual(bytes(publication), b"x")


if __name__ == "__main__":
    unittest.main()
