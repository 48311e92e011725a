"""What a window costs inside, interleaved in one process: plain, recorder, Kineto.

Usage: window_cost.py ROUNDS STEPS. In: LD_PRELOAD of the recorder, IDLESCOPE_WINDOW=off. The job is
an 8-layer MLP, 256 wide, batch 32, SGD without foreach. Each round measures the modes in turn, each
against the plain block just before it. Out: medians and ranges of the ratios.
"""
import ctypes
import statistics
import sys
import time

import torch
import torch.nn as nn

rounds, steps = int(sys.argv[1]), int(sys.argv[2])
library = ctypes.CDLL(None)
net = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(256, 256), nn.ReLU())]).cuda()
x, y = torch.randn(32, 256, device="cuda"), torch.randn(32, 256, device="cuda")
lossf = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=False)


def step():
    optimizer.zero_grad(set_to_none=True)
    lossf(net(x), y).backward()
    optimizer.step()


def block():
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / steps * 1e6


def recorder(on):
    (library.idlescope_start if on else library.idlescope_stop)()
    time.sleep(0.15)
    step()


for _ in range(4):
    block()
ratios = {"recorder": [], "after recorder": []}
plain = []
for _ in range(rounds):
    before = block()
    plain.append(before)
    recorder(True)
    ratios["recorder"].append(block() / before)
    recorder(False)
    ratios["after recorder"].append(block() / before)
print("plain step, us: median %.0f range %.0f-%.0f" % (statistics.median(plain), min(plain), max(plain)))
# Kineto last: before PyTorch 2.13 its first session leaves CUPTI attached.
from torch.profiler import ProfilerActivity, profile  # noqa: E402

for name, activities in (("Kineto CUDA", [ProfilerActivity.CUDA]),
                         ("Kineto CUDA+CPU", [ProfilerActivity.CUDA, ProfilerActivity.CPU])):
    for _ in range(2):
        with profile(activities=activities):
            step()
            took = block()
        ratios.setdefault(name, []).append(took / statistics.median(plain))
after = [block() for _ in range(2)]
ratios["after Kineto"] = [a / statistics.median(plain) for a in after]
for name, values in ratios.items():
    print("%-16s ratio median %.3f range %.3f-%.3f n=%d" %
          (name, statistics.median(values), min(values), max(values), len(values)))
