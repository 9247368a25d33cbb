#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""hamlynctl metrics serve, and whoever means it harm: half-open clients, nonsense, slow readers, too
many at once. An honest client is served meanwhile. Needs no module. Prints "ok - NAME" for each."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

PROGRAM = sys.argv[1] if len(sys.argv) == 2 else None
SCALE = int(os.environ.get("HAMLYN_TEST_SCALE", "1"))
PATIENCE = 20 * SCALE
OPEN = "application/openmetrics-text; version=1.0.0"
results = []


class Server:
    """One on a port of its own, as systemd starts it."""

    def __init__(self, *readers, files=128, family=socket.AF_INET, address=("127.0.0.1", 0)):
        self.listener = socket.socket(family)
        self.listener.bind(address)
        self.listener.listen(64)
        self.address = self.listener.getsockname()
        self.family = family
        given = os.dup(self.listener.fileno())

        def prepare():
            os.dup2(given, 3)
            os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            os.execve(PROGRAM, [PROGRAM, "metrics", "serve", *readers], os.environ)

        self.process = subprocess.Popen([PROGRAM], preexec_fn=prepare, close_fds=False,
                                        stderr=subprocess.PIPE)
        os.close(given)

    def connect(self):
        client = socket.socket(self.family)
        client.settimeout(PATIENCE)
        client.connect(self.address)
        return client

    def ask(self, request):
        with self.connect() as client:
            client.sendall(request)
            return read_all(client)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.listener.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.end()


def read_all(client):
    answer = b""
    try:
        while part := client.recv(65536):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def get(path="/metrics", accept=None, method="GET"):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if accept:
        lines.append(f"Accept: {accept}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_of(answer):
    match = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(match[1]) if match else 0


def honest(server):
    """Is served, whole, and soon."""
    answer = server.ask(get())
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.search(rb"Content-Length: (\d+)", head)[1])
    assert status_of(answer) == 200 and len(body) == length and b"hamlyn_up" in body, answer


def test(function):
    try:
        function()
        print(f"ok - {function.__doc__}")
        results.append(True)
    except (AssertionError, OSError, TypeError, subprocess.TimeoutExpired) as error:
        print(f"not ok - {function.__doc__}\n# | {type(error).__name__}: {error}"[:600])
        results.append(False)
    sys.stdout.flush()


def formats():
    """each client gets the format that it asks for"""
    with Server("any") as server:
        text, opened = server.ask(get()), server.ask(get(accept=OPEN + ";q=0.8,text/plain;q=0.5"))
        assert b"text/plain; version=0.0.4" in text and b"# EOF" not in text, text
        assert b"openmetrics-text; version=1.0.0" in opened and opened.endswith(b"# EOF\n"), opened
        head = server.ask(get(method="HEAD"))
        assert status_of(head) == 200 and head.endswith(b"\r\n\r\n"), head


def wrong_requests():
    """requests that make no sense are told so, and end nothing"""
    with Server("any") as server:
        for request, want in (
                (get("/"), 200), (get("/metrics?name[]=x"), 200), (get("/other"), 404),
                (get("/metrics/../../etc/passwd"), 404), (get(method="POST"), 405),
                (b"\r\n\r\n", 400), (b"GET\r\n\r\n", 400), (b"GET /metrics\r\n\r\n", 400),
                (b"GET /metrics HTTP/2.0\r\n\r\n", 400), (b"GET /metrics HTTP/1.1x\r\n\r\n", 400),
                (b"GET /metrics HTTP/1.1\r\nX: \0\r\n\r\n", 400),
                (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\n\n", 400),
                (b"GET " + b"%n%s" * 100 + b" HTTP/1.1\r\n\r\n", 400),
                (b"GET /" + b"a" * 5000, 431), (b"\xff" * 70000, 431)):
            got = status_of(server.ask(request))
            # What was still to be read may take the answer with it
            assert got == want or (got == 0 and len(request) > 4096), (request[:40], got)
            honest(server)
        assert server.process.poll() is None


def nonsense():
    """random bytes, whole or in pieces, do not end it"""
    seed = int(os.environ.get("HAMLYN_SEED", "1"))
    with Server("any") as server:
        for _ in range(300):
            seed = seed * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            bytes_ = seed.to_bytes(8, "little") * (seed >> 40 & 63)
            with server.connect() as client:
                try:
                    client.sendall(get()[:seed >> 20 & 31] + bytes_)
                    client.sendall(b"\r\n\r\n" if seed & 1 else b"")
                except OSError:
                    pass
        honest(server)
        assert server.process.poll() is None


def half_open():
    """four hundred that connect and say nothing keep nobody out"""
    with Server("any") as server:
        silent = []
        for number in range(400):
            silent.append(server.connect())
            if number % 40 == 0:
                honest(server)
        honest(server)
        # Most have made room for others
        lost = 0
        for client in silent:
            client.setblocking(False)
            try:
                lost += client.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionResetError:
                lost += 1
            client.close()
        assert lost >= 300, lost


def patience():
    """a request that does not come is waited for five seconds, and not longer"""
    with Server("any") as server, server.connect() as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
        begin = time.monotonic()
        assert client.recv(1) == b""
        assert time.monotonic() - begin > 4.5
        honest(server)


def trickle():
    """a byte a second does not lengthen that"""
    with Server("any") as server, server.connect() as client:
        begin = time.monotonic()
        try:
            while time.monotonic() - begin < PATIENCE:
                client.sendall(b"G")
                time.sleep(0.5)
        except OSError:
            pass
        took = time.monotonic() - begin
        assert took < PATIENCE, took
        honest(server)


def slow_readers():
    """those that do not read what they asked for keep nobody waiting"""
    with Server("any") as server:
        slow = [server.connect() for _ in range(60)]
        for client in slow:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.sendall(get())
        for _ in range(20):
            honest(server)
        for client in slow:
            client.close()


def idle_costs_nothing():
    """whoever holds connections open costs no processor time"""
    with Server("any") as server:
        held = [server.connect() for _ in range(50)]
        before = ticks(server.process.pid)
        time.sleep(2)
        used = ticks(server.process.pid) - before
        assert used <= 5, used
        for client in held:
            client.close()


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def few_descriptors():
    """without descriptors it waits until there are some, and does not spin"""
    with Server("any", files=16) as server:
        held = [server.connect() for _ in range(40)]
        time.sleep(0.5)
        before = ticks(server.process.pid)
        time.sleep(2)
        assert ticks(server.process.pid) - before <= 10
        for client in held:
            client.close()
        honest(server)


def admitted():
    """of this machine's users only those that were named may read"""
    own = os.getuid()
    other = 65534 if own == 0 else 0
    with Server() as server:            # root
        assert status_of(server.ask(get())) == (200 if own == 0 else 403)
    if own:
        with Server(str(own)) as server:
            honest(server)
        return
    for readers, want in (((), 403), (("nobody",), 200), (("any",), 200), (("12345",), 403)):
        with Server(*readers) as server:
            assert status_as(other, server) == want, readers


def status_as(uid, server):
    """What a process of that user is answered."""
    child = os.fork()
    if not child:
        os.setgid(uid)
        os.setuid(uid)
        os._exit(status_of(server.ask(get())) // 100)
    return {2: 200, 4: 403}.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def gone_clients():
    """clients that are gone before their answer end nothing"""
    with Server() as server:
        for _ in range(20):
            client = server.connect()
            client.sendall(get())
            client.close()
        time.sleep(0.2)
        assert server.process.poll() is None


def path():
    """on a socket with a path, its mode says who may read"""
    name = f"/tmp/hamlyn-exporter-{os.getpid()}"
    try:
        with Server(family=socket.AF_UNIX, address=name) as server:
            honest(server)
    finally:
        os.unlink(name)


def ends():
    """SIGTERM ends it, with success, while clients are connected"""
    server = Server("any")
    client = server.connect()
    honest(server)
    assert server.end() == 0
    client.close()


def no_socket():
    """without a socket of systemd's it says what to do"""
    said = subprocess.run([PROGRAM, "metrics", "serve"], capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert said.returncode == 1 and "hamlyn-metrics.socket" in said.stderr, said


def main():
    if not PROGRAM or PROGRAM in ("-h", "--help"):
        print(f"usage: {sys.argv[0]} HAMLYNCTL\n\n{__doc__}")
        return 2
    for function in (formats, wrong_requests, nonsense, half_open, patience, trickle, slow_readers,
                     idle_costs_nothing, few_descriptors, admitted, gone_clients, path, ends,
                     no_socket):
        test(function)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
