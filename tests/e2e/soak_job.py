"""A job of the tests that does everything the host timeline follows, again and again, and prints
what the process holds: one JSON line a round. Argument: seconds."""

import gc
import io
import json
import os
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Numbers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((8,), float(index)), index


class Failing(Numbers):
    def __getitem__(self, index):
        if index == 9:
            raise ValueError("bad sample")
        return super().__getitem__(index)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(32.0))


def held(pid):
    """What a process holds: resident kB, descriptors, mappings, threads."""
    out = {}
    with open("/proc/%d/status" % pid) as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in ("RssAnon", "RssFile", "RssShmem", "Threads"):
                out[name] = int(value.split()[0])
    out["descriptors"] = len(os.listdir("/proc/%d/fd" % pid))
    with open("/proc/%d/maps" % pid) as file:
        out["mappings"] = sum(1 for _ in file)
    return out


def one_round(model, optimizer, persistent):
    for loader in (DataLoader(Numbers(), batch_size=4),
                   DataLoader(Numbers(), batch_size=4, num_workers=2),
                   DataLoader(Stream(), batch_size=4, num_workers=1), persistent):
        for batch in loader:
            if isinstance(batch, list):
                loss = model(batch[0]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    for _ in DataLoader(Numbers(), batch_size=4, num_workers=1):
        break  # left early
    try:
        for _ in DataLoader(Failing(), batch_size=4, num_workers=1):
            pass
    except ValueError:
        pass
    torch.save(model.state_dict(), io.BytesIO())
    gc.collect()


def settle():
    """The feeder threads of loaders that ended go a moment later, their pipes with them; the
    persistent loader keeps one."""
    end = time.monotonic() + 5
    while time.monotonic() < end and sum(
            t.name == "QueueFeederThread" for t in threading.enumerate()) > 1:
        time.sleep(0.01)
    time.sleep(0.02)


def main():
    end = time.monotonic() + float(sys.argv[1])
    torch.set_num_threads(1)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    persistent = DataLoader(Numbers(), batch_size=2, num_workers=1, persistent_workers=True)
    rounds = 0
    while time.monotonic() < end or rounds < 3:
        one_round(model, optimizer, persistent)
        rounds += 1
        settle()
        workers = [w.pid for w in persistent._iterator._workers]
        print(json.dumps({"round": rounds, "job": held(os.getpid()), "parent": held(os.getppid()),
                          "worker": held(workers[0])}), flush=True)


if __name__ == "__main__":
    main()
