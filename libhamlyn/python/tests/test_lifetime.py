# SPDX-License-Identifier: MIT
"""Nothing that is done in the wrong order, or too late, does more than raise ValueError."""

import contextlib
import copy
import ctypes
import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from unittest import mock

import hamlyn
from hamlyn import _handle, _library, aio
from common import PATIENCE, DeviceTest, name


class Lifetime(DeviceTest):
    def test_use_after_close(self):
        a, b = self.pair()
        area = hamlyn.Area(self.device, 4096)
        queue = hamlyn.NotificationQueue(self.device, 8)
        slot = hamlyn.Slot(area, queue)
        terminus = hamlyn.Terminus(self.device)
        ticket = slot.ticket()
        listener = hamlyn.Listener(self.manager, name("closed"))
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        calls = [lambda: a.send(b""), lambda: a.receive(0), a.seed, lambda: a.shutdown(0),
                 lambda: a.peer, lambda: a.on_ready(print), lambda: b.receive_into(bytearray(1)),
                 lambda: len(area), lambda: area.memory, lambda: queue.receive(0), slot.rekey,
                 slot.ticket, lambda: terminus.send(ticket, b""), terminus.stats,
                 lambda: terminus.bind(0, area), lambda: listener.accept(0), listener.fileno,
                 lambda: receiver.receive(0), receiver.seed, lambda: sender.send(b"x"),
                 lambda: sender.flush(0), self.manager.poll, self.manager.fileno,
                 self.manager.dispatch, lambda: self.manager.allocate(1), self.device.query,
                 lambda: hamlyn.Area(self.device, 1), lambda: hamlyn.Slot(area, queue),
                 lambda: hamlyn.Channel(self.manager), lambda: hamlyn.Channel.pair(self.manager),
                 lambda: hamlyn.Manager(self.device), lambda: hamlyn.Watch(queue, ticket),
                 lambda: hamlyn.Listener(self.manager, name("x")),
                 lambda: hamlyn.connect(self.manager, name("x")), self.device.__enter__]
        self.device.close()
        self.device.close()
        for call in calls:
            with self.assertRaises(ValueError):
                call()
        for thing in (a, b, area, queue, slot, terminus, listener, receiver, sender):
            self.assertTrue(thing.closed)
            self.assertIn("closed", repr(thing))
            thing.close()

    def test_nothing_that_owns_is_copied(self):
        a, b = self.pair()
        area = hamlyn.Area(self.device, 4096)
        queue = hamlyn.NotificationQueue(self.device, 8)
        slot = hamlyn.Slot(area, queue)
        terminus = hamlyn.Terminus(self.device)
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        a.send(b"one")
        sender.send(b"piece")
        sender.flush(PATIENCE)
        message = b.receive(PATIENCE)
        record = receiver.receive(PATIENCE)
        listener = aio.Listener(self.manager, name("copied"))
        owners = [self.device, self.manager, a, area, queue, slot, terminus, receiver, sender,
                  message, record, listener, listener.listener, aio.Channel(a),
                  aio.StreamReceiver(receiver), aio.StreamSender(sender), a._need(),
                  hamlyn.Watch(queue, slot.ticket()), hamlyn.DatagramReceiver(self.manager),
                  hamlyn.TaggedReceiver(self.manager, 4096), hamlyn.Group(self.manager, 64),
                  hamlyn.Gather(self.manager, [8]), hamlyn.Barrier(self.manager, 1)]
        for owner in owners:
            for function in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be copied"):
                    function(owner)
        gc.collect()
        self.assertEqual(bytes(message.data), b"one")
        self.assertEqual(bytes(record.data), b"piece")
        a.send(b"two")
        self.assertEqual(b.receive_bytes(PATIENCE), b"two")
        listener.close()

    def test_views_outlive_everything(self):
        a, b = self.pair()
        a.send(b"still here")
        message = b.receive(PATIENCE)
        part = message.data[6:]
        message.release()
        with self.assertRaises(ValueError):
            message.data[0]  # pylint: disable=pointless-statement
        memory = self.manager.allocate(10000)
        memory[:4] = b"mine"
        area = hamlyn.Area(self.device, 4096).memory
        area[0] = 7
        self.device.close()
        del a, b, message
        gc.collect()
        self.assertEqual(part, b"here")
        self.assertEqual(memory[:4], b"mine")
        self.assertEqual(area[0], 7)
        with self.assertRaises(ValueError):
            self.manager.poll()

    def test_a_message_that_is_exported(self):
        a, b = self.pair()
        a.send(b"hello")
        message = b.receive(PATIENCE)
        exported = memoryview(message.data)
        message.release()
        self.assertEqual(exported, b"hello")
        exported.release()

    def test_messages_are_given_back(self):
        a, b = self.pair(buffers=2, buffer_size=128, max_buffer_size=1)
        for i in range(100):
            a.send(str(i).encode(), PATIENCE)
            self.assertEqual(bytes(b.receive(PATIENCE)), str(i).encode())  # not released

    def test_closed_while_another_thread_waits(self):
        _, b = self.pair()
        seen = []

        def wait():
            try:
                b.receive()
            except ValueError as e:
                seen.append(e)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.05)
        b.close(0)
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())
        self.assertEqual(len(seen), 1)

    def test_many_threads_and_a_close(self):
        for _ in range(10):
            a, b = hamlyn.Channel.pair(self.manager)
            threads = []

            def use(call):
                try:
                    while True:
                        call()
                except (ValueError, OSError):
                    pass

            for call in (lambda: a.send(b"x" * 50, 0.01), lambda: b.receive(0.01),
                         lambda: b.send(b"y", 0.01), self.manager.poll):
                threads.append(threading.Thread(target=use, args=(call,)))
            for thread in threads[:3]:
                thread.start()
            time.sleep(0.01)
            b.close(0)
            a.close(0)
            for thread in threads[:3]:
                thread.join(PATIENCE)
                self.assertFalse(thread.is_alive())

    def test_closed_while_another_thread_dispatches(self):
        stop = []

        def dispatch():
            while not stop:
                try:
                    self.manager.dispatch()
                except (OSError, ValueError):
                    pass

        thread = threading.Thread(target=dispatch)
        thread.start()
        for i in range(200):
            a, b = hamlyn.Channel.pair(self.manager)
            b.on_ready(lambda b=b: b.receive_bytes(0))
            a.send(str(i).encode(), PATIENCE)
            b.close(0)
            a.close(0)
        stop.append(1)
        thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())

    def test_garbage(self):
        before = len(gc.get_objects())
        for _ in range(20):
            a, b = hamlyn.Channel.pair(self.manager)
            a.send(b"x")
            b.receive(PATIENCE)
            a.me = a  # a cycle
            b.on_ready(b.close)
            del a, b
        gc.collect()
        self.assertLess(len(gc.get_objects()) - before, 500)

    def test_child_process(self):
        a, b = self.pair()
        a.send(b"x")
        message = b.receive(PATIENCE)
        pid = os.fork()
        if not pid:
            code = 0
            for call in (lambda: a.send(b""), lambda: b.receive(0), self.manager.poll,
                         self.device.query, lambda: bytes(message), lambda: message.data):
                try:
                    call()
                    code = 1
                except ValueError:
                    pass
            a.close()
            b.close()
            self.device.close()
            try:
                with hamlyn.Device() as device:
                    code += not device.query()["max_slots"]
            except BaseException:  # pylint: disable=broad-except
                code = 2
            del message
            gc.collect()
            os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        self.assertEqual(bytes(message), b"x")
        a.send(b"still")
        self.assertEqual(b.receive_bytes(PATIENCE), b"still")

    def test_locks_of_the_parent_process(self):
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        self.addCleanup(sender.close, 0)
        sender.send(b"hello")
        sender.flush()
        record = receiver.receive(PATIENCE)
        held, over = threading.Event(), threading.Event()

        def hold():
            with receiver._held_lock, receiver._ready_lock:
                held.set()
                over.wait(PATIENCE)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(PATIENCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # for there are threads
            pid = os.fork()
        if not pid:
            signal.alarm(PATIENCE)
            record.release()
            try:
                receiver.on_ready(print)
            except ValueError:
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        over.set()
        thread.join(PATIENCE)
        self.assertEqual(bytes(record), b"hello")

    def test_interpreter_ends_with_all_open(self):
        program = """
import hamlyn, threading
device = hamlyn.Device()
manager = hamlyn.Manager(device)
manager.fileno()
a, b = hamlyn.Channel.pair(manager)
a.send(b"x")
message = b.receive()
view = message.data[:]
b.on_ready(print)
threading.Thread(target=a.receive, daemon=True).start()
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                              stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_ctrl_c(self):
        program = """
import hamlyn, os, signal, threading
device = hamlyn.Device()
manager = hamlyn.Manager(device)
a, b = hamlyn.Channel.pair(manager)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    b.receive()
except KeyboardInterrupt:
    print("interrupted")
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, b"interrupted\n"))

    def test_stream_closed_while_receiving(self):
        receiver = hamlyn.StreamReceiver(self.manager)
        sender = hamlyn.StreamSender(self.manager, receiver.seed())
        sender.send(b"hello")
        sender.flush()

        def wait(*arguments):
            n = _handle.wait(*arguments)
            receiver.close()  # as another thread might
            return n

        with mock.patch("hamlyn._stream.wait", wait):
            record = receiver.receive(PATIENCE)
        self.assertTrue(receiver._handle.pointer)
        self.assertEqual(bytes(record), b"hello")
        del record
        self.assertFalse(receiver._handle.pointer)
        sender.close(0)

    def test_closed_in_the_other_call_back(self):
        a1, b1 = self.pair()
        a2, b2 = self.pair()
        calls = []

        def ready(mine, other):
            calls.append((mine, mine.closed))
            other.close(0)

        b1.on_ready(lambda: ready(b1, b2))
        b2.on_ready(lambda: ready(b2, b1))
        a1.send(b"x")
        a2.send(b"y")
        self.manager.dispatch()
        # That one may be called twice, as there were two.
        self.assertEqual(set(calls), {(calls[0][0], False)})

    def test_dispatched_while_it_is_destroyed(self):
        a, b = self.pair()
        b.on_ready(print)
        a.send(b"x")
        destroy = b._handle._destroy
        dispatched = []

        def late(pointer):
            dispatched.append(self.manager.dispatch())  # as another thread might
            destroy(pointer)

        b._handle._destroy = late
        b.close(0)
        self.assertEqual(dispatched, [0])

    def test_dispatched_while_it_is_destroyed_after_a_call_back(self):
        a, b = self.pair()
        a2, b2 = self.pair()
        destroy = b._handle._destroy
        dispatched = []

        def late(pointer):
            dispatched.append(self.manager.dispatch())  # as another thread might
            destroy(pointer)

        def close():
            b2.receive_bytes(0)
            b.close(0)

        b._handle._destroy = late
        b2.on_ready(close)
        b.on_ready(lambda: None)
        a2.send(b"first")
        a.send(b"x")
        self.manager.dispatch()
        self.assertEqual(dispatched, [0])
        self.assertFalse(b._handle.pointer)

    def test_nobody_dispatches_while_one_is_destroyed(self):
        def dispatch():
            self.manager.dispatch()
            order.append("dispatched")

        def late(pointer):
            thread.start()
            thread.join(0.1)
            order.append("destroyed")
            destroy(pointer)

        _, b = self.pair()
        b.on_ready(lambda: None)
        order = []
        destroy = b._handle._destroy
        thread = threading.Thread(target=dispatch)
        b._handle._destroy = late
        b.close(0)
        thread.join(PATIENCE)
        self.assertEqual(order, ["destroyed", "dispatched"])

    def test_closing_is_not_faster_than_destroying(self):
        def dispatch():
            while not over:
                self.manager.dispatch()

        over = []
        left = []
        thread = threading.Thread(target=dispatch)
        thread.start()
        try:
            for _ in range(100):
                a, b = hamlyn.Channel.pair(self.manager)
                b.on_ready(lambda: None)
                a.send(b"x", PATIENCE)
                b.close(0)
                a.close(0)
                left.append(len(self.manager._handle._graves))
        finally:
            over.append(1)
            thread.join(PATIENCE)
        self.assertLess(max(left), 5)

    def test_closed_while_others_are_in_their_call_backs(self):
        far = hamlyn.Manager(self.device)
        self.addCleanup(far.close)
        a, b = hamlyn.Channel.pair(far, self.manager)
        ends = [hamlyn.Channel.pair(far, self.manager) for _ in range(2)]
        entered = [threading.Event(), threading.Event()]
        leave = threading.Event()
        threads = [threading.Thread(target=self.manager.dispatch) for _ in range(2)]

        def ready(i):
            ends[i][1].receive_bytes(0)
            entered[i].set()
            leave.wait(PATIENCE)

        b.on_ready(lambda: None)
        try:
            for i in range(2):
                ends[i][1].on_ready(lambda i=i: ready(i))
                ends[i][0].send(b"x", PATIENCE)
                threads[i].start()
                self.assertTrue(entered[i].wait(PATIENCE))
            b.close(0)
            # They go on for longer.
            self.assertIsNone(a.receive(PATIENCE / 2))
        finally:
            leave.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join(PATIENCE)

    def test_closed_while_another_thread_is_inside(self):
        far = hamlyn.Manager(self.device)
        self.addCleanup(far.close)
        a, b = hamlyn.Channel.pair(far, self.manager)
        inside, over = threading.Event(), threading.Event()
        handle = self.manager._handle

        def stay():
            handle.go_in()
            inside.set()
            over.wait(PATIENCE)
            handle.go_out()

        first = threading.Thread(target=stay)
        second = threading.Thread(target=self.manager.dispatch)
        first.start()
        inside.wait(PATIENCE)
        b.on_ready(lambda: None)
        b.close(0)
        second.start()
        with self.assertRaises(TimeoutError):
            a.receive(0.1)
        self.assertTrue(second.is_alive())  # or there might always be somebody inside
        over.set()
        self.assertIsNone(a.receive(PATIENCE))
        for thread in (first, second):
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())

    def test_what_a_call_back_raises_leaves_nobody_inside(self):
        def raises():
            b.receive_bytes(0)
            raise KeyboardInterrupt

        a, b = self.pair()
        b.on_ready(raises)
        a.send(b"x")
        with self.assertRaises(KeyboardInterrupt):
            self.manager.dispatch()
        self.assertFalse(self.manager._handle._inside)

    def test_signals_do_not_cut_off(self):
        def read(receive):
            time.sleep(0.3)
            try:
                while True:
                    piece = receive()
                    if not piece:
                        got.append("end")
                        return
                    got.append(len(piece))
            except (OSError, ValueError) as e:
                got.append(e)

        options = {"buffers": 2, "buffer_size": 128, "max_buffer_size": 1}
        other = hamlyn.Manager(self.device)
        self.addCleanup(other.close)
        handled = []
        before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for what in ("channel", "stream"):
            got = []
            if what == "channel":
                end, far = hamlyn.Channel.pair(self.manager, other, **options)
                receive = lambda far=far: far.receive_bytes(PATIENCE)
            else:
                far = hamlyn.StreamReceiver(other, **options)
                end = hamlyn.StreamSender(self.manager, far.seed())
                receive = lambda far=far: far.read(100, PATIENCE)
            end.send(b"1" * 100)
            end.send(b"2" * 100, 1)
            thread = threading.Thread(target=read, args=(receive,))
            thread.start()
            signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
            try:
                end.close(PATIENCE)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            thread.join(PATIENCE)
            with self.subTest(what):
                self.assertEqual(got[-1], "end", got)
                self.assertEqual(sum(got[:-1]), 200)
            far.close()
        self.assertGreater(len(handled), 1)

    def test_areas_of_a_closed_device(self):
        area = hamlyn.Area(self.device, 4096)
        terminus = hamlyn.Terminus(self.device)
        terminus.bind(0, area)
        self.device.close()
        self.assertFalse(area._handle.pointer)
        self.assertFalse(self.device._handle.pointer)
        self.assertTrue(terminus.closed)

    def test_numbers_that_do_not_fit(self):
        area = hamlyn.Area(self.device, 4096)
        queue = hamlyn.NotificationQueue(self.device)
        terminus = hamlyn.Terminus(self.device)
        slot = hamlyn.Slot(area)
        for call in (lambda: slot.ticket(0, 2**64), lambda: slot.ticket(-1),
                     lambda: slot.ticket_fd(2**64), lambda: hamlyn.Area(self.device, 2**64 + 1),
                     lambda: hamlyn.Group(self.manager, 2**64 + 10),
                     lambda: hamlyn.Gather(self.manager, [2**64 + 8]),
                     lambda: self.manager.allocate(2**64 + 1),
                     lambda: hamlyn.NotificationQueue(self.device, 2**32 + 8),
                     lambda: hamlyn.Manager(self.device, nq_entries=2**32 + 64),
                     lambda: hamlyn.Terminus(self.device, entries=2**32 + 64),
                     lambda: hamlyn.Terminus(self.device, entry_size=2**32 + 64),
                     lambda: hamlyn.Terminus(self.device, priority=2**32),
                     lambda: hamlyn.Terminus(self.device, weight=2**32 + 1),
                     lambda: hamlyn.StreamReceiver(self.manager, buffers=2**32 + 4),
                     lambda: hamlyn.StreamReceiver(self.manager, buffer_size=2**32 + 128),
                     lambda: hamlyn.Channel(self.manager, max_buffer_size=2**32 + 128),
                     lambda: hamlyn.Channel.pair(self.manager, max_message=2**64 + 5),
                     lambda: hamlyn.Listener(self.manager, name("much"), waiting=2**32 + 1),
                     lambda: hamlyn.Listener(self.manager, name("much"), mode=-1),
                     lambda: hamlyn.Barrier(self.manager, 2**32 + 1),
                     lambda: hamlyn.Group(self.manager, 8).share().split(2**32 + 2),
                     lambda: self.device.audit(2**64), lambda: self.device.audit(0, 2**32),
                     lambda: terminus.send(slot.ticket(), word=2**64),
                     lambda: terminus.wait(2**64),
                     lambda: hamlyn.Watch(queue, slot.ticket(), 2**64),
                     lambda: hamlyn.Slot(area, mode=2**32),
                     lambda: hamlyn.connect(self.manager, name("nobody"), 0, uids=[2**32])):
            with self.assertRaises(OverflowError):
                call()

    @unittest.skipIf("h_gather_create" in _library.missing, "the library has no gathers")
    def test_members_that_do_not_fit(self):
        gather = hamlyn.Gather(self.manager, [8, 8, 8])
        barrier = hamlyn.Barrier(self.manager, 3)
        for call in (lambda: gather.seed(2**32), lambda: gather.offset(-1),
                     lambda: barrier.seed(2**32 + 1)):
            with self.assertRaises(OverflowError) as caught:
                call()
            self.assertIn("not in 0..4294967295", str(caught.exception))


if __name__ == "__main__":
    unittest.main()


class Stays(DeviceTest):
    """What the library cannot destroy yet, for as long as another process is stopped in it."""

    @contextlib.contextmanager
    def staying(self, thing):
        """It cannot be destroyed meanwhile; gives how often that was tried."""
        handle, tried = thing._handle, []
        del thing
        destroy = handle._destroy

        def fails(pointer):
            tried.append(pointer)
            return -errno.ETIMEDOUT

        handle._destroy = fails
        try:
            yield tried
        finally:
            handle._destroy = destroy

    def there(self):
        return bool(self.manager._handle.pointer and self.device._handle.pointer)

    def gone(self):
        return not (self.manager._handle.pointer or self.device._handle.pointer)

    def test_end_points(self):
        gather = hamlyn.Gather(self.manager, [1])
        barrier = hamlyn.Barrier(self.manager, 2)
        for make in (hamlyn.DatagramReceiver, hamlyn.StreamReceiver, hamlyn.TaggedReceiver,
                     lambda m: hamlyn.Group(m, 1), lambda m: hamlyn.Gather(m, [1]),
                     lambda m: hamlyn.GatherMember(m, gather.seed(0)),
                     lambda m: hamlyn.Barrier(m, barrier.seed(1))):
            thing = make(self.manager)
            with self.subTest(type(thing).__name__):
                with self.staying(thing) as tried:
                    for n in (1, 2):
                        with self.assertRaises(TimeoutError) as raised:
                            thing.close()
                        self.assertIsInstance(raised.exception, hamlyn.Error)
                        self.assertEqual(len(tried), n)
                self.assertTrue(thing.closed)
                self.assertTrue(thing._handle.pointer)
                thing.close()
                self.assertFalse(thing._handle.pointer)
                thing.close()
                self.assertEqual(len(tried), 2)

    def test_of_the_low_layer(self):
        area, queue = hamlyn.Area(self.device, 4096), hamlyn.NotificationQueue(self.device)
        slot = hamlyn.Slot(area, queue)
        with self.staying(slot):
            for thing in (slot, self.device):
                with self.assertRaises(TimeoutError):
                    thing.close()
            area.close()
            queue.close()
            self.assertTrue(area._handle.pointer and queue._handle.pointer)
        self.device.close()
        self.assertTrue(self.gone())
        self.assertFalse(area._handle.pointer or queue._handle.pointer)

    def test_areas_of_a_terminus(self):
        area, terminus = hamlyn.Area(self.device, 4096), hamlyn.Terminus(self.device)
        terminus.bind(0, area)
        with self.staying(terminus):
            with self.assertRaises(TimeoutError):
                terminus.close()
            area.close()
            self.assertTrue(area._handle.pointer)
        terminus.close()
        self.assertFalse(area._handle.pointer)

    def test_what_it_was_made_on(self):
        self.manager.fileno()
        receiver = hamlyn.StreamReceiver(self.manager)
        with self.staying(receiver) as tried:
            for thing in (receiver, self.manager, self.device):
                with self.assertRaises(TimeoutError):
                    thing.close()
            self.assertTrue(self.there())
            self.assertEqual(len(tried), 3)
        self.device.close()
        self.assertTrue(self.gone())

    def test_one_that_was_forgotten(self):
        receiver = hamlyn.DatagramReceiver(self.manager)
        receiver.on_ready(print)
        stays = self.staying(receiver)
        tried = stays.__enter__()
        del receiver
        gc.collect()
        self.assertEqual(len(tried), 1)
        with self.assertRaises(TimeoutError):
            self.device.close()
        self.assertTrue(self.there())
        stays.__exit__(None, None, None)
        self.device.close()
        self.assertTrue(self.gone())

    def test_destroyed_when_it_is_not_used_any_more(self):
        receiver = hamlyn.TaggedReceiver(self.manager)
        memory = receiver.memory
        with self.staying(receiver) as tried:
            receiver.close()
            self.assertFalse(tried)
            del memory
            self.assertEqual(len(tried), 1)
            with self.assertRaises(TimeoutError):
                self.manager.close()
        self.device.close()
        self.assertTrue(self.gone())

    def orphan(self):
        """An end point that nobody owns: Ctrl-C came when it had just been made."""
        out = ctypes.c_void_p()
        library = _library.library
        self.assertFalse(library.h_stream_receiver_create(
            self.manager._handle.pointer, _library.StreamAttr(), out))
        self.addCleanup(self.device.close)
        self.addCleanup(library.h_stream_receiver_destroy, out)

    def test_manager_with_an_end_point_that_nobody_owns(self):
        self.orphan()
        for thing in (self.manager, self.device):
            with self.assertRaises(hamlyn.Error) as raised:
                thing.close()
            self.assertEqual(raised.exception.errno, errno.EBUSY)
            self.assertEqual(raised.exception.call, "h_manager_destroy")
            self.assertTrue(self.there())

    def test_why_a_context_ends_is_not_hidden(self):
        self.orphan()
        with self.assertRaises(KeyboardInterrupt):
            with self.device, self.manager:
                raise KeyboardInterrupt
        self.assertTrue(self.there())

    def test_child_process(self):
        receiver = hamlyn.DatagramReceiver(self.manager)
        with self.staying(receiver):
            with self.assertRaises(TimeoutError):
                receiver.close()
            pid = os.fork()
            if not pid:
                try:
                    receiver.close()
                    self.device.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        receiver.close()
