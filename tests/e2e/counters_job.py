"""A job of the tests: a loader whose fetches are slow for one known reason.

Arguments: cause, number of workers, a data file. Prints the number of batches.
"""

import hashlib
import mmap
import os
import socket
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

SAMPLE_BYTES = 1 << 20


def work(cpu_ms):
    end = time.thread_time() + cpu_ms / 1000
    while time.thread_time() < end:
        hashlib.md5(b"x" * 1000).digest()


class Slow(Dataset):
    def __init__(self, cause, path, size):
        self.cause, self.path, self.size = cause, path, size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        getattr(self, self.cause)(index)
        return torch.tensor(index)

    def cold_read(self, index):
        with open(self.path, "rb") as file:
            at = index * SAMPLE_BYTES
            os.posix_fadvise(file.fileno(), at, SAMPLE_BYTES, os.POSIX_FADV_DONTNEED)
            os.pread(file.fileno(), SAMPLE_BYTES, at)

    def cold_mmap(self, index):
        with open(self.path, "rb") as file:
            at = index * SAMPLE_BYTES
            os.posix_fadvise(file.fileno(), at, SAMPLE_BYTES, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(file.fileno(), SAMPLE_BYTES, prot=mmap.PROT_READ, offset=at) as view:
                view.madvise(mmap.MADV_RANDOM)
                sum(view[i] for i in range(0, SAMPLE_BYTES, 16384))

    def warm_read(self, index):
        with open(self.path, "rb") as file:
            for _ in range(8):
                os.pread(file.fileno(), SAMPLE_BYTES, 0)

    def cpu(self, index):
        work(4)

    def gil(self, index):
        # Another thread of the worker holds the interpreter; ours waits for it.
        end = time.monotonic() + 0.004
        if not hasattr(self, "spinner"):
            self.spinner = threading.Thread(target=spin, daemon=True)
            self.spinner.start()
        while time.monotonic() < end:
            time.sleep(0)

    def sleep(self, index):
        time.sleep(0.004)

    def socket(self, index):
        if not hasattr(self, "ends"):
            self.ends = socket.socketpair()
            threading.Thread(target=serve, args=(self.ends[1],), daemon=True).start()
        self.ends[0].sendall(b"?")
        got = 0
        while got < 65536:
            got += len(self.ends[0].recv(65536))


def spin():
    while True:
        pass


def serve(end):
    while end.recv(1):
        time.sleep(0.004)
        end.sendall(b"x" * 65536)


if __name__ == "__main__":
    cause, workers, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    size = 12 * max(workers, 1)
    if cause in ("cold_read", "cold_mmap"):
        size = min(size, os.path.getsize(path) // SAMPLE_BYTES)
    loader = DataLoader(Slow(cause, path, size), batch_size=2, num_workers=workers)
    print(sum(1 for _ in loader))
