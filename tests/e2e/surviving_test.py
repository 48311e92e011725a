"""What was committed is in the file, whatever ends the process: kill -9 of the main process and
of workers at random moments; short-lived processes; small disks and limits."""

import glob
import os
import random
import resource
import signal
import subprocess
import time
import unittest

import harness
import trace_events

# A job that tells, in a shared mapping, how many next() returned and how many fetches of each
# worker returned: what the recording must hold when the process is killed at any moment.
KILL_JOB = r"""
import mmap, os, struct, sys, torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
counts = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
class Numbers(Dataset):
    def __len__(self):
        return 1000000
    def __getitem__(self, index):
        worker = get_worker_info().id
        at = 8 + 8 * worker
        # The fetch before this one has returned: batches of one sample.
        done = struct.unpack_from("q", counts, at)[0]
        struct.pack_into("q", counts, at, done + 1)
        return torch.tensor(index)
if __name__ == "__main__":
    delivered = 0
    for _ in DataLoader(Numbers(), batch_size=1, num_workers=2):
        delivered += 1
        struct.pack_into("q", counts, 0, delivered)
"""


class Killed(harness.Scratch):
    python = None
    # IDLESCOPE_KILLS=200 for the full run.
    kills = int(os.environ.get("IDLESCOPE_KILLS", "6"))

    def test_kill_at_random_moments(self):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        self.write("job.py", KILL_JOB)
        rng = random.Random(4)
        for number in range(self.kills):
            with self.subTest(number=number):
                self.kill_once(rng, "out%d" % number, worker=number % 3 == 2)

    def kill_once(self, rng, out, worker):
        counts = self.path("counts")
        with open(counts, "wb") as file:
            file.write(b"\0" * 4096)
        job = subprocess.Popen(
            [self.python, self.path("job.py"), counts], cwd=self.folder,
            env=harness.clean_environment({"LD_PRELOAD": harness.LIBRARY,
                                           "IDLESCOPE_OUTPUT": self.path(out)}),
            stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            deadline = time.monotonic() + 120
            while self.said(counts)[0] == 0:
                self.assertIsNone(job.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.005)
            time.sleep(rng.random() * 0.2)
            victim = job.pid
            if worker:
                with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as file:
                    victim = int(file.read().split()[0])
            os.kill(victim, signal.SIGKILL)
            job.wait(timeout=120)
            time.sleep(0.1)
        finally:
            try:
                os.killpg(job.pid, signal.SIGKILL)  # workers outlive a killed main process
            except ProcessLookupError:
                pass
        delivered, fetches = self.said(counts)
        traces = trace_events.read_directory(self.path(out))
        main = trace_events.main_of(traces)
        # next() returns after its event is committed, so what the job counted is in the file.
        self.assertGreaterEqual(main.count("next"), delivered)
        self.assertLessEqual(main.count("next"), delivered + 1)
        numbers = {e.b: e.a for e in main.of("worker_started")}
        for trace in traces:
            if trace.pid not in numbers:
                continue
            begun = fetches[numbers[trace.pid]]
            self.assertGreaterEqual(trace.count("fetch"), begun - 1)
            self.assertLessEqual(trace.count("fetch"), begun)

    def said(self, path):
        with open(path, "rb") as file:
            data = file.read(24)
        numbers = [int.from_bytes(data[i:i + 8], "little", signed=True) for i in (0, 8, 16)]
        return numbers[0], numbers[1:]


SMALL_JOB = """
import torch
from torch.utils.data import DataLoader
n = sum(1 for _ in DataLoader(list(range(%d)), batch_size=1))
print(n)
"""


class Limits(harness.Scratch):
    python = None

    def setUp(self):
        super().setUp()
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        self.write("job.py", SMALL_JOB % 4000)

    def run_job(self, env=None, **options):
        return self.run_command(
            [self.python, self.path("job.py")],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
                 **(env or {})}, timeout=240, **options)

    def test_file_size_limit_of_the_shell(self):
        done = self.run_job(
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000)))
        self.assertEqual((done.returncode, done.stdout), (0, b"4000\n"))
        self.assertIn(b"[output-failed]", done.stderr)
        self.assertIn(b"ulimit -f", done.stderr)
        (trace,) = trace_events.read_directory(self.path("out"))
        self.assertGreater(trace.count("next"), 500)

    def test_size_limit_of_the_recording(self):
        done = self.run_job({"IDLESCOPE_MAX_SIZE": "400kB"})
        self.assertEqual((done.returncode, done.stdout), (0, b"4000\n"))
        self.assertIn(b"[size-limit]", done.stderr)
        size = sum(os.path.getsize(p) for p in glob.glob(self.path("out", "*.istrace")))
        self.assertLessEqual(size, 400_000)

    def test_read_only_directory(self):
        if os.geteuid() == 0:
            done = self.run_job({"IDLESCOPE_OUTPUT": "/proc/self/nowhere"})
        else:
            os.mkdir(self.path("ro"), 0o500)
            done = self.run_job({"IDLESCOPE_OUTPUT": self.path("ro", "out")})
        self.assertEqual((done.returncode, done.stdout), (0, b"4000\n"))
        self.assertEqual(done.stderr.count(b"idlescope: ["), 1, done.stderr)

    def test_duration_and_steps_end_the_recording_not_the_job(self):
        self.write("job.py", """
import torch
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(50):
    model(torch.ones(2)).sum().backward()
    optimizer.step()
print("all", i + 1)
""")
        done = self.run_job({"IDLESCOPE_STEPS": "20"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"all 50\n", b""))
        (trace,) = trace_events.read_directory(self.path("out"))
        self.assertEqual(trace.count("step"), 20)
        self.assertTrue(trace.complete)


def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    for cls in (Killed, Limits):
        suite.addTests(harness.for_each_torch(loader, cls))
    return suite


if __name__ == "__main__":
    harness.main()
