# SPDX-License-Identifier: MIT
"""What the tests share."""

import os
import unittest

import hamlyn

#: Seconds that nothing takes
PATIENCE = 20 * int(os.environ.get("HAMLYN_TEST_SCALE", "1"))


def name(what):
    """An abstract name that nobody else has."""
    return f"@hamlyn-python-{os.getpid()}-{what}"


class DeviceTest(unittest.TestCase):
    """With a device and a manager."""

    def setUp(self):
        self.device = hamlyn.Device()
        self.addCleanup(self.device.close)
        self.manager = hamlyn.Manager(self.device)
        self.addCleanup(self.manager.close)

    def pair(self, **options):
        a, b = hamlyn.Channel.pair(self.manager, **options)
        self.addCleanup(a.close, 0)
        self.addCleanup(b.close, 0)
        return a, b
