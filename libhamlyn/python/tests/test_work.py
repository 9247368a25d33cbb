# SPDX-License-Identifier: MIT
"""Work queues and workers."""

import os
import select
import signal
import threading
import unittest

import hamlyn
from common import PATIENCE, name


class Work(unittest.TestCase):
    def setUp(self):
        self.path = name("work")
        self.results = {}
        self.failed = {}

    def queue(self, **options):
        queue = hamlyn.WorkQueue(self.path, self.results.__setitem__, self.failed.__setitem__,
                                 **options)
        self.addCleanup(queue.close, 0)
        return queue

    def worker(self, doing, **options):
        """A thread that does what it is given until the end."""
        def run():
            with hamlyn.Worker(self.path, PATIENCE, **options) as worker:
                for item in worker:
                    with item:
                        doing(item)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def test_items_are_done(self):
        queue = self.queue()
        threads = [self.worker(lambda item: item.done(bytes(item)[::-1]), at_once=i)
                   for i in range(2)]
        numbers = [queue.add(b"item %d" % i, PATIENCE) for i in range(100)]
        queue.run(PATIENCE)
        self.assertEqual(numbers, list(range(1, 101)))
        self.assertEqual(self.results,
                         {i + 1: (b"item %d" % i)[::-1] for i in range(100)})
        stats = queue.stats()
        self.assertEqual((stats["done"], stats["failed"]), (100, 0))
        queue.close(PATIENCE)
        del threads

    def test_what_is_given_back(self):
        queue = self.queue(deliveries=3)
        seen = []

        def doing(item):
            seen.append((item.number, item.delivery))
            if item.number == 1:
                return  # its context gives it back
            if item.number == 2 and item.delivery == 1:
                item.fail()
                with self.assertRaises(ValueError):
                    item.done()
                return
            item.done(b"x")
            with self.assertRaises(ValueError):
                bytes(item)

        self.worker(doing)
        for _ in range(3):
            queue.add(b"y")
        queue.run(PATIENCE)
        self.assertEqual(self.results, {2: b"x", 3: b"x"})
        self.assertEqual(self.failed, {1: b"y"})
        self.assertEqual(sorted(seen), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)])

    def test_a_worker_is_killed(self):
        queue = self.queue()
        pid = os.fork()
        if not pid:
            try:
                with hamlyn.Worker(self.path, PATIENCE, wait_for_server=True) as worker:
                    item = worker.take(PATIENCE)
                    os.kill(os.getpid(), signal.SIGKILL if item else 0)
            finally:
                os._exit(1)
        queue.add(b"x")
        while not os.waitpid(pid, os.WNOHANG)[0]:
            queue.dispatch()
        deliveries = []

        def doing(item):
            deliveries.append(item.delivery)
            item.done()

        self.worker(doing)
        queue.run(PATIENCE)
        self.assertEqual(deliveries, [2])
        self.assertEqual(self.results, {1: b""})

    def test_full_and_raised(self):
        def raises(_number, _result):
            raise ZeroDivisionError

        with hamlyn.WorkQueue(self.path, raises, items=1) as queue:
            queue.add(b"x", 0)
            with self.assertRaises(BlockingIOError):
                queue.add(b"y", 0)
            with self.assertRaises(TimeoutError):
                queue.run(0.01)
            self.worker(lambda item: item.done())
            with self.assertRaises(ZeroDivisionError):
                queue.run(PATIENCE)
            queue.run(0)

    def test_event_loop(self):
        queue = self.queue()
        self.worker(lambda item: item.done(b"z"))
        poll = select.poll()
        poll.register(queue, select.POLLIN)
        queue.add(b"x")
        while not self.results:
            self.assertTrue(poll.poll(PATIENCE * 1000))
            queue.dispatch()
        self.assertEqual(self.results, {1: b"z"})


if __name__ == "__main__":
    unittest.main()
