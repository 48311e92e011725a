"""The job's output, exit code and numerics are what they are without us; the recording costs
nothing where it is off."""

import os
import re
import unittest

import harness
import trace_events

HERE = os.path.dirname(os.path.abspath(__file__))


def plain(text):
    """Without what differs between any two runs: addresses and pids."""
    return re.sub(rb"0x[0-9a-f]+", b"0x", text)


class Transparency(harness.Scratch):
    python = None

    def run_job(self, name, *arguments, env=None):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        return self.run_command([self.python, os.path.join(HERE, name), *arguments], env=env,
                                timeout=300)

    def recorded(self, **extra):
        return {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"), **extra}

    def test_output_and_numerics(self):
        without = self.run_job("transparency_job.py")
        self.assertEqual(without.returncode, 0, without.stderr.decode())
        with_us = self.run_job("transparency_job.py", env=self.recorded())
        self.assertEqual(with_us.returncode, 0, with_us.stderr.decode())
        self.maxDiff = None
        self.assertEqual(plain(with_us.stdout).decode(), plain(without.stdout).decode())
        self.assertEqual(plain(with_us.stderr).decode(), plain(without.stderr).decode())
        main = trace_events.main_of(trace_events.read_directory(self.path("out")))
        self.assertGreaterEqual(main.count("step"), 32)
        self.assertTrue(main.complete)

    def test_compiled_optimizer_steps(self):
        # Each way to compile a step: five steps, each recorded once; no graph and no graph break
        # more or less than without us.
        if self.python is None or harness.run_python(
                self.python, "import torch; torch._dynamo.eval_frame.OptimizeContext") is None:
            self.skipTest("no PyTorch with torch.compile")
        self.write("job.py", COMPILED_STEPS_JOB)
        without = self.run_command([self.python, self.path("job.py")], timeout=300)
        self.assertEqual(without.returncode, 0, without.stderr.decode())
        with_us = self.run_command([self.python, self.path("job.py")], env=self.recorded(),
                                   timeout=300)
        self.assertEqual(with_us.stdout.decode(), without.stdout.decode())
        (main,) = trace_events.read_directory(self.path("out"))
        steps = main.of("step")
        self.assertEqual([main.names[e.c] for e in steps], ["Adam"] * 20)
        self.assertEqual([e.b for e in steps], list(range(1, 21)))

    def test_disabled(self):
        done = self.run_job("loader_job.py", "map_main", env=self.recorded(IDLESCOPE_DISABLE="1"))
        self.assertEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_an_output_that_cannot_be_written(self):
        self.write("out", "a file is in the way")
        done = self.run_job("loader_job.py", "map_fork", env=self.recorded())
        self.assertEqual(done.returncode, 0)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)  # once, although four workers fail too
        self.assertTrue(lines[0].startswith("idlescope: [output-failed] cannot write "), lines)

    def test_the_append_sink_records_the_same(self):
        done = self.run_job("loader_job.py", "map_fork", env=self.recorded(IDLESCOPE_SINK="append"))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        traces = trace_events.read_directory(self.path("out"))
        self.assertEqual(trace_events.main_of(traces).count("next"), 12)
        self.assertEqual(sum(t.count("fetch") for t in traces), 12)

    def test_frames_name_the_users_functions(self):
        self.write("job.py", FRAMES_JOB)
        done = self.run_command([self.python or "false", self.path("job.py")], env=self.recorded(),
                                timeout=300) if self.python else self.skipTest("no PyTorch")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        (worker,) = [t for t in trace_events.read_directory(self.path("out"))
                     if t.role == "worker"]
        share, total = {}, 0
        for event in worker.of("frame"):
            name = worker.names[event.a].rsplit(" ", 1)[1]
            share[name] = share.get(name, 0) + event.c
            total += event.c
        fetched = sum(e.end - e.begin for e in worker.of("fetch"))
        self.assertGreater(share.get("slow_collate", 0) / total, 0.6, share)
        self.assertIn("job.py:", worker.names[worker.of("frame")[0].a])
        self.assertLess(abs(total - fetched) / fetched, 0.5)
        sampled = {e.batch for e in worker.of("frame")}
        self.assertLess(len(sampled), worker.count("fetch") / 8)

    def test_frames_can_be_turned_off(self):
        self.write("job.py", FRAMES_JOB)
        if self.python is None:
            self.skipTest("no PyTorch")
        done = self.run_command([self.python, self.path("job.py")],
                                env=self.recorded(IDLESCOPE_FRAMES="0"), timeout=300)
        self.assertEqual(done.returncode, 0)
        traces = trace_events.read_directory(self.path("out"))
        self.assertEqual(sum(t.count("frame") for t in traces), 0)


COMPILED_STEPS_JOB = """
import torch
from torch._dynamo.utils import counters

def train(compiled):
    torch.manual_seed(1)
    torch._dynamo.reset()
    counters.clear()
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())
    step = compiled(optimizer)
    for _ in range(5):
        optimizer.zero_grad()
        loss = model(torch.randn(2, 4)).pow(2).sum()
        loss.backward()
        step()
    print(loss.item().hex(), dict(counters["graph_break"]), dict(counters["stats"]))

def method(optimizer):
    return torch.compile(optimizer.step, backend="eager")

def function(optimizer):
    @torch.compile(backend="eager")
    def step():
        optimizer.step()
    return step

def broken(optimizer):  # the hooks of an eager call run: not counted twice
    @torch.compile(backend="eager")
    def step():
        torch._dynamo.graph_break()
        optimizer.step()
    return step

for compiled in (lambda optimizer: optimizer.step, method, function, broken):
    train(compiled)
"""

FRAMES_JOB = """
import torch
from torch.utils.data import DataLoader, Dataset

def slow_collate(batch):
    total = 0
    for i in range(60000):
        total += i
    return torch.stack(batch)

class Data(Dataset):
    def __len__(self):
        return 600
    def __getitem__(self, index):
        total = 0
        for i in range(3000):
            total += i
        return torch.ones(2) * index

for batch in DataLoader(Data(), batch_size=4, num_workers=1, collate_fn=slow_collate):
    pass
"""


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, Transparency)


if __name__ == "__main__":
    harness.main()
