"""CPython 3.8 to 3.13, with -S, -I, -E, -W error and in a venv; the bridge under valgrind. A
stand-in takes PyTorch's place (tests/e2e/standin)."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

import harness
import trace_events

STANDIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin")
JOB = r"""
import sys
sys.path.insert(0, %r)
import torch
from torch.utils.data import DataLoader

class Squares:
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return index * index

def main():
    optimizer = torch.optim.Optimizer()
    total = 0
    for workers in (0, 2):
        for batch in DataLoader(Squares(), batch_size=3, num_workers=workers):
            total += sum(batch)
            optimizer.step()
    torch.save(total, %%r)
    print(total)

if __name__ == "__main__":
    main()
""" % STANDIN

SOAK = r"""
import sys
sys.path.insert(0, %r)
import torch
from torch.utils.data import DataLoader

def resident():
    for line in open("/proc/self/smaps_rollup"):
        if line.startswith("Anonymous:"):
            return int(line.split()[1])

optimizer = torch.optim.Optimizer()
for epoch in range(6):
    for batch in DataLoader(range(50000)):
        optimizer.step()
    if epoch in (0, 5):
        print(resident())
""" % STANDIN


def interpreters():
    """IDLESCOPE_TEST_INTERPRETERS (colon-separated), else what pyenv and PATH have."""
    listed = os.environ.get("IDLESCOPE_TEST_INTERPRETERS")
    if listed:
        return listed.split(":")
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = glob.glob(os.path.join(root, "versions", "3.*", "bin", "python3"))
    found += [p for p in ("/usr/bin/python3",) if os.path.exists(p)]
    return found or [sys.executable]


def version(python):
    out = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"],
                         capture_output=True)
    return tuple(int(n) for n in out.stdout.split()) if out.returncode == 0 else (0, 0)


class Interpreters(harness.Scratch):
    def run_job(self, command, out="out", **env):
        self.write("job.py", JOB % self.path("saved"))
        return self.run_command(
            command + [self.path("job.py")],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path(out),
                 "PYTHONDONTWRITEBYTECODE": "1", **env}, timeout=280)

    def check(self, done, out="out"):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"1012\n", b""))
        traces = trace_events.read_directory(self.path(out))
        main = trace_events.main_of(traces)
        self.assertEqual(main.count("next"), 8)
        self.assertEqual(main.count("step"), 8)
        self.assertEqual(main.count("end"), 2)
        self.assertEqual(main.count("checkpoint"), 1)
        workers = [t for t in traces if t.role == "worker"]
        self.assertEqual(len(workers), 2)
        self.assertEqual(sum(t.count("fetch") for t in workers), 4)
        return main

    def test_every_interpreter(self):
        for number, python in enumerate(interpreters()):
            if version(python) < (3, 8):
                continue
            with self.subTest(python=version(python)):
                out = "out%d" % number
                main = self.check(self.run_job([python], out), out)
                self.assertTrue(main.process[14].decode().startswith(
                    "%d.%d." % version(python)))
                self.assertEqual(main.process[15], b"2.11.0+standin")

    def test_warnings_are_errors(self):
        # CPython 3.12 and later warn at fork() when the process has native threads.
        newest = max(interpreters(), key=version)
        self.check(self.run_job([newest, "-W", "error"]))

    def test_isolated_modes(self):
        for number, flags in enumerate((["-S"], ["-I"], ["-E"], ["-I", "-S"])):
            with self.subTest(flags=flags):
                out = "out%d" % number
                self.check(self.run_job([sys.executable] + flags, out), out)

    def test_virtual_environment(self):
        made = self.run_command([sys.executable, "-m", "venv", "--without-pip", self.path("v")])
        self.assertEqual(made.returncode, 0)
        self.check(self.run_job([self.path("v", "bin", "python")]))

    def test_memory_does_not_grow(self):
        # A long job in small: 300 000 batches and steps. The trace's own pages are the page
        # cache's; what is ours or Python's is anonymous.
        self.write("soak.py", SOAK)
        done = self.run_command(
            [sys.executable, self.path("soak.py")],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out")}, timeout=280)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        early, late = (int(n) for n in done.stdout.split())
        self.assertLess(late - early, 4096, "KiB of memory after 50 000 and 300 000 batches")

    def test_valgrind_finds_no_fault_of_ours(self):
        if shutil.which("valgrind") is None:
            self.skipTest("no valgrind")
        self.write("job.py", JOB % self.path("saved"))
        log = self.path("valgrind.log")
        done = self.run_command(
            ["valgrind", "--error-exitcode=0", "--log-file=" + log, "--leak-check=full",
             "--show-leak-kinds=definite", sys.executable, self.path("job.py")],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
                 "PYTHONMALLOC": "malloc"}, timeout=280)
        self.assertEqual((done.returncode, done.stdout), (0, b"1012\n"), done.stderr)
        with open(log) as file:
            text = file.read()
        self.assertIn("ERROR SUMMARY", text)
        reports = [p for p in text.split("\n==") if p]
        ours = [line for line in text.splitlines() if "libidlescope.so" in line]
        self.assertEqual(ours, [], text[-3000:])
        self.assertGreater(len(reports), 3)


if __name__ == "__main__":
    harness.main()
