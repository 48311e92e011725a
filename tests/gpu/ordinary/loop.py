"""What the ordinary jobs share: options, when to stop, the result lines. Nothing a profiler could use.

`main(JOBS)` runs the function that the first argument names. It calls `size(full, tiny)` for
its sizes and `go_on()` at the end of each step. On stdout, at the end, as the scenarios do:

  RESULT unet_ema none steps=… step_ms_p50=… step_ms_mean=…
  TRUTH {"expect": {…}, …}      what catalogue.py said before the job ever ran
"""

import argparse
import json
import math
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.dirname(HERE))
sys.path.insert(2, os.path.join(os.path.dirname(HERE), "scenarios"))

import torch  # noqa: E402

from ordinary import catalogue  # noqa: E402

ARGS = None
DEVICE = None


def size(full, tiny):
    return tiny if ARGS.tiny else full


def cuda():
    return DEVICE.type == "cuda"


def on_device(*modules):
    moved = [m.to(DEVICE) for m in modules]
    return moved[0] if len(moved) == 1 else moved


def low_precision(dtype=None):
    return torch.autocast(DEVICE.type, dtype or torch.bfloat16)


class Pace:
    """Ends the job `seconds` after its third step, or after `steps` steps."""

    def __init__(self):
        self.ends = []
        self.begin = None
        self.loss = None

    def go_on(self, loss=None):
        self.ends.append(time.perf_counter())
        self.loss = loss
        if len(self.ends) == 3:
            self.begin = self.ends[-1]
        if ARGS.steps:
            return len(self.ends) < ARGS.steps
        return len(self.ends) < 4 or self.ends[-1] - self.begin < ARGS.seconds

    def finish(self, name):
        if cuda():
            torch.cuda.synchronize()
        used = self.ends[len(self.ends) // 4:]
        step_ms = sorted(1e3 * (b - a) for a, b in zip(used, used[1:])) or [0.0]
        p50, mean = step_ms[len(step_ms) // 2], statistics.fmean(step_ms)
        measured = {"step_ms_p50": p50, "step_ms_mean": mean, "counted": len(step_ms),
                    "finite": self.loss is None or math.isfinite(self.loss.detach().item())}
        print("RESULT %s none steps=%d step_ms_p50=%.3f step_ms_mean=%.3f"
              % (name, len(self.ends), p50, mean))
        print("TRUTH " + json.dumps({"scenario": name, "fix": "none", "torch": torch.__version__,
                                     "expect": catalogue.expectation(name),
                                     "measured": measured}), flush=True)


PACE = Pace()
go_on = PACE.go_on


def steps():
    return len(PACE.ends)


def main(jobs):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("job", choices=[job.__name__ for job in jobs])
    parser.add_argument("--seconds", type=float, default=7.0, help="from the third step on")
    parser.add_argument("--steps", type=int, help="this many steps instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, to try the code")
    parser.add_argument("--gate", help="wait for this file after the imports (run_suite)")
    run(jobs, parser.parse_args())


def run(jobs, args):
    global ARGS, DEVICE
    ARGS = args
    while args.gate and not os.path.exists(args.gate):
        time.sleep(0.02)
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device; use --device cpu --tiny to try the code")
    DEVICE = torch.device(args.device)
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    PACE.__init__()
    next(job for job in jobs if job.__name__ == args.job)()
    PACE.finish(args.job)
