#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""mpi4py over whatever carries MPI: objects, buffers, probes, windows, all checked."""
import array
import sys

import mpi4py

# Windows over messages (osc/pt2pt) are not for threads.
mpi4py.rc.thread_level = "serialized" if "--window" in sys.argv else "multiple"

from mpi4py import MPI  # noqa: E402 (the level has to be known before)

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size
NEXT, LAST = (RANK + 1) % SIZE, (RANK - 1) % SIZE


def point_to_point():
    """Objects of all lengths; tags out of order; a message that is looked for first."""
    for k in range(50):
        got = COMM.sendrecv({"from": RANK, "text": "y" * k * 100}, dest=NEXT, source=LAST,
                            sendtag=k, recvtag=k)
        assert got["from"] == LAST and len(got["text"]) == k * 100
    requests = [COMM.isend(i, dest=NEXT, tag=i) for i in range(20)]
    for i in reversed(range(20)):
        assert COMM.recv(source=LAST, tag=i) == i
    MPI.Request.waitall(requests)
    if RANK == 0:
        COMM.send("probed", dest=SIZE - 1, tag=99)
    if RANK == SIZE - 1:
        assert COMM.mprobe(source=0, tag=99).recv() == "probed"
    assert not COMM.iprobe(source=MPI.ANY_SOURCE, tag=12345)
    request = COMM.irecv(source=LAST, tag=777)
    request.cancel()
    request.Wait()


def collective():
    """All of them together."""
    assert COMM.allreduce(RANK) == SIZE * (SIZE - 1) // 2
    assert COMM.allgather(RANK) == list(range(SIZE))
    assert COMM.alltoall([RANK * SIZE + i for i in range(SIZE)]) == \
        [i * SIZE + RANK for i in range(SIZE)]
    assert len(COMM.bcast(b"z" * 3000000 if RANK == 0 else None)) == 3000000
    numbers, total = array.array("d", [RANK] * 100000), array.array("d", [0] * 100000)
    COMM.Allreduce(numbers, total)
    assert set(total) == {SIZE * (SIZE - 1) / 2}
    half = COMM.Split(RANK % 2, RANK)
    assert half.allreduce(1) == (SIZE + 1 - RANK % 2) // 2
    half.Free()


def window():
    """What another has put into its memory is read there."""
    numbers, got = array.array("d", [RANK] * 1000), array.array("d", [0] * 10)
    win = MPI.Win.Create(numbers, comm=COMM)
    win.Fence()
    win.Get(got, NEXT)
    win.Fence()
    assert set(got) == {float(NEXT)}
    win.Free()


point_to_point()
collective()
if "--window" in sys.argv:
    window()
