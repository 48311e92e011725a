"""Real PyTorch on the CPU under `idlescope record`: what was recorded, what was not changed.

Needs a Python with PyTorch (Debian's python3-torch, or IDLESCOPE_TEST_PYTHON); skipped
without one.
"""

import collections
import json
import os
import signal
import subprocess
import time

import harness
from harness import BIN, clean_environment

PYTHON = harness.torch_python()

# Prints each loss with all its bits, then the hash of the parameters.
TRAIN = """
import hashlib, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        return torch.randn(8, generator=generator), torch.randn(1)

def main():
    workers, epochs = int(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=workers)
    for epoch in range(epochs):
        for x, y in loader:
            loss = ((model(x) - y) ** 2).mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()
            print(loss.item().hex())
    bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(hashlib.sha256(bits).hexdigest())

if __name__ == "__main__":
    main()
"""
BATCHES = 16


class TorchJob(harness.Scratch):
    def setUp(self):
        if PYTHON is None:
            self.skipTest("no Python with PyTorch here")
        super().setUp()
        self.write("train.py", TRAIN)

    def events(self, directory="out"):
        """Kind -> events of all files, by `idlescope dump`; each file must be readable."""
        out = collections.defaultdict(list)
        for path in self.traces(directory):
            dumped = self.idlescope("dump", path)
            self.assertEqual(dumped.returncode, 0, dumped.stderr)
            for line in dumped.stdout.splitlines():
                self.collect(json.loads(line), os.path.basename(path), out)
        return out

    def collect(self, value, file, out):
        if isinstance(value, dict):
            kind = value.get("kind")
            if isinstance(kind, str) and kind.startswith("EVENT_"):
                out[kind].append(dict(value, file=file))
            for inner in value.values():
                self.collect(inner, file, out)
        elif isinstance(value, list):
            for inner in value:
                self.collect(inner, file, out)

    def test_every_batch_is_recorded_and_nothing_changed(self):
        for workers in (0, 2):
            with self.subTest(workers=workers):
                command = [PYTHON, "train.py", str(workers), "2"]
                plain = self.run_command(command)
                self.assertEqual(plain.returncode, 0, plain.stderr)
                recorded = self.record(*command, flags=["-q", "-f"])
                self.assertEqual(recorded.returncode, 0, recorded.stderr)
                self.assertEqual(recorded.stdout, plain.stdout, "losses and parameters, bit for bit")
                self.assertEqual(recorded.stderr, plain.stderr)

                events = self.events()
                self.assertEqual(len(events["EVENT_LOADER_NEXT"]), 2 * BATCHES)
                self.assertEqual(len(events["EVENT_WORKER_FETCH"]), 2 * BATCHES)
                self.assertEqual(len(events["EVENT_STEP"]), 2 * BATCHES)
                self.assertEqual(len(events["EVENT_LOADER_WORKER_STARTED"]), 2 * workers)
                # Two epochs of `workers` processes each, and the main one.
                self.assertEqual(len(self.traces()), 1 + 2 * workers)

    def test_files_of_ended_workers_are_compact(self):
        done = self.record(PYTHON, "train.py", "2", "3", flags=["-q"])
        self.assertEqual(done.returncode, 0, done.stderr)
        sizes = [os.path.getsize(path) for path in self.traces()]
        self.assertEqual(len(sizes), 1 + 3 * 2)
        self.assertLess(max(sizes), 16 * 1024, "one 64 KiB chunk each before compaction")

    def test_an_exception_is_the_jobs_own(self):
        self.write("fail.py", TRAIN.replace("print(loss.item().hex())",
                                            "raise ValueError('from the job')"))
        plain = self.run_command([PYTHON, "fail.py", "0", "1"])
        recorded = self.record(PYTHON, "fail.py", "0", "1", flags=["-q"])
        self.assertEqual(recorded.returncode, plain.returncode)
        self.assertEqual(recorded.stdout, plain.stdout)
        self.assertIn(b"ValueError: from the job", recorded.stderr)
        self.assertGreaterEqual(len(self.events()["EVENT_LOADER_NEXT"]), 1)

    def test_killed_in_the_middle_the_trace_is_readable(self):
        job = self.write("slow.py", TRAIN.replace("print(loss.item().hex())",
                                                  "print(loss.item().hex(), flush=True)"))
        record = subprocess.Popen(
            [BIN, "record", "-o", self.path("out"), "--no-report", "--", PYTHON, job, "2", "1000"],
            cwd=self.folder, env=clean_environment(), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
        lines = [record.stdout.readline() for _ in range(20)]
        self.assertTrue(lines[-1])
        with open(self.path("out", "run.json")) as file:
            os.kill(int(json.load(file)["job_pid"]), signal.SIGKILL)
        _, errors = record.communicate(timeout=60)
        self.assertEqual(record.returncode, 128 + signal.SIGKILL)
        self.assertIn(b"SIGKILL", errors)
        events = self.events()
        self.assertGreaterEqual(len(events["EVENT_STEP"]), 20, "one per line that was printed")

    def test_plain_preload_works_too(self):
        done = self.run_command([PYTHON, "train.py", "0", "1"],
                                env={"LD_PRELOAD": harness.LIBRARY,
                                     "IDLESCOPE_OUTPUT": self.path("out")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.events()["EVENT_LOADER_NEXT"]), BATCHES)


if __name__ == "__main__":
    harness.main()
