"""torch.profiler in a job whose recorder has a window open: nobody loses data silently.

Usage: handover.py ROUNDS. In: LD_PRELOAD of the recorder, IDLESCOPE_WINDOW=off. Per round: the C API
opens a window, 30 steps; torch.profiler starts (the recorder must let go first), 20 steps, stops; the
recorder must take its window up again by itself, 30 steps; the API closes it.

Before PyTorch 2.13 a profiler session leaves CUPTI subscribed for good unless TEARDOWN_CUPTI=1 is set
(seen with 2.11 on an H200: "CUPTI ... is tracing this GPU; only one tool can"). Without it there is one
round, and the recorder need not come back. With it a session also comes before the first window and
one after the last. Without the recorder only the sessions run: what they do then is not ours. A run
that takes longer than HANDOVER_LIMIT_S (60) says where each thread is and ends with code 1. Out: one JSON line; exit code 1 if a profiler session saw fewer kernels than the
steps launched, a window did not open, or did not come back where it can.
"""
import ctypes
import faulthandler
import json
import os
import sys
import time

import torch
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile

from recorder_status import status

faulthandler.dump_traceback_later(int(os.environ.get("HANDOVER_LIMIT_S", 60)), exit=True)
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
library = ctypes.CDLL(None)
recorded = hasattr(library, "idlescope_start")
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
torn_down = os.environ.get("TEARDOWN_CUPTI") == "1"
sessions = [profiled(20)] if torn_down else []
not_opened, not_back = 0, 0
for _ in range(rounds if torn_down else 1):
    if recorded:
        library.idlescope_start()
        not_opened += not wait_for(True)
    steps(30)
    sessions.append(profiled(20))
    if recorded:
        not_back += not wait_for(True)
    steps(30)
    if recorded:
        library.idlescope_stop()
        wait_for(False)
    if not_opened + not_back > 1:
        break  # each costs its waiting time
sessions.append(profiled(20))
least = 20 * 60  # a step launches more than 100 kernels
lost = sum(c < least for c in sessions)
print(json.dumps({"teardown": torn_down, "sessions": len(sessions), "kernels_min": min(sessions),
                  "kernels_max": max(sessions), "sessions_short": lost,
                  "windows_not_opened": not_opened, "windows_not_back": not_back,
                  "windows": status().windows if recorded else 0,
                  "trace": status().path.decode() if recorded else ""}), flush=True)
sys.exit(1 if lost or not_opened or (torn_down and not_back) else 0)
