"""A storage server with latency: answers each request after the delay it asks for.

Jobs that wait without using a CPU read from it. It is a program of its own (standard
library only), so the wait is a blocking read of a socket in the process that asks."""

import asyncio
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

REQUEST = struct.Struct("<d")


class SlowStore:
    """Starts the server; `wait(milliseconds)` blocks in a read, from any process."""

    def __init__(self):
        self.path = os.path.join(tempfile.mkdtemp(prefix="slow_store"), "socket")
        # Not part of the job that is looked at: no profiler is loaded into it.
        environment = {k: v for k, v in os.environ.items()
                       if k != "LD_PRELOAD" and not k.startswith("IDLESCOPE")}
        self.server = subprocess.Popen([sys.executable, os.path.abspath(__file__), self.path,
                                        str(os.getpid())], env=environment)
        self.connection = None
        self.owner = 0
        while not os.path.exists(self.path):
            time.sleep(0.01)

    def __getstate__(self):
        return {"path": self.path, "server": None, "connection": None, "owner": 0}

    def wait(self, milliseconds):
        if self.owner != os.getpid():
            self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.connection.connect(self.path)
            self.owner = os.getpid()
        self.connection.sendall(REQUEST.pack(milliseconds))
        return self.connection.recv(1)

    def close(self):
        self.server.terminate()
        self.server.wait()


class SlowRead:
    """A per-sample cost: blocking reads of the store, one for every eighth sample.

    (The server's timers have a grain of a millisecond.)"""

    def __init__(self, store, milliseconds):
        self.store = store
        self.milliseconds = 8 * milliseconds

    def __call__(self, index):
        if index % 8 == 0:
            self.store.wait(self.milliseconds)


async def answer(reader, writer):
    try:
        while True:
            (milliseconds,) = REQUEST.unpack(await reader.readexactly(REQUEST.size))
            await asyncio.sleep(milliseconds / 1e3)
            writer.write(b"x")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve(path, parent):
    await asyncio.start_unix_server(answer, path, backlog=128)
    while os.getppid() == parent:  # never outlives the job
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
