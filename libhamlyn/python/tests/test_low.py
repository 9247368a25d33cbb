# SPDX-License-Identifier: MIT
"""Devices, areas, queues, slots, tickets, termini, watches."""

import os
import pickle
import unittest

import hamlyn
from common import PATIENCE, DeviceTest


class Low(DeviceTest):
    def setUp(self):
        super().setUp()
        self.area = hamlyn.Area(self.device, 65536)
        self.queue = hamlyn.NotificationQueue(self.device, 16)
        self.slot = hamlyn.Slot(self.area, self.queue)
        self.terminus = hamlyn.Terminus(self.device)

    def test_device(self):
        self.assertEqual(self.device.query()["abi_version"], 1)
        self.assertTrue(self.device.name)
        self.assertEqual(self.device.query()["fabric_id"], self.device.fabric)
        self.assertTrue(self.device.reaches(self.device.fabric))
        self.assertFalse(self.device.reaches(bytes(16)))
        if self.device.embedded:
            self.assertIn("messages", self.device.stats())
            self.assertEqual(len(self.device.stats()["rejects"]), 16)
        entries, sequence = self.device.audit()
        self.assertIsInstance(entries, list)
        self.assertGreaterEqual(sequence, 0)
        self.assertIn("Device", repr(self.device))

    def test_message(self):
        ticket = hamlyn.Ticket.from_bytes(bytes(self.slot.ticket()))
        number = self.terminus.send(ticket, b"hello")
        self.terminus.wait(number, PATIENCE)
        notification = self.queue.receive(PATIENCE)
        self.assertEqual(notification.slot, self.slot.number)
        self.assertEqual(notification.length, 5)
        self.assertEqual(bytes(self.area.memory[:5]), b"hello")
        self.assertEqual(self.terminus.stats()["messages"], 1)
        self.assertEqual(self.queue.lost, 0)

    def test_word(self):
        self.terminus.send(self.slot.ticket(index=hamlyn.META_FAST), word=42)
        notification = self.queue.receive(PATIENCE)
        self.assertTrue(notification.fast)
        self.assertEqual(notification.data, 42)

    def test_from_a_bound_area(self):
        with self.assertRaises(OSError):
            self.terminus.send(self.slot.ticket(), bytes(3000))
        source = hamlyn.Area(self.device, 4096)
        source.memory[:3000] = b"x" * 3000
        self.terminus.bind(0, source)
        memory = source.memory
        source.close()
        self.terminus.wait(self.terminus.send(self.slot.ticket(), memory[:3000]), PATIENCE)
        self.queue.receive(PATIENCE)
        self.assertEqual(bytes(self.area.memory[2990:3000]), b"x" * 10)
        self.terminus.bind(0, None)

    def test_time_outs(self):
        with self.assertRaises(TimeoutError):
            self.queue.receive(0.01)
        with self.assertRaises(TimeoutError):
            self.queue.receive(0.3)
        with self.assertRaises(BlockingIOError):
            self.queue.receive(0)

    def test_watch(self):
        with hamlyn.Watch(self.queue, self.slot.ticket(), 7):
            self.slot.close()
            notification = self.queue.receive(PATIENCE)
        self.assertTrue(notification.peer_gone)
        self.assertEqual(notification.data, 7)

    def test_ticket_that_is_a_descriptor(self):
        fd = self.slot.ticket_fd()
        ticket = self.terminus.import_ticket(fd)
        os.close(fd)
        self.terminus.send(ticket, b"x")
        self.queue.receive(PATIENCE)
        self.terminus.drop_ticket(ticket)
        with self.assertRaises(OSError):
            self.terminus.drop_ticket(ticket)

    def test_rekey(self):
        ticket = self.slot.ticket()
        self.slot.rekey()
        self.terminus.send(ticket, b"void")
        with self.assertRaises(TimeoutError):
            self.queue.receive(0.05)
        self.assertEqual(sum(self.slot.stats()["rejects"]), 1)

    def test_paranoid_slot(self):
        slot = hamlyn.Slot(self.area, self.queue, length=4096, metadata=self.area,
                           metadata_base=4096, metadata_count=4,
                           mode=hamlyn.SlotMode.PARANOID)
        self.terminus.send(slot.ticket(), b"no entry was granted")
        with self.assertRaises(TimeoutError):
            self.queue.receive(0.02)

    def test_errors_explain(self):
        with self.assertRaises(hamlyn.Error) as caught:
            hamlyn.NotificationQueue(self.device, 3)
        self.assertIn("power of two", caught.exception.explanation)
        self.assertIn("power of two", str(caught.exception))
        self.assertEqual(caught.exception.errno, 22)
        self.assertEqual(caught.exception.call, "h_nq_create")
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual(str(again), str(caught.exception))
        with self.assertRaises(OSError):
            hamlyn.Device("nonsense")
        with self.assertRaises(hamlyn.Error):
            hamlyn.Ticket.from_bytes(b"nonsense")

    def test_tickets_are_values(self):
        ticket = self.slot.ticket()
        self.assertEqual(ticket, hamlyn.Ticket.from_bytes(bytearray(bytes(ticket))))
        self.assertNotEqual(ticket, self.slot.ticket(base=1))
        self.assertEqual(len({ticket, self.slot.ticket()}), 1)
        self.assertEqual(ticket.length, len(self.area))


if __name__ == "__main__":
    unittest.main()
