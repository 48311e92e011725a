"""Attach and detach CUPTI many times in a job with many launching threads.

Usage: cycles.py CYCLES WINDOW_MS [graph]. In: LD_PRELOAD of the recorder, IDLESCOPE_WINDOW=off; the C API
opens and closes the windows. Launching threads: main (forward, optimizer), autograd, pin-memory
(copies), and four more with streams of their own, one of them with Triton kernels. "graph": main and autograd
replay the graphs of torch.compile(mode="reduce-overhead"), captured before the others start. Out: one JSON
line; what was recorded is checked by value by check_trace.py.
"""
import ctypes
import json
import os
import sys
import threading
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from recorder_status import status

cycles, window_ms = int(sys.argv[1]), float(sys.argv[2])
graph = sys.argv[3:] == ["graph"]
library = ctypes.CDLL(None)


def rss_kb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


torch.manual_seed(0)
net = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(128, 128), nn.ReLU())]).cuda()
if graph:
    net = torch.compile(net, mode="reduce-overhead")
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, foreach=False)
data = TensorDataset(torch.randn(4096, 128), torch.randn(4096, 128))
stop = threading.Event()
counts = [0] * 5


def launch(index):
    stream = torch.cuda.Stream()
    x = torch.zeros(1024, device="cuda")
    kernel = None
    if index == 4:
        try:
            sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
            from addk import addk
            kernel = addk
        except Exception as error:  # Triton is missing: eager then
            print("no Triton:", error, file=sys.stderr)
    y = torch.zeros(1024, device="cuda")
    with torch.cuda.stream(stream):
        while not stop.is_set():
            for _ in range(8):
                if kernel is not None:
                    kernel[(1,)](x, y, 1024)
                else:
                    x.add_(1)
            stream.synchronize()
            counts[index] += 8


def step(x, y):
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    counts[0] += 1


def train():
    while not stop.is_set():
        loader = DataLoader(data, batch_size=64, num_workers=1, pin_memory=True)
        for x, y in loader:
            step(x.cuda(non_blocking=True), y.cuda(non_blocking=True))
            if stop.is_set():
                break
        del loader


def control(report):
    time.sleep(3)
    rss = []
    slowest_open = slowest_close = 0.0
    begin = time.monotonic()
    for cycle in range(cycles):
        t = time.monotonic()
        library.idlescope_start()
        while not status().window_open and time.monotonic() - t < 5:
            time.sleep(0.0005)
        slowest_open = max(slowest_open, time.monotonic() - t)
        if not status().window_open:
            report["stuck"] = "open %d" % cycle
            break
        time.sleep(window_ms / 1e3)
        t = time.monotonic()
        library.idlescope_stop()
        while status().window_open and time.monotonic() - t < 5:
            time.sleep(0.0005)
        slowest_close = max(slowest_close, time.monotonic() - t)
        if status().window_open:
            report["stuck"] = "close %d" % cycle
            break
        time.sleep(0.003)
        if cycle % 50 == 0:
            rss.append(rss_kb())
    report.update(cycles=cycle + 1, seconds=round(time.monotonic() - begin, 1), rss_kb=rss,
                  slowest_open_ms=round(slowest_open * 1e3, 1),
                  slowest_close_ms=round(slowest_close * 1e3, 1))
    stop.set()


if graph:
    for _ in range(5):
        step(torch.randn(64, 128, device="cuda"), torch.randn(64, 128, device="cuda"))
report = {}
others = [threading.Thread(target=launch, args=(i,)) for i in range(1, 5)]
for thread in others:
    thread.start()
controller = threading.Thread(target=control, args=(report,))
controller.start()
train()
controller.join()
for thread in others:
    thread.join()
torch.cuda.synchronize()
report.update(launches=counts, windows=status().windows, trace=status().path.decode())
print(json.dumps(report), flush=True)
