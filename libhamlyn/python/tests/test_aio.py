# SPDX-License-Identifier: MIT
"""asyncio."""

import asyncio
import gc
import threading
import time
import unittest

import hamlyn
from hamlyn import Channel, Manager, StreamReceiver, StreamSender, aio
from common import PATIENCE, DeviceTest, name


class Asyncio(DeviceTest):
    def run_bounded(self, coroutine):
        return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    @staticmethod
    async def echo(channel):
        async with channel:
            async for message in channel:
                with message:
                    await channel.send(message.data)

    def test_echo(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            server = asyncio.create_task(self.echo(b))
            async with a:
                for i in range(100):
                    with await a.request(str(i).encode()) as reply:
                        self.assertEqual(reply.data, str(i).encode())
                await a.send(b"last")
                self.assertEqual(await a.recv_bytes(), b"last")
            await server
            self.assertTrue(a.closed and b.closed)

        self.run_bounded(main())

    def test_fifty_channels(self):
        async def client(i):
            async with await aio.connect(self.manager, path, PATIENCE) as channel:
                for j in range(20):
                    data = f"{i} {j}".encode()
                    await channel.send(data)
                    with await channel.recv() as reply:
                        self.assertEqual(reply.data, data)
            return i

        async def serve(listener):
            tasks = []
            for _ in range(50):
                tasks.append(asyncio.create_task(self.echo(await listener.accept())))
            await asyncio.gather(*tasks)

        async def main():
            async with aio.Listener(self.manager, path) as listener:
                server = asyncio.create_task(serve(listener))
                done = await asyncio.gather(*(client(i) for i in range(50)))
                self.assertEqual(done, list(range(50)))
                await server

        path = name("fifty")
        self.run_bounded(main())

    def test_long_messages_both_ways(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            data = bytes(range(256)) * 8192
            server = asyncio.create_task(self.echo(b))
            for _ in range(3):
                await a.sendmsg([data[:100], data[100:]])
                self.assertTrue(await a.recv_bytes() == data)
            await a.close()
            await server

        self.run_bounded(main())

    def test_backpressure(self):
        async def main():
            a, b = aio.Channel.pair(self.manager, buffers=2, buffer_size=128, max_buffer_size=1)
            sent = 0

            async def produce():
                nonlocal sent
                for i in range(200):
                    await a.send(str(i).encode())
                    sent += 1
                await a.shutdown()

            producer = asyncio.create_task(produce())
            await asyncio.sleep(0.05)
            self.assertLess(sent, 200)
            got = [bytes(m) async for m in b]
            self.assertEqual(got, [str(i).encode() for i in range(200)])
            await producer
            await b.close()
            await a.close()

        self.run_bounded(main())

    def test_cancelled(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(b.recv(), 0.02)
            await a.send(b"later")
            self.assertEqual(await b.recv_bytes(), b"later")
            with aio.Listener(self.manager, name("cancelled")) as listener:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(listener.accept(), 0.02)
            await a.close(0)
            await b.close(0)

        self.run_bounded(main())

    def test_closed_while_waiting(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            waiting = asyncio.create_task(b.recv())
            listener = aio.Listener(self.manager, name("closing"))
            accepting = asyncio.create_task(listener.accept())
            await asyncio.sleep(0.02)
            await b.close(0)
            listener.close()
            with self.assertRaises(ValueError):
                await waiting
            with self.assertRaises(ValueError):
                await accepting
            await a.close(0)

        self.run_bounded(main())

    def test_device_closed_while_waiting(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            listener = aio.Listener(self.manager, name("device"))
            waiting = asyncio.create_task(b.recv())
            accepting = asyncio.create_task(listener.accept())
            await asyncio.sleep(0.02)
            self.device.close()
            with self.assertRaises((ValueError, ConnectionResetError)):
                await waiting
            with self.assertRaises(ValueError):
                await accepting
            self.assertTrue(a.closed)

        self.run_bounded(main())

    def test_peer_gone(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            waiting = asyncio.create_task(b.recv())
            await asyncio.sleep(0.02)
            a.channel.close()
            self.assertIsNone(await waiting)
            with self.assertRaises(BrokenPipeError):
                for _ in range(1000):
                    await b.send(b"x")
            await b.close()

        self.run_bounded(main())

    def test_several_loops_one_after_the_other(self):
        for _ in range(3):
            self.test_echo()

    def test_idle_loop_sleeps(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            await a.send(b"nobody takes this")
            waiting = asyncio.create_task(a.recv())
            calls = 0
            dispatch = self.manager.dispatch

            def count():
                nonlocal calls
                calls += 1
                return dispatch()

            self.manager.dispatch = count
            await asyncio.sleep(0.3)
            self.assertLess(calls, 20)
            waiting.cancel()
            await a.close(0)
            await b.close(0)

        self.run_bounded(main())

    def test_streams(self):
        data = bytes(range(256)) * 4096

        async def produce(sender):
            out = aio.StreamSender(sender)
            await out.send(data)
            await out.flush()

        async def read(incoming, got):
            got += await incoming.read(10000)

        async def recv(incoming, got):
            with await incoming.recv() as record:
                got += record.data

        async def main():
            for how in (read, recv):
                receiver = StreamReceiver(self.manager)
                sender = StreamSender(self.manager, receiver.seed())
                producer = asyncio.create_task(produce(sender))
                got = bytearray()
                while len(got) < len(data):
                    await how(aio.StreamReceiver(receiver), got)
                self.assertTrue(got == data)
                await producer
                sender.close(0)

        self.run_bounded(main())

    def test_the_collector_leaves_waiting_tasks_alone(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            asyncio.create_task(self.echo(b))  # nobody else knows it, or b
            del b
            await asyncio.sleep(0.01)
            gc.collect()
            await a.send(b"still there?")
            self.assertEqual(await a.recv_bytes(), b"still there?")
            await a.close()
            await asyncio.sleep(0.01)

        self.run_bounded(main())

    def test_manager_that_the_collector_takes(self):
        async def main():
            loop = asyncio.get_running_loop()
            manager = Manager(self.device)
            fd = manager.fileno()
            manager._attach()
            manager.me = manager
            del manager
            gc.collect()
            self.assertFalse(loop.remove_reader(fd))  # there is none

        self.run_bounded(main())

    def test_cancelled_connect(self):
        async def main():
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(aio.connect(self.manager, path), 0.1)

        path = name("busy")
        with hamlyn.Listener(self.manager, path) as listener:  # which does not accept
            timer = threading.Timer(PATIENCE, listener.close)
            timer.start()
            self.run_bounded(main())
            timer.cancel()
            self.assertFalse(listener.closed)

    def test_server_that_accepts_late(self):
        async def main():
            async with aio.Listener(self.manager, path) as listener:
                connecting = asyncio.create_task(aio.connect(self.manager, path))
                await asyncio.sleep(1.3)  # longer than the first attempt
                async with await listener.accept() as server, await connecting as client:
                    await client.send(b"x")
                    self.assertEqual(await server.recv_bytes(), b"x")

        path = name("late")
        self.run_bounded(main())

    def test_sending_with_unread_messages_sleeps(self):
        async def main():
            a, b = Channel.pair(self.manager, Manager(self.device), buffers=2, buffer_size=128,
                                max_buffer_size=1)
            b.send(b"nobody reads this")
            with self.assertRaises(BlockingIOError):
                while True:
                    a.send(b"x" * 100, 0)
            attempts = 0
            send = a.send

            def count(*arguments):
                nonlocal attempts
                attempts += 1
                return send(*arguments)

            a.send = count
            sending = asyncio.create_task(aio.Channel(a).send(b"last"))
            await asyncio.sleep(0.5)
            self.assertLess(attempts, 3000)
            while b.receive_bytes(PATIENCE) != b"last":
                await asyncio.sleep(0.01)
            await sending
            a.close(0)
            b.manager.close()

        self.run_bounded(main())

    def test_closed_before_it_waits(self):
        async def main():
            _, b = Channel.pair(self.manager)
            b.on_ready(lambda: None)  # the library has been told already

            def attempt():
                thread = threading.Thread(target=b.close, args=(0,))
                thread.start()
                thread.join()
                raise BlockingIOError

            with self.assertRaises(ValueError):
                await b._again(attempt)

        self.run_bounded(main())


if __name__ == "__main__":
    unittest.main()
