# SPDX-License-Identifier: MIT
"""asyncio."""

import asyncio
import unittest

from hamlyn import StreamReceiver, StreamSender, aio
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


if __name__ == "__main__":
    unittest.main()
