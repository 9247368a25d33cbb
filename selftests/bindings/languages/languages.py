# SPDX-License-Identifier: GPL-2.0-only
"""The Python half of languages-test.sh: see languages.cc."""

import sys

import hamlyn

MESSAGES = 200
BIG = 300000
PATIENCE = 60


def serve(path):
    news = hamlyn.Publisher(path + ".news")
    over = False

    def handle(_channel, message):
        nonlocal over
        data = bytes(message.data)
        if data == b"news":
            news.send(data, 0)
        over = data == b"bye"
        return data

    server = hamlyn.Server(path, handle)
    print("ready", flush=True)
    while not over:
        try:
            server.run(0.005)
        except TimeoutError:
            pass
        news.run(0)
    server.close(PATIENCE)
    news.close(PATIENCE)


def same(got, expected):
    if got != expected:
        raise RuntimeError(f"another message: {got[:40]!r}")


def take(channel):
    with channel.receive(PATIENCE) as message:
        return bytes(message.data)


def talk(path):
    with hamlyn.dial(path, PATIENCE) as channel, \
            hamlyn.Subscriber(path + ".news", PATIENCE) as news:
        for i in range(MESSAGES):
            channel.send(b"message %d" % i, PATIENCE)
            same(take(channel), b"message %d" % i)
        text = bytes(ord("a") + i % 23 for i in range(BIG))
        channel.send(text, PATIENCE)
        same(take(channel), text)
        with channel.request(b"asked", PATIENCE) as reply:
            same(bytes(reply.data), b"asked")
        channel.send(b"news", PATIENCE)
        same(take(channel), b"news")
        with news.receive(PATIENCE) as publication:
            same(bytes(publication.data), b"news")
        channel.send(b"bye", PATIENCE)
        same(take(channel), b"bye")
        if channel.receive(PATIENCE) is not None or news.receive(PATIENCE) is not None:
            raise RuntimeError("it has not ended")
        print(f"{MESSAGES} messages and one of {BIG} bytes")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("serve", "talk"):
        sys.exit("usage: languages.py serve|talk HOST/NAME")
    (serve if sys.argv[1] == "serve" else talk)(sys.argv[2])


main()
