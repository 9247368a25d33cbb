# SPDX-License-Identifier: MIT
"""asyncio."""

import asyncio
import errno
import gc
import os
import pathlib
import re
import threading
import time
import unittest
from unittest import mock

import hamlyn
from hamlyn import Channel, Manager, StreamReceiver, StreamSender, aio
from common import PATIENCE, DeviceTest, name


async def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.01)


async def turns_during(coroutine):
    """How often the event loop runs others while one is awaited, and what that gives."""
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        result = await coroutine
    finally:
        counting.cancel()
    return turns, result


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

    def test_requests_that_overtake_each_other(self):
        async def ask(channel, i):
            data = str(i).encode()
            with await channel.request(data) as reply:
                self.assertEqual(reply.data, data)

        async def main():
            a, b = aio.Channel.pair(self.manager)
            tasks = [asyncio.create_task(ask(a, i)) for i in range(10)]
            plain = asyncio.create_task(a.recv_bytes())
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(a.request(b"late"), 0.05)
            requests = [await b.recv() for _ in range(11)]
            await b.reply(requests.pop(), b"late")
            b.channel.reply_only()
            await b.send(b"plain")
            for request in reversed(requests):
                with request:
                    await b.reply(request, request.data)
            await asyncio.gather(*tasks)
            self.assertEqual(await plain, b"plain")

        self.run_bounded(main())

    async def attempts_of(self, owner, call, task):
        """How often a task that goes on waiting calls a method meanwhile."""
        attempts = 0
        method = getattr(owner, call)

        def count(*arguments):
            nonlocal attempts
            attempts += 1
            return method(*arguments)

        with mock.patch.object(owner, call, count):
            waiting = asyncio.create_task(task)
            await asyncio.sleep(1)
            self.assertFalse(waiting.done())
        return attempts, waiting

    def test_waiting_for_a_reply_with_unread_messages_sleeps(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            b.channel.reply_only()
            await b.send(b"nobody reads this")
            attempts, waiting = await self.attempts_of(a.channel, "request_wait", a.request(b"x"))
            self.assertLess(attempts, 1000)
            with await b.recv() as request:
                await b.reply(request, b"own")
            self.assertEqual((await waiting).data, b"own")
            self.assertEqual(await a.recv_bytes(), b"nobody reads this")
            await a.close(0)
            await b.close(0)

        self.run_bounded(main())

    def test_receiving_with_a_reply_that_is_not_taken_sleeps(self):
        async def main():
            a, b = aio.Channel.pair(self.manager)
            number = await a.request_send(b"x")
            with await b.recv() as request:
                await b.reply(request, b"own")
            attempts, waiting = await self.attempts_of(a.channel, "receive_bytes", a.recv_bytes())
            self.assertLess(attempts, 1000)
            await b.send(b"plain")
            self.assertEqual(await waiting, b"plain")
            with await a.request_wait(number) as reply:
                self.assertEqual(reply.data, b"own")
            await a.close(0)
            await b.close(0)

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

    def test_closed_while_iterating(self):
        async def main():
            listener = aio.Listener(self.manager, name("iterated"))

            async def iterate():
                return [client async for client in listener]

            clients = asyncio.create_task(iterate())
            await asyncio.sleep(0.02)
            listener.close()
            self.assertEqual(await clients, [])

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

    def test_streams_as_those_of_asyncio(self):
        async def serve(listener):
            reader, writer = await listener.accept_streams()
            self.assertEqual(writer.peer.uid, os.getuid())
            while line := await reader.readline():
                writer.write(line.upper())
                await writer.drain()
            self.assertTrue(reader.at_eof())
            writer.writelines([b"ab", b"cd", b"the rest"])
            await writer.close(PATIENCE)

        async def main():
            path = name("aio-streams")
            with aio.Listener(self.manager, path) as listener:
                server = asyncio.create_task(serve(listener))
                reader, writer = await aio.open_connection(self.manager, path, PATIENCE)
                for line in (b"one\n", b"two, longer\n" * 2000, b"without an end"):
                    writer.write(line)
                    await writer.drain()
                got = b"".join([await reader.readuntil() for _ in range(2001)])
                self.assertEqual(got, b"ONE\n" + b"TWO, LONGER\n" * 2000)
                await writer.close(PATIENCE)
                self.assertEqual(await reader.readexactly(14), b"WITHOUT AN END")
                self.assertEqual(await reader.readexactly(4), b"abcd")
                self.assertEqual(await reader.read(3), b"the")
                self.assertFalse(reader.at_eof())
                self.assertEqual(await reader.read(), b" rest")
                self.assertEqual(await reader.read(5), b"")
                self.assertTrue(reader.at_eof())
                await server

        self.run_bounded(main())

    def test_streams_that_end_too_soon(self):
        async def main():
            receiver = StreamReceiver(self.manager)
            sender = aio.StreamSender(StreamSender(self.manager, receiver.seed()))
            reader = aio.StreamReceiver(receiver)
            sender.write(b"x" * 100 + b"::" + b"y" * 10)
            await sender.close(PATIENCE)
            with self.assertRaises(asyncio.LimitOverrunError):
                await reader.readuntil(b"::", 50)
            self.assertEqual(await reader.readuntil(b"::"), b"x" * 100 + b"::")
            with self.assertRaises(asyncio.IncompleteReadError) as caught:
                await reader.readexactly(20)
            self.assertEqual((caught.exception.partial, caught.exception.expected), (b"y" * 10, 20))
            with self.assertRaises(asyncio.IncompleteReadError) as caught:
                await reader.readuntil()
            self.assertEqual(caught.exception.partial, b"")
            with self.assertRaises(ValueError):
                await reader.readexactly(-1)
            with self.assertRaises(ValueError):
                await reader.readuntil(b"")
            receiver.close()

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

    def test_who_never_waits(self):
        async def receive(channel, n):
            return [await channel.recv_bytes() for _ in range(n)]

        async def read(receiver, n):
            return b"".join([await receiver.read(1) for _ in range(n)])

        async def accept(listener, n):
            return [await listener.accept() for _ in range(n)]

        async def tags(receiver, n):
            return [(await aio.receive(receiver)).tag for _ in range(n)]

        async def main():
            a, b = Channel.pair(self.manager, buffers=256)
            for i in range(100):
                a.send(str(i).encode(), 0)
            turns, got = await turns_during(receive(aio.Channel(b), 100))
            self.assertEqual(got, [str(i).encode() for i in range(100)])
            self.assertGreaterEqual(turns, 6)
            receiver = StreamReceiver(self.manager)
            sender = StreamSender(self.manager, receiver.seed())
            sender.send(bytes(100))
            sender.flush(PATIENCE)
            turns, got = await turns_during(read(aio.StreamReceiver(receiver), 100))
            self.assertEqual(got, bytes(100))
            self.assertGreaterEqual(turns, 6)
            tagged = hamlyn.TaggedReceiver(self.manager)
            for i in range(32):
                hamlyn.TaggedAddress(tagged.seed()).send(self.manager, b"", 0, i)
            turns, got = await turns_during(tags(tagged, 32))
            self.assertEqual(got, list(range(32)))
            self.assertGreaterEqual(turns, 2)
            with aio.Listener(self.manager, name("flooded")) as listener, \
                    mock.patch.object(listener.listener, "accept", lambda *_, **__: None):
                turns, got = await turns_during(accept(listener, 100))
            self.assertGreaterEqual(turns, 6)
            sender.close(0)
            a.close(0)

        self.run_bounded(main())

    def test_cancelled_where_it_does_not_wait(self):
        async def main():
            a, b = aio.Channel.pair(self.manager, buffers=256)
            got = []

            async def receive():
                while True:
                    got.append(await b.recv_bytes())

            for i in range(100):
                a.channel.send(str(i).encode(), 0)
            while len(got) < 100:
                receiving = asyncio.create_task(receive())
                await asyncio.sleep(0)
                receiving.cancel()
                await asyncio.wait([receiving])
            self.assertEqual(got, [str(i).encode() for i in range(100)])
            await a.close(0)

        self.run_bounded(main())

    async def fill(self, manager, path):
        """Connects until the server's manager takes no more."""
        channels = []
        try:
            while True:
                channels.append(await aio.connect(manager, path, PATIENCE))
        except hamlyn.Error as e:
            self.assertEqual(e.errno, errno.EUSERS)
        return channels

    async def outlives_a_crowd(self, server, path):
        with Manager(self.device, nq_entries=32768) as clients:
            for channel in await self.fill(clients, path):
                await channel.close(0)
            self.assertFalse(server.done())
            answer = None
            end = time.monotonic() + PATIENCE
            while not answer and time.monotonic() < end:
                try:
                    async with await aio.connect(clients, path, PATIENCE) as channel:
                        await channel.send(b"room?")
                        answer = await channel.recv_bytes()
                except OSError:
                    await asyncio.sleep(0.01)  # the server has not closed its ends yet
            self.assertEqual(answer, b"room?")

    async def ends(self, task):
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task

    def test_clients_that_cannot_be_taken(self):
        async def serve(listener):
            tasks = []
            async for channel in listener:
                tasks.append(asyncio.create_task(self.echo(channel)))

        async def main():
            told = []
            asyncio.get_running_loop().set_exception_handler(
                lambda _loop, context: told.append(context.get("exception")))
            path = name("crowd")
            with Manager(self.device, nq_entries=256) as manager:
                async with aio.Listener(manager, path) as listener:
                    server = asyncio.create_task(serve(listener))
                    await self.outlives_a_crowd(server, path)
                    self.assertEqual([e.errno for e in told if isinstance(e, hamlyn.Error)
                                      and e.call == "h_channel_accept"][:1], [errno.ENOSPC])
                    await self.ends(server)

        self.run_bounded(main())

    def test_accepting_that_fails_at_once(self):
        attempts = 0
        number = errno.EMFILE

        def accept(*_arguments, **_options):
            nonlocal attempts
            attempts += 1
            raise hamlyn.Error(number, "h_channel_accept")

        async def main():
            nonlocal number
            told = []
            asyncio.get_running_loop().set_exception_handler(
                lambda _loop, context: told.append(context["exception"].errno))
            with aio.Listener(self.manager, name("descriptors")) as listener, \
                    mock.patch.object(listener.listener, "accept", accept):
                iterating = asyncio.create_task(listener.__aiter__().__anext__())
                await until(lambda: attempts >= 3)
                self.assertLess(attempts, 10)
                await self.ends(iterating)
                number = errno.ENODEV
                with self.assertRaises(hamlyn.Error):
                    await listener.__aiter__().__anext__()
            self.assertEqual(told, [errno.EMFILE])

        self.run_bounded(main())

    def test_example_of_the_readme(self):
        text = (pathlib.Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")
        example, = (part for part in re.findall("```python\n(.*?)```", text, re.DOTALL)
                    if "async def main(manager, path)" in part)
        names = {}
        exec(example, names)  # pylint: disable=exec-used

        async def main():
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda *_: None)  # of clients that broke off
            path = name("readme")
            with Manager(self.device, nq_entries=256) as manager:
                server = asyncio.create_task(names["main"](manager, path))
                await asyncio.sleep(0)
                await self.outlives_a_crowd(server, path)
                await self.ends(server)

        self.run_bounded(main())

    def test_manager_for_one_thread(self):
        async def main():
            a, b = aio.Channel.pair(manager)
            await a.send(b"x")
            self.assertEqual(await b.recv_bytes(), b"x")
            with self.assertRaisesRegex(ValueError, "one thread"):
                await aio.connect(manager, name("single"), 1)
            await a.close(0)

        self.assertFalse(self.manager.single)
        with Manager(self.device, single=True) as manager:
            self.assertTrue(manager.single)
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
