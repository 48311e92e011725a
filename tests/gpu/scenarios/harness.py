"""What every scenario shares: options, calibration, step timing, the result lines.

A scenario is a small training job whose bottleneck is built in. It is ordinary user
code around a plain loop; this file adds nothing that a profiler could use as a hint (no
ranges, no marks). In: command-line options. Out, on stdout, at the end:

  RESULT S01 none steps_per_s=… tc_ms=… step_ms_p50=… step_ms_p95=… …
  TRUTH {"scenario": …, "expect": {…}, "measured": {…}}

`tc` is the device time of one step with every launch queued beforehand, `tl` the host
time to issue one step. All injected delays are multiples of `tc`, so the answer does not
depend on the machine. Expected shares are computed from what this very run measured.
"""

import argparse
import json
import math
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as functional
from torch import nn

WARM_UP_STEPS = 20
TWIN_WARM_UP_STEPS = 10


def parse(scenario, fixes=("none", "A"), steps=100, twin=True, extra=None):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--fix", choices=fixes, default="none")
    parser.add_argument("--twin", action="store_true",
                        help="the same job made so heavy on the device that the device is the limit")
    parser.add_argument("--steps", type=int,
                        help="counted steps, after 20 others (default %d; twins: 30)" % steps)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="smallest sizes, to try the code")
    parser.add_argument("--max-seconds", type=float, default=25.0,
                        help="stop counting after this long, but not before 30 steps")
    parser.add_argument("--calibration", metavar="FILE",
                        help="take calibrated values from this JSON file, add those that lack")
    parser.add_argument("--calibrate-only", action="store_true",
                        help="end before the first counted step (run_suite, before a recording)")
    parser.add_argument("--gate", help="wait for this file after the imports (used by run_suite)")
    parser.add_argument("--kineto", help="write a torch.profiler trace of 6 steps to this file")
    if extra:
        extra(parser)
    args = parser.parse_args()
    if args.twin and not twin:
        parser.error(scenario + " has no device-bound twin")
    if args.steps is None:
        args.steps = min(steps, 30) if args.twin else steps
    return args


class Job:
    """Options, device and clock of one run."""

    def __init__(self, scenario, name, **options):
        self.scenario = scenario
        self.name = name
        self.args = parse(scenario, **options)
        self.fix = self.args.fix
        self.twin = self.args.twin
        self.tiny = self.args.tiny
        self.cuda = self.args.device == "cuda"
        if self.args.gate:
            wait_for(self.args.gate)
        self.wall_begin = time.perf_counter()
        if self.cuda and not torch.cuda.is_available():
            sys.exit("no CUDA device; use --device cpu --tiny to try the code")
        torch.manual_seed(self.args.seed)
        self.device = torch.device(self.args.device)
        self.measured = {}
        self.warm_up = 3 if self.tiny else TWIN_WARM_UP_STEPS if self.twin else WARM_UP_STEPS

    def total_steps(self):
        return self.warm_up + self.args.steps

    def calibrated(self, name, measure):
        """`measure()`, a dict of numbers, or what an earlier run on this machine measured.

        Calibrating synchronises and repeats steps, which a recording should not contain:
        run_suite lets a plain run calibrate and the recorded one read."""
        path = self.args.calibration
        known = {}
        if path and os.path.exists(path):
            with open(path) as file:
                known = json.load(file)
        if name not in known:
            known[name] = measure()
            if path:
                fresh = "%s.%d" % (path, os.getpid())  # several ranks may calibrate
                with open(fresh, "w") as file:
                    json.dump(known, file, indent=1)
                os.replace(fresh, path)
        print("calibrated %s: %s" % (name, known[name]), flush=True)
        return known[name]

    def step_times(self, name, step, device_ms=None):
        """(tc, tl) of `step`, calibrated; name it after everything that changes them."""
        def measure():
            for _ in range(5):
                step()
            return {"tl": self.host_ms(step), "tc": (device_ms or self.device_ms)(step)}
        times = self.calibrated(name, measure)
        return times["tc"], times["tl"]

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize()

    def stamp(self):
        """A point on the device timeline that costs the host a few microseconds."""
        if self.cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event
        return time.perf_counter_ns()

    def between_ms(self, first, second):
        if self.cuda:
            return first.elapsed_time(second)
        return (second - first) / 1e6

    def hold_device(self, milliseconds):
        """Keeps the device busy so that the launches that follow queue up behind."""
        if self.cuda:
            torch.cuda._sleep(int(milliseconds * 1.8e6))

    def device_ms(self, step, hold_ms=None, repeat=5):
        """Device time of `step()` with no launch gap in it; fits ~900 launches."""
        if not self.cuda:
            return self.host_ms(step, repeat)
        if hold_ms is None:
            hold_ms = 2.0 * self.host_ms(step, 3) + 2.0
        times = []
        for _ in range(repeat):
            torch.cuda.synchronize()
            self.hold_device(hold_ms)
            first = self.stamp()
            step()
            second = self.stamp()
            second.synchronize()
            times.append(first.elapsed_time(second))
        return statistics.median(times)

    def host_ms(self, step, repeat=10):
        """Host time to issue `step()` on an idle device."""
        times = []
        for _ in range(repeat):
            self.synchronize()
            begin = time.perf_counter()
            step()
            times.append((time.perf_counter() - begin) * 1e3)
        self.synchronize()
        return statistics.median(times)

    def meter(self, **options):
        """Call it after everything that is calibrated and before everything that is recorded."""
        if self.args.calibrate_only:
            self.synchronize()
            sys.stdout.flush()
            sys.exit(0)
        return Meter(self, **options)


class Meter:
    """Times steps on the device timeline. Call `go_on()` at the end of each step."""

    def __init__(self, job, warm_up=None, steps=None):
        self.job = job
        self.warm_up = job.warm_up if warm_up is None else warm_up
        self.steps = job.args.steps if steps is None else steps
        self.stamps = []
        self.host = []
        self.profiler = None
        if job.args.kineto:
            self.profiler = self._kineto(job)
            self.profiler.start()

    def _kineto(self, job):
        from torch.profiler import ProfilerActivity, profile, schedule
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if job.cuda else [])
        return profile(activities=activities,
                       schedule=schedule(wait=self.warm_up + 4, warmup=2, active=6, repeat=1),
                       on_trace_ready=lambda p: p.export_chrome_trace(job.args.kineto))

    def total(self):
        return self.warm_up + self.steps

    def go_on(self):
        self.stamps.append(self.job.stamp())
        self.host.append(time.perf_counter())
        if self.profiler:
            self.profiler.step()
        counted = len(self.stamps) - 1 - self.warm_up
        if counted >= self.steps:
            return False
        if counted >= 30 and self.host[-1] - self.host[self.warm_up] > self.job.args.max_seconds:
            return False
        return True

    def stop(self):
        self.job.synchronize()
        if self.profiler:
            self.profiler.stop()
        used = self.stamps[min(self.warm_up, max(0, len(self.stamps) - 2)):]
        self.step_ms = [self.job.between_ms(a, b) for a, b in zip(used, used[1:])]
        return self.step_ms


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def finish(job, meter, tc_ms, tl_ms, expect, samples_per_step=0, loss=None):
    """Prints the result and the truth. `expect` is a dict from `expected()`."""
    step_ms = meter.step_ms if hasattr(meter, "step_ms") else meter.stop()
    job.measured["finite"] = loss is None or math.isfinite(float(loss))
    if loss is not None:
        job.measured["loss_last"] = float(loss).hex()  # every bit of it
    p50 = percentile(step_ms, 0.5)
    mean = statistics.fmean(step_ms)
    measured = dict(job.measured)
    measured.update(tc_ms=tc_ms, tl_ms=tl_ms, step_ms_p50=p50, step_ms_p95=percentile(step_ms, 0.95),
                    step_ms_mean=mean, steps_per_s=1e3 / mean, counted=len(step_ms),
                    samples_per_step=samples_per_step,
                    wall_s=time.perf_counter() - job.wall_begin)
    print("RESULT %s %s steps_per_s=%.3f tc_ms=%.3f step_ms_p50=%.3f step_ms_p95=%.3f tl_ms=%.3f "
          "step_ms_mean=%.3f" % (job.scenario, job.fix, 1e3 / mean, tc_ms, p50,
                                 percentile(step_ms, 0.95), tl_ms, mean))
    print("TRUTH " + json.dumps({"scenario": job.scenario, "name": job.name, "fix": job.fix,
                                 "twin": job.twin, "torch": torch.__version__,
                                 "device": device_name(job), "expect": expect,
                                 "measured": measured}))
    sys.stdout.flush()


def device_name(job):
    return torch.cuda.get_device_name() if job.cuda else "cpu"


def expected(verdicts, leaves=(), limiters=(), share=None, tolerance=0.10, accept=(), forbid=(),
             forbid_first=(), gone=None, **more):
    """What a right report says. `share` is that of the first verdict in the step; `accept`
    the advice of which one must come first; `forbid` what must not be advised at all;
    `gone` the verdict that must have fallen under 10 % of the step. `more`: further checks
    that run_suite knows by name (see tests/gpu/README.md)."""
    result = {"verdicts": list(verdicts), "leaves": list(leaves), "limiters": list(limiters),
              "share": share, "tolerance": tolerance, "accept": list(accept),
              "forbid": list(forbid), "forbid_first": list(forbid_first), "gone": gone}
    result.update(more)
    return result


def device_bound(gone=None, forbid=(), **more):
    """Expectation of every twin and of most fixes."""
    return expected(["COMPUTE"], gone=gone, forbid=forbid, **more)


def idle_share(tc_ms, step_ms):
    return max(0.0, 1.0 - tc_ms / step_ms)


def wait_for(path):
    print("READY", flush=True)
    while not os.path.exists(path):
        time.sleep(0.02)


def burn(milliseconds):
    """Keeps this thread's core busy for that much CPU time."""
    end = time.thread_time_ns() + int(milliseconds * 1e6)
    value = 1
    while time.thread_time_ns() < end:
        for _ in range(20):
            value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return value


class Ballast:
    """Large matrix products that make a step longer on the device and hardly on the host."""

    def __init__(self, job, dtype):
        self.job = job
        self.dtype = dtype
        self.count = 0

    def set(self, milliseconds):
        """Returns the device time that a step gains."""
        size = 64 if self.job.tiny else 4096
        kind = {"device": self.job.device, "dtype": self.dtype}
        self.left, self.right = torch.randn(size, size, **kind), torch.randn(size, size, **kind)
        self.product = torch.empty(size, size, **kind)
        one = self.job.calibrated("product", lambda: {
            "ms": self.job.device_ms(lambda: self._multiply(20), 5.0) / 20})["ms"]
        self.count = 2 if self.job.tiny else max(1, round(milliseconds / one))
        return self.count * one

    def _multiply(self, count):
        for _ in range(count):
            torch.mm(self.left, self.right, out=self.product)

    def run(self):
        self._multiply(self.count)


# ---- model R --------------------------------------------------------------


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = functional.relu(self.first_norm(self.first(x)), inplace=True)
        y = self.second_norm(self.second(y))
        return functional.relu(y + (x if self.shortcut is None else self.shortcut(x)), inplace=True)


class ResNet18(nn.Module):
    """The usual layer sizes (He et al. 2015, table 1, 18-layer)."""

    def __init__(self, width=64, classes=1000):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.stem_norm = nn.BatchNorm2d(width)
        blocks = []
        inputs = width
        for stage in range(4):
            outputs = width << stage
            for block in range(2):
                blocks.append(BasicBlock(inputs, outputs, 2 if stage and not block else 1))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, x):
        x = functional.relu(self.stem_norm(self.stem(x)), inplace=True)
        x = functional.max_pool2d(x, 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


class Trainer:
    """Model R: ResNet-18 in bf16 on images that arrive small and grow on the device.

    Samples are 3x64x64 bytes, enlarged to 224x224 there: loading costs what a scenario
    injects and little else, however large the batch."""

    def __init__(self, job, batch=None, host_limit=0.6):
        self.job = job
        self.dtype = torch.bfloat16 if job.cuda else torch.float32
        self.side, self.grown = (8, 16) if job.tiny else (64, 224)
        self.model = ResNet18(4 if job.tiny else 64).to(job.device, self.dtype)
        self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.ballast = Ballast(job, self.dtype)
        self.batch = batch or (4 if job.tiny else 128)
        found = job.calibrated("R %s %s" % (batch, host_limit),
                               lambda: self._calibrate(batch is None and not job.tiny, host_limit))
        self.batch, self.tc_ms, self.tl_ms = found["batch"], found["tc"], found["tl"]

    def random_batch(self, device=None):
        images = torch.randint(0, 256, (self.batch, 3, self.side, self.side), dtype=torch.uint8)
        labels = torch.randint(0, 1000, (self.batch,))
        device = device or self.job.device
        return images.to(device), labels.to(device)

    def step(self, images, labels):
        x = images.to(self.dtype).mul_(1 / 255).contiguous(memory_format=torch.channels_last)
        x = functional.interpolate(x, size=(self.grown, self.grown), mode="nearest")
        loss = functional.cross_entropy(self.model(x).float(), labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.ballast.run()
        return loss.detach()

    def _measure(self):
        images, labels = self.random_batch()
        for _ in range(2 if self.job.tiny else 6):
            self.step(images, labels)
        self.tl_ms = self.job.host_ms(lambda: self.step(images, labels), 2 if self.job.tiny else 10)
        self.tc_ms = self.job.device_ms(lambda: self.step(images, labels))

    def _calibrate(self, may_grow, host_limit):
        self._measure()
        while may_grow and self.tl_ms > host_limit * self.tc_ms and self.batch < 1024:
            self.batch *= 2
            self._measure()
        return {"batch": self.batch, "tc": self.tc_ms, "tl": self.tl_ms}

    def add_ballast(self, milliseconds):
        self.tc_ms += self.ballast.set(milliseconds)
        print("ballast: %d products, tc %.2f ms" % (self.ballast.count, self.tc_ms))


class ImageSet(torch.utils.data.Dataset):
    """`length` labelled images; `cost(index)` is what one sample costs the loader."""

    def __init__(self, length, side, cost=None, seed=1):
        generator = torch.Generator().manual_seed(seed)
        self.images = torch.randint(0, 256, (64, 3, side, side), dtype=torch.uint8,
                                    generator=generator)
        self.length = length
        self.cost = cost

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.cost:
            self.cost(index)
        return self.images[index % 64], index % 1000


class Burn:
    """A per-sample CPU cost that can be pickled."""

    def __init__(self, milliseconds):
        self.milliseconds = milliseconds

    def __call__(self, index):
        burn(self.milliseconds)


def loader(job, dataset, batch, **options):
    options.setdefault("pin_memory", job.cuda)
    options.setdefault("drop_last", True)
    if job.tiny and options.get("num_workers", 0) > 2:
        options["num_workers"] = 2
    return torch.utils.data.DataLoader(dataset, batch_size=batch, **options)


def train(job, trainer, batches, meter=None, move=None):
    """The plain loop: one step a batch, copies asynchronous, nothing waits."""
    meter = meter or job.meter()
    loss = None
    for images, labels in batches:
        images = images.to(job.device, non_blocking=True)
        labels = labels.to(job.device, non_blocking=True)
        loss = trainer.step(images, labels)
        if not meter.go_on():
            break
    meter.stop()
    return meter, loss
