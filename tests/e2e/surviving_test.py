"""What was committed is in the file, whatever ends the process: kill -9 of the main process and
of workers at random moments; short-lived processes; small disks and limits."""

import glob
import os
import resource
import unittest

import harness
import killed_job
import trace_events


class Killed(harness.Scratch):
    python = None
    # IDLESCOPE_KILLS=200 for the full run, or host_check.py.
    kills = int(os.environ.get("IDLESCOPE_KILLS", str(len(killed_job.MOMENTS))))

    def test_kill_at_random_moments(self):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        for number in range(self.kills):
            with self.subTest(number=number, moment=killed_job.MOMENTS[
                    number % len(killed_job.MOMENTS)]):
                outcome = killed_job.kill_once(
                    self.python, harness.LIBRARY, self.path("kill%d" % number), number, seed=4,
                    program=harness.BIN)
                self.assertEqual(outcome.lost, [])


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


SHORT_LIVED_JOB = """
import os, sys, torch
from torch.utils.data import DataLoader
left, running = int(sys.argv[1]), 0
while left or running:
    if left and running < 4:
        if os.fork() == 0:
            n = sum(1 for _ in DataLoader(list(range(10)), batch_size=2))
            os._exit(0 if n == 5 else 1)
        left, running = left - 1, running + 1
    else:
        _, status = os.wait()
        assert status == 0
        running -= 1
print("all")
"""


class ShortLived(harness.Scratch):
    python = None
    count = int(os.environ.get("IDLESCOPE_SHORT_LIVED", "100"))

    def test_processes_that_live_for_moments(self):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        done = self.record(self.python, self.write("job.py", SHORT_LIVED_JOB), str(self.count),
                           timeout=500)
        self.assertEqual((done.returncode, done.stdout), (0, b"all\n"), done.stderr)
        sizes = [os.path.getsize(path) for path in self.traces()]
        print("\n    %d files, %d bytes, largest %d" % (len(sizes), sum(sizes), max(sizes)))
        self.assertEqual(len(sizes), self.count)
        self.assertLess(max(sizes), 4096, "64 KiB each before the launcher compacts them")
        dumped = self.idlescope("dump", *self.traces(), timeout=240)
        self.assertEqual(dumped.returncode, 0, dumped.stderr)
        self.assertEqual(dumped.stdout.count(b"EVENT_LOADER_NEXT"), 5 * self.count)
        self.assertEqual(dumped.stdout.count(b"EVENT_LOADER_END"), self.count)


def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    for cls in (Killed, Limits, ShortLived):
        suite.addTests(harness.for_each_torch(loader, cls))
    return suite


if __name__ == "__main__":
    harness.main()
