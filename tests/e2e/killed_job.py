"""One job that is killed with SIGKILL at a random moment, and what its recording must hold.

The job tells in a shared mapping how many next() returned and how many fetches each worker
process began: facts that do not come from the recorder. `kill_once` starts it, kills it and
compares; used by surviving_test.py and host_check.py.
"""

import glob
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import harness
import trace_events

# In the mapping: next() returned; then for each worker process its pid and the fetches begun
# (batches of one sample: the fetch before this one has returned).
JOB = r"""
import mmap, os, struct, sys, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
counts = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 65536)
size = int(sys.argv[2])
class Numbers(Dataset):
    def __init__(self, epoch):
        self.epoch, self.begun = epoch, 0
    def __len__(self):
        return size
    def __getitem__(self, index):
        at = 16 * (1 + 2 * self.epoch + get_worker_info().id)
        self.begun += 1
        struct.pack_into("qq", counts, at, os.getpid(), self.begun)
        return torch.tensor(index)
if __name__ == "__main__":
    delivered = 0
    for epoch in range(2000):
        for _ in DataLoader(Numbers(epoch), batch_size=1, num_workers=2):
            delivered += 1
            struct.pack_into("q", counts, 0, delivered)
"""
MAPPING_BYTES = 65536
LONG, SHORT = 1_000_000, 60  # batches of an epoch; with short ones workers come and go
MOMENTS = ("main, while it starts", "main, in an epoch", "main, short epochs",
           "worker, in an epoch", "worker, short epochs")
seconds_to_first_batch = [3.0]  # of jobs so far; a guess for the first


class Outcome:
    """What one kill left: numbers, and `lost`: sentences about what is missing or too much."""

    def __init__(self, moment):
        self.moment = moment
        self.delivered = self.recorded_next = self.fetches = self.recorded_fetches = 0
        self.files = self.bytes = 0
        self.report_code = None
        self.lost = []


def said(path):
    """next() that returned, {pid of a worker: fetches it began}."""
    with open(path, "rb") as file:
        data = file.read()
    slots = [struct.unpack_from("qq", data, at) for at in range(16, MAPPING_BYTES, 16)]
    return struct.unpack_from("q", data)[0], {pid: begun for pid, begun in slots if pid}


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
            return [int(p) for p in file.read().split()]
    except OSError:
        return []


def running(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def run_and_kill(python, library, folder, moment, seed):
    """Runs the job in `folder` and kills it. None, or why it could not be done."""
    rng = random.Random(seed)
    counts = os.path.join(folder, "counts")
    with open(counts, "wb") as file:
        file.truncate(MAPPING_BYTES)
    environment = harness.clean_environment(
        {"LD_PRELOAD": library, "IDLESCOPE_OUTPUT": os.path.join(folder, "out")})
    with open(os.path.join(folder, "stderr"), "wb") as errors:
        job = subprocess.Popen(
            [python, "-c", JOB, counts, str(SHORT if "short" in moment else LONG)], cwd=folder,
            env=environment, stderr=errors, start_new_session=True)
    begin = time.monotonic()
    try:
        if "starts" in moment:
            # Most of the start is importing PyTorch, which records nothing: rather late in it.
            time.sleep(seconds_to_first_batch[-1] * (1.1 - 0.8 * rng.random() ** 2))
        else:
            if not wait_until(lambda: said(counts)[0] > 0 or job.poll() is not None, 120):
                return "no batch in 120 s"
            seconds_to_first_batch.append(time.monotonic() - begin)
            time.sleep(rng.random() * (1.5 if "short" in moment else 0.2))
        workers = children(job.pid) if moment.startswith("worker") else []
        if job.poll() is not None:
            return "the job ended by itself, exit code %d" % job.returncode
        os.kill(rng.choice(workers) if workers else job.pid, signal.SIGKILL)
        # PyTorch ends the job when a worker dies, but not while that epoch is being shut down.
        wait_until(lambda: job.poll() is not None, 10 if workers else 120)
        time.sleep(0.05)
    finally:
        try:
            os.killpg(job.pid, signal.SIGKILL)  # workers outlive a killed main process
        except ProcessLookupError:
            pass
        job.wait()
    if not wait_until(lambda: not any(running(pid) for pid in said(counts)[1]), 30):
        return "a worker outlived its SIGKILL"
    return None


def compare(outcome, folder):
    outcome.delivered, begun = said(os.path.join(folder, "counts"))
    paths = glob.glob(os.path.join(folder, "out", "*.istrace"))
    outcome.files, outcome.bytes = len(paths), sum(os.path.getsize(p) for p in paths)
    traces = {}
    for path in paths:
        try:
            trace = trace_events.Trace(path)
            traces[trace.pid] = trace
        except (trace_events.Damaged, ValueError, struct.error) as error:
            # Only a file whose process was killed before its header was complete may be so.
            outcome.lost.append("%s is not readable: %s" % (os.path.basename(path), error))
    main = trace_events.main_of(list(traces.values()))
    outcome.recorded_next = main.count("next") if main else 0
    # next() returns after its event is committed, so what the job counted is in the file.
    if not outcome.delivered <= outcome.recorded_next <= outcome.delivered + 1:
        outcome.lost.append("next() returned %d times, %d recorded" % (
            outcome.delivered, outcome.recorded_next))
    for pid, count in begun.items():
        recorded = traces[pid].count("fetch") if pid in traces else 0
        outcome.fetches += count - 1
        outcome.recorded_fetches += recorded
        if not count - 1 <= recorded <= count:
            outcome.lost.append("worker %d returned %d or %d fetches, %d recorded" % (
                pid, count - 1, count, recorded))


def kill_once(python, library, folder, number, seed, program=None):
    """Kill `number` (it chooses the moment and the victim) in the empty folder `folder`, which
    is removed afterwards. With `program` (idlescope) the recording is reported on, too."""
    outcome = Outcome(MOMENTS[number % len(MOMENTS)])
    os.makedirs(folder)
    try:
        trouble = run_and_kill(python, library, folder, outcome.moment, (seed << 20) + number)
        if trouble:
            with open(os.path.join(folder, "stderr"), errors="replace") as file:
                outcome.lost.append("%s %s" % (trouble, file.read()[-600:]))
            return outcome
        compare(outcome, folder)
        if program and outcome.recorded_next:
            done = subprocess.run([program, "report", os.path.join(folder, "out")],
                                  env=harness.clean_environment(), capture_output=True,
                                  timeout=60)
            outcome.report_code = done.returncode
            if done.returncode != 0:
                outcome.lost.append("idlescope report: exit code %d, %s" % (
                    done.returncode, done.stderr.decode(errors="replace")[-300:]))
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)
