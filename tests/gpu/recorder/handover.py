"""torch.profiler in a job whose recorder has a window open: nobody loses data silently.

Usage: handover.py ROUNDS. In: LD_PRELOAD of the recorder, IDLESCOPE_WINDOW=off. Per round: the C API
opens a window, 30 steps; torch.profiler starts (the recorder must let go first), 20 steps, stops; the
recorder must take its window up again by itself, 30 steps; the API closes it. Once a profiler session
also comes before the first window and one after the last. Out: one JSON line; exit code 1 if a
profiler session saw fewer kernels than the steps launched, or a window did not come back.
"""
import ctypes
import json
import sys
import time

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile

from recorder_status import status

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
library = ctypes.CDLL(None)
torch.manual_seed(0)
net = nn.Sequential(*[m for _ in range(8) for m in (nn.Linear(256, 256), nn.ReLU())]).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, foreach=False)
x, y = torch.randn(32, 256, device="cuda"), torch.randn(32, 256, device="cuda")


def steps(count):
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    torch.cuda.synchronize()


def wait_for(open_wanted, limit_s=5.0):
    until = time.monotonic() + limit_s
    while bool(status().window_open) != open_wanted and time.monotonic() < until:
        time.sleep(0.001)
    return bool(status().window_open) == open_wanted


def profiled(count):
    """Kernels that torch.profiler saw in `count` steps."""
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as session:
        steps(count)
    return sum(1 for e in session.events() if str(e.device_type).endswith("CUDA"))


steps(20)
before = profiled(20)
lost, not_opened, not_back, counts = 0, 0, 0, []
for _ in range(rounds):
    library.idlescope_start()
    not_opened += not wait_for(True)
    steps(30)
    counts.append(profiled(20))
    not_back += not wait_for(True, 10.0)
    steps(30)
    library.idlescope_stop()
    wait_for(False)
after = profiled(20)
least = 20 * 60  # a step launches more than 100 kernels
lost = sum(c < least for c in counts + [before, after])
print(json.dumps({"rounds": rounds, "kernels_before": before, "kernels_after": after,
                  "kernels_min": min(counts), "kernels_max": max(counts), "sessions_short": lost,
                  "windows_not_opened": not_opened, "windows_not_back": not_back,
                  "windows": status().windows, "trace": status().path.decode()}), flush=True)
sys.exit(1 if lost or not_opened or not_back else 0)
