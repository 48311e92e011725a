"""What the host timeline costs a job: interleaved pairs with and without the library.

    python3 tests/bench/loader_overhead.py LIBRARY [--python PYTHON] [--workers N] [--pairs N]

Without workers: microseconds of CPU a batch, for batches that cost nothing themselves. With
workers: wall time and CPU time (with children) of a loader job whose samples cost 2 ms of CPU
each. Prints the median of the pairs' differences with its 95 % interval (order statistics).
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
import json, os, resource, sys, time, torch
from torch.utils.data import DataLoader, Dataset
workers, samples, cpu_ms = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
class Data(Dataset):
    def __len__(self):
        return samples
    def __getitem__(self, index):
        if cpu_ms:
            end = time.thread_time() + cpu_ms / 1000
            while time.thread_time() < end:
                pass
        return index
def first(batch):
    return batch[0]
def cpu():
    used = 0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used
if __name__ == "__main__":
    loader = DataLoader(Data(), batch_size=1 if not workers else 4, num_workers=workers,
                        collate_fn=first)
    best = None
    for _ in range(5 if not workers else 1):
        wall, used, batches = time.perf_counter(), cpu(), 0
        for _ in loader:
            batches += 1
        got = [(cpu() - used) / batches, (time.perf_counter() - wall) / batches]
        best = got if best is None else [min(a, b) for a, b in zip(best, got)]
    print(json.dumps(best))
"""


def run(options, samples, cpu_ms, directory):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("IDLESCOPE_")}
    if directory:
        environment.update(LD_PRELOAD=options.library, IDLESCOPE_OUTPUT=directory)
    out = subprocess.run([options.python, "-c", JOB, str(options.workers), str(samples),
                          str(cpu_ms)], env=environment, check=True, capture_output=True)
    return json.loads(out.stdout)


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
    parser.add_argument("--pairs", type=int, default=11)
    options = parser.parse_args()
    options.library = os.path.abspath(options.library)
    samples, cpu_ms = (20000, 0) if options.workers == 0 else (4000, 2)
    pairs = []
    for number in range(options.pairs):
        directory = tempfile.mkdtemp()
        order = (None, directory) if number % 2 == 0 else (directory, None)
        got = {d: run(options, samples, cpu_ms, d) for d in order}
        shutil.rmtree(directory)
        pairs.append((got[None], got[directory]))
    for index, name in enumerate(("CPU", "wall")):
        plain = statistics.median(p[0][index] for p in pairs) * 1e6
        added, low, high = interval([(p[1][index] - p[0][index]) * 1e6 for p in pairs])
        share, share_low, share_high = interval([p[1][index] / p[0][index] - 1 for p in pairs])
        print("%-4s %10.2f us a batch; with the recorder %+.2f us (%.2f to %.2f), "
              "%+.2f %% (%.2f to %.2f)" % (name, plain, added, low, high, share * 100,
                                           share_low * 100, share_high * 100))


if __name__ == "__main__":
    main()
