"""What the host timeline costs a job: interleaved pairs with and without the library.

    python3 tests/bench/loader_overhead.py LIBRARY [--python PYTHON] [--workers N] [--starts N]

Without workers: microseconds of CPU a batch, for batches that cost nothing themselves. With
workers: wall time and CPU time (with children, their start and end) of one epoch of a loader
whose samples are decompressed, cropped and normalised, four in a batch. Two processes, one with
the library, wait for their turn: epochs come as A B B A, workers are started for each. Both are
started anew several times, because a process keeps its luck with memory. Prints the median of
the pairs' differences with its 95 % interval (order statistics).
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

JOB = r"""
import json, os, random, resource, sys, time, zlib, torch
from torch.utils.data import DataLoader, Dataset
workers, batches, step_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000
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
    if workers:
        loader = DataLoader(Decoded(), batch_size=4, num_workers=workers)
    else:
        loader = DataLoader(Nothing(), batch_size=1, collate_fn=first)
    for _ in sys.stdin:  # a line: one epoch
        wall, used, count = time.perf_counter(), cpu(), 0
        for _ in loader:
            count += 1
            if step_s:
                time.sleep(step_s)
        print(json.dumps([(cpu() - used) / count, (time.perf_counter() - wall) / count]),
              flush=True)
"""


class Job:
    def __init__(self, options, directory=None):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("IDLESCOPE_")}
        if directory:
            environment.update(LD_PRELOAD=options.library, IDLESCOPE_OUTPUT=directory)
            if options.no_frames:
                environment["IDLESCOPE_FRAMES"] = "0"
        self.process = subprocess.Popen(
            [options.python, "-c", JOB, str(options.workers), str(options.batches),
             str(options.step_ms)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def epoch(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def interval(values):
    """Median and its 95 % interval by order statistics (binomial)."""
    values = sorted(values)
    half = 0.98 * math.sqrt(len(values))
    low = max(int(math.floor(len(values) / 2 - half)), 0)
    high = min(int(math.ceil(len(values) / 2 + half)), len(values) - 1)
    return statistics.median(values), values[low], values[high]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=4, help="of epochs, each time both are started")
    parser.add_argument("--batches", type=int, default=0)
    parser.add_argument("--step-ms", type=float, default=0,
                        help="the loop sleeps so long for each batch, as for a GPU's step")
    parser.add_argument("--no-frames", action="store_true")
    parser.add_argument("--same", action="store_true",
                        help="both without the library: what the method itself finds")
    parser.add_argument("--pairs-file", help="append each pair as a line of JSON; intervals are "
                        "of all pairs in it")
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    if options.batches == 0:
        options.batches = 20000 if options.workers == 0 else 100
    pairs = []
    for start in range(options.starts):
        directory = tempfile.mkdtemp()
        jobs = [Job(options), Job(options, None if options.same else directory)]
        for job in jobs:
            job.epoch()  # warm: imports, caches
        for number in range(options.pairs):
            order = (0, 1) if (start + number) % 2 == 0 else (1, 0)
            got = {which: jobs[which].epoch() for which in order}
            pairs.append((got[0], got[1]))
            if options.pairs_file:
                with open(options.pairs_file, "a") as file:
                    file.write(json.dumps(pairs[-1]) + "\n")
        for job in jobs:
            job.end()
        shutil.rmtree(directory)
    if options.pairs_file:
        with open(options.pairs_file) as file:
            pairs = [json.loads(line) for line in file]
        print("%d pairs" % len(pairs))
    for index, name in enumerate(("CPU", "wall")):
        plain = statistics.median(p[0][index] for p in pairs) * 1e6
        added, low, high = interval([(p[1][index] - p[0][index]) * 1e6 for p in pairs])
        share, share_low, share_high = interval([p[1][index] / p[0][index] - 1 for p in pairs])
        print("%-4s %10.2f us a batch; with the recorder %+.2f us (%.2f to %.2f), "
              "%+.2f %% (%.2f to %.2f)" % (name, plain, added, low, high, share * 100,
                                           share_low * 100, share_high * 100))


if __name__ == "__main__":
    main()
