"""Loaders beside torch.utils.data.DataLoader: StatefulDataLoader, WebLoader, torchdata.nodes,
DALI by name; the pin-memory thread."""

import json
import os
import unittest

import harness
import trace_events

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_loaders_job.py")
# A package with the names of DALI's.
DALI = """
class _DaliBaseIterator:
    pass
class DALIGenericIterator(_DaliBaseIterator):
    def __init__(self, count):
        self.count = count
    def __iter__(self):
        return self
    def __next__(self):
        if self.count == 0:
            raise StopIteration
        self.count -= 1
        return self.count
"""


class OtherLoaders(harness.Scratch):
    python = None

    def recorded(self, name, path=""):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        extra = os.environ.get("IDLESCOPE_TEST_PACKAGES", "")  # torchdata, webdataset
        done = self.run_command(
            [self.python, JOB, name],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
                 "PYTHONPATH": ":".join(p for p in (path, extra) if p)}, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        count = json.loads(done.stdout)[name]
        if count is None:
            self.skipTest("the package is not installed")
        traces = trace_events.read_directory(self.path("out"))
        main = next(t for t in traces if t.role == "main")
        return count, main, [t for t in traces if t.role == "worker"]

    def test_stateful_dataloader(self):
        count, main, workers = self.recorded("stateful")
        self.assertEqual(count, 12)
        self.assertEqual(main.count("next"), 12)
        self.assertEqual(main.count("end"), 2)
        self.assertEqual(main.count("create"), 2)
        self.assertEqual(main.count("fetch"), 6)
        self.assertEqual(sum(t.count("fetch") for t in workers), 6)
        self.assertEqual(sum(t.count("put") for t in workers
                             if all(e.batch >= 0 for e in t.of("put"))), 6)

    def test_webloader(self):
        count, main, workers = self.recorded("webdataset")
        self.assertEqual(main.count("next"), count)
        self.assertEqual(sum(1 for t in workers for e in t.of("fetch") if e.a > 0), count)

    def test_torchdata_nodes_are_said_by_name(self):
        count, main, _ = self.recorded("nodes")
        self.assertEqual([main.names[e.a] for e in main.of("unseen")], ["torchdata.nodes"])
        self.assertEqual(main.count("next"), count)

    def test_dali_is_said_by_name(self):
        for folder in ("nvidia", "nvidia/dali", "nvidia/dali/plugin"):
            os.makedirs(self.path("packages", folder), exist_ok=True)
            self.write("packages/%s/__init__.py" % folder, "")
        self.write("packages/nvidia/dali/plugin/pytorch.py", DALI)
        count, main, _ = self.recorded("foreign", path=self.path("packages"))
        self.assertEqual(count, 5)
        self.assertEqual([main.names[e.a] for e in main.of("unseen")], ["nvidia.dali"])
        self.assertEqual([e.batch for e in main.of("next")], list(range(5)))
        self.assertEqual(main.count("end"), 1)
        self.assertIn("other_loaders_job.py:", main.names[main.of("site")[0].a])

    def test_pin_memory_thread(self):
        count, main, _ = self.recorded("pin")
        self.assertEqual(count, 4)
        for kind in ("pin_wait", "pin_copy", "pin_put"):
            self.assertEqual([e.batch for e in main.of(kind)], list(range(4)), kind)
        for wait, copy, put in zip(main.of("pin_wait"), main.of("pin_copy"), main.of("pin_put")):
            self.assertEqual(wait.end, copy.begin)
            self.assertEqual(copy.end, put.begin)


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, OtherLoaders)


if __name__ == "__main__":
    harness.main()
