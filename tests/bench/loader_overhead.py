"""What the host timeline costs a job: interleaved epochs with and without the library.

    python3 tests/bench/loader_overhead.py LIBRARY [--budget SECONDS] [--json FILE]

The standard call takes under four minutes and needs python3 with PyTorch and the library. It
measures two jobs: one with eight workers, whose samples are decompressed, cropped and
normalised, four in a batch; and one without workers, whose batches cost nothing. Each runs

    plain       without the library
    recorded    with it, as `idlescope record` sets it up
    no-frames   with it, IDLESCOPE_FRAMES=0
    same        without the library once more: what the method finds in nothing

One process for each waits for its turn; only one works at a time. Epochs come as A B C D,
D C B A, so drift of the machine falls on all alike; workers start anew in each. All processes are
started anew every two rounds, because a process keeps its luck with memory. A pair is a variant
and the plain epoch of the same round. CPU time is of the process and its workers, their start
and end included.

The table, last, has the median over all pairs and its 95 % interval: the wider one of order
statistics over the pairs (binomial) and of a bootstrap over the starts.
"""

import argparse
import json
import math
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

JOB = r"""
import json, os, random, resource, sys, time, zlib, torch
from torch.utils.data import DataLoader, Dataset
workers, step_s, batches = int(sys.argv[1]), float(sys.argv[2]) / 1000, 0
SIDE, CROP = 384, 224

class Nothing(Dataset):
    def __len__(self):
        return batches
    def __getitem__(self, index):
        return index

class Decoded(Dataset):
    # An image that is stored compressed: decompress, crop, flip, to float, normalise. The same
    # work for each sample, done in C and in Python as in torchvision's references.
    def __init__(self):
        rng = random.Random(1)
        self.stored = zlib.compress(bytes(rng.choices(range(32), k=SIDE * SIDE * 3)), 6)
    def __len__(self):
        return 4 * batches
    def __getitem__(self, index):
        raw = bytearray(zlib.decompress(self.stored))
        image = torch.frombuffer(raw, dtype=torch.uint8).view(SIDE, SIDE, 3)
        rng = random.Random(index)
        x, y = rng.randrange(SIDE - CROP), rng.randrange(SIDE - CROP)
        image = image[y:y + CROP, x:x + CROP].permute(2, 0, 1)
        if rng.random() < 0.5:
            image = image.flip(2)
        return image.float().div(255).sub(0.45).div(0.22), index % 1000

def first(batch):
    return batch[0]

def cpu():
    used = 0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used

if __name__ == "__main__":
    torch.set_num_threads(1)
    decoded = Decoded()
    print(json.dumps([sys.version.split()[0], torch.__version__]), flush=True)
    for line in sys.stdin:  # one epoch of so many batches
        batches = int(line)
        if workers:
            loader = DataLoader(decoded, batch_size=4, num_workers=workers)
        else:
            loader = DataLoader(Nothing(), batch_size=1, collate_fn=first)
        wall, used, count = time.perf_counter(), cpu(), 0
        for _ in loader:
            count += 1
            if step_s:
                time.sleep(step_s)
        print(json.dumps([(cpu() - used) / count, (time.perf_counter() - wall) / count]),
              flush=True)
"""
VARIANTS = ("plain", "recorded", "no-frames", "same")
ROUNDS_PER_START = 2
MEASURES = ("CPU", "wall")


class Job:
    """One process that waits for its turn."""

    def __init__(self, options, setup, variant, folder):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("IDLESCOPE_")}
        if variant in ("recorded", "no-frames"):
            environment.update(LD_PRELOAD=options.library,
                               IDLESCOPE_OUTPUT=os.path.join(folder, variant))
        if variant == "no-frames":
            environment["IDLESCOPE_FRAMES"] = "0"
        self.errors = os.path.join(folder, variant + ".stderr")
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [options.python, "-c", JOB, str(setup["workers"]), str(options.step_ms)],
                env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                text=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            with open(self.errors) as file:
                sys.exit("the job ended: " + file.read()[-2000:])
        return json.loads(line)

    def epoch(self, batches):
        self.process.stdin.write("%d\n" % batches)
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def one_start(options, setup, number, seconds):
    """Rounds of freshly started processes: [{variant: [CPU s, wall s]}, …]. The first start
    chooses how long an epoch is, so that a start takes about `seconds`."""
    folder = tempfile.mkdtemp(prefix="loader_overhead_")
    jobs = {v: Job(options, setup, v, folder) for v in options.variants}
    try:
        for job in jobs.values():
            setup["versions"] = job.answer()
        few = 40 if setup["workers"] else 2000
        for job in jobs.values():
            job.epoch(few)  # warm: imports, caches
        if not setup["batches"]:
            _, batch_s = jobs["plain"].epoch(few)
            epochs = 2 * ROUNDS_PER_START * len(jobs)
            setup["batches"] = int(min(max(seconds / epochs / batch_s, few), 10 * few))
        shift = number % len(options.variants)
        order = options.variants[shift:] + options.variants[:shift]
        rounds = []
        for _ in range(ROUNDS_PER_START):
            for turn in (order, order[::-1]):
                rounds.append({variant: jobs[variant].epoch(setup["batches"]) for variant in turn})
        return rounds
    finally:
        for job in jobs.values():
            job.end()
        shutil.rmtree(folder, ignore_errors=True)


def measure(options, setup, budget_s):
    """Starts processes until the next start would not fit into the budget."""
    begin = time.monotonic()
    starts, longest = [], 0
    while True:
        if options.starts:
            if len(starts) == options.starts:
                break
        elif starts and time.monotonic() - begin + longest > budget_s:
            break
        before = time.monotonic()
        # Ten starts or so; importing PyTorch takes part of the time.
        starts.append(one_start(options, setup, len(starts), budget_s / 15))
        longest = max(longest, time.monotonic() - before)
        print("%d workers: start %d, %.0f s" % (setup["workers"], len(starts),
                                                time.monotonic() - begin), flush=True)
    return starts


def median_and_interval(starts):
    """`starts`: for each start its values. Median of all and the wider of two 95 % intervals."""
    values = sorted(v for start in starts for v in start)
    half = 0.98 * math.sqrt(len(values))
    low = values[max(int(math.floor(len(values) / 2 - half)), 0)]
    high = values[min(int(math.ceil(len(values) / 2 + half)), len(values) - 1)]
    rng = random.Random(1)
    medians = sorted(
        statistics.median([v for start in rng.choices(starts, k=len(starts)) for v in start])
        for _ in range(2000))
    return (statistics.median(values), min(low, medians[50]), max(high, medians[1949]))


def summary(starts, variants):
    """Medians of plain and, for each other variant, what it adds in µs and as a share."""
    out = {}
    for index, name in enumerate(MEASURES):
        out[name] = {"plain_us": statistics.median(
            r["plain"][index] for start in starts for r in start) * 1e6}
        for variant in variants:
            if variant != "plain":
                pairs = [[(r["plain"][index], r[variant][index]) for r in s] for s in starts]
                out[name][variant] = {
                    "added_us": median_and_interval(
                        [[(b - a) * 1e6 for a, b in start] for start in pairs]),
                    "added_percent": median_and_interval(
                        [[(b / a - 1) * 100 for a, b in start] for start in pairs])}
    return out


def table(setup, starts, found, variants):
    lines = ["%d workers, %d batches an epoch; %d starts, %d pairs" % (
        setup["workers"], setup["batches"], len(starts), sum(len(s) for s in starts))]
    for name in MEASURES:
        lines.append("  %-4s %-10s %10.2f us a batch" % (name, "plain", found[name]["plain_us"]))
        for variant in variants:
            if variant != "plain":
                lines.append("  %-4s %-10s %+10.2f us (%+.2f to %+.2f)   %+.2f %% "
                             "(%+.2f to %+.2f)" % (name, variant,
                                                   *found[name][variant]["added_us"],
                                                   *found[name][variant]["added_percent"]))
    return "\n".join(lines)


def machine():
    model = "unknown"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cores": len(os.sched_getaffinity(0)), "processor": model,
            "kernel": platform.release(), "load": os.getloadavg()[0]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--budget", type=float, default=215, metavar="SECONDS",
                        help="of the whole call; a quarter goes to the job without workers")
    parser.add_argument("--workers", type=int, help="only one job, with so many workers")
    parser.add_argument("--starts", type=int, help="so many starts of each job; no budget")
    parser.add_argument("--batches", type=int, help="of an epoch, instead of what the time allows")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--step-ms", type=float, default=0,
                        help="the loop sleeps so long for each batch, as for a GPU's step")
    parser.add_argument("--json", metavar="FILE", help="every epoch and the summary")
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    if not os.path.exists(options.library):
        parser.error(options.library + " is not there")
    options.variants = options.variants.split(",")
    if options.variants[0] != "plain" or set(options.variants) - set(VARIANTS):
        parser.error("--variants: plain first, then any of " + ", ".join(VARIANTS[1:]))
    return options


def main():
    options = parse()
    setups = [{"workers": w, "batches": options.batches}
              for w in ([8, 0] if options.workers is None else [options.workers])]
    result = {"machine": machine(), "library": options.library, "step_ms": options.step_ms,
              "jobs": []}
    tables = []
    for setup in setups:
        share = 1 if len(setups) == 1 else (0.75 if setup["workers"] else 0.25)
        starts = measure(options, setup, options.budget * share)
        found = summary(starts, options.variants)
        tables.append(table(setup, starts, found, options.variants))
        result["jobs"].append({**setup, "summary": found, "starts": starts})
    result["machine"]["load_after"] = os.getloadavg()[0]
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file)
    print("\n%(cores)d cores, %(processor)s, kernel %(kernel)s, load %(load).1f → "
          "%(load_after).1f" % result["machine"], end="")
    print("; Python %s, PyTorch %s" % tuple(setups[0]["versions"]))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
