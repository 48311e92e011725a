"""A job of the tests: loaders of all kinds; prints what PyTorch delivered, as JSON.

Each case iterates over one or more loaders. For each: [begin, end, pids], with times of
CLOCK_MONOTONIC in ns and the process that made each delivered batch (0: next() raised).
Arguments: names of cases; none: all; after a "-": all but these. LOADER_JOB_SECONDS: no case
begins after so many seconds.
"""

import json
import multiprocessing
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Numbers(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.tensor([index, os.getpid()])


class Stream(IterableDataset):
    def __init__(self, sizes):
        self.sizes = sizes  # samples of each worker

    def __iter__(self):
        info = get_worker_info()
        for i in range(self.sizes[info.id if info else 0]):
            yield torch.tensor([i, os.getpid()])


class Failing(Numbers):
    def __getitem__(self, index):
        if index == 9:
            raise ValueError("sample nine is bad")
        return super().__getitem__(index)


def first(batch):
    return batch[0]


def iterate(loader, epochs=1):
    out = []
    for _ in range(epochs):
        for batch in loader:
            pid = int(batch.reshape(-1, 2)[0, 1])
            out.append(pid)
    return out


def cases():
    for method in ("fork", "spawn", "forkserver"):
        def context(workers, method=method):
            return {"num_workers": workers, "multiprocessing_context": method}
        yield "map_" + method, lambda c=context: iterate(
            DataLoader(Numbers(23), batch_size=4, shuffle=True, **c(2)), 2)
        yield "iterable_" + method, lambda c=context: iterate(
            DataLoader(Stream([8, 0, 3]), batch_size=2, **c(3)))
        yield "persistent_" + method, lambda c=context: iterate(
            DataLoader(Numbers(12), batch_size=3, persistent_workers=True, **c(2)), 3)
        yield "persistent_iterable_" + method, lambda c=context: iterate(
            DataLoader(Stream([4, 2]), batch_size=2, persistent_workers=True, **c(2)), 2)
        yield "unbatched_" + method, lambda c=context: iterate(
            DataLoader(Numbers(5), batch_size=None, **c(2)))
    yield "map_main", lambda: iterate(DataLoader(Numbers(23), batch_size=4), 2)
    yield "iterable_main", lambda: iterate(DataLoader(Stream([9]), batch_size=2), 2)
    yield "unbatched_main", lambda: iterate(DataLoader(Numbers(5), batch_size=None))
    yield "collate_main", lambda: iterate(DataLoader(Numbers(6), batch_size=2, collate_fn=first))
    yield "two_at_once", two_at_once
    yield "broken_off", broken_off
    yield "failing", failing
    yield "out_of_order", out_of_order


def two_at_once():
    a = DataLoader(Numbers(6), batch_size=2, num_workers=1)
    b = DataLoader(Numbers(9), batch_size=3, num_workers=1)
    out = []
    for x, y in zip(a, b):
        out += [int(x[0, 1]), int(y[0, 1])]
    return out


def broken_off():
    out = []
    for batch in DataLoader(Numbers(40), batch_size=2, num_workers=2):
        out.append(int(batch[0, 1]))
        if len(out) == 3:
            break
    return out


def failing():
    loader = iter(DataLoader(Failing(16), batch_size=2, num_workers=2))
    out = []
    while True:
        try:
            out.append(int(next(loader)[0, 1]))
        except StopIteration:
            return out
        except ValueError:
            out.append(0)


def out_of_order():
    try:
        loader = DataLoader(Numbers(24), batch_size=2, num_workers=3, in_order=False)
    except TypeError:
        return None  # before PyTorch 2.6
    return iterate(loader)


def main():
    multiprocessing.set_forkserver_preload(["torch"])
    wanted = sys.argv[1:]
    unwanted = wanted[1:] if wanted[:1] == ["-"] else []
    if unwanted:
        wanted = []
    done = {}
    end = time.monotonic() + float(os.environ.get("LOADER_JOB_SECONDS", "1e9"))
    for name, run in cases():
        if time.monotonic() > end:
            break
        if (not wanted or name in wanted) and name not in unwanted:
            begin = time.monotonic_ns()
            pids = run()
            done[name] = [begin, time.monotonic_ns(), pids]
    print(json.dumps(done))


if __name__ == "__main__":
    main()
