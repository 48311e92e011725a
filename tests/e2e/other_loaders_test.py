"""Loaders beside torch.utils.data.DataLoader: StatefulDataLoader, WebLoader, torchdata.nodes;
DALI, ffcv, tf.data, grain by name (stand-ins, and the real ones where they are installed); JAX in
the same process; the pin-memory thread."""

import json
import os
import tempfile
import unittest

import harness
import trace_events

JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_loaders_job.py")
# Iterators of other libraries: module, class, the name that is said of them.
FOREIGN = (
    ("nvidia.dali.plugin.base_iterator", "_DaliBaseIterator", "nvidia.dali"),
    ("nvidia.dali.plugin.pytorch", "DALIGenericIterator", "nvidia.dali"),
    ("ffcv.loader.epoch_iterator", "EpochIterator", "ffcv"),
    ("tensorflow.python.data.ops.iterator_ops", "OwnedIterator", "tf.data"),
    ("grain._src.python.data_loader", "DataLoaderIterator", "grain"),
)
STAND_IN = """
class %s:
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

    def recorded(self, name, path="", **env):
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        output = tempfile.mkdtemp(dir=self.folder)
        extra = os.environ.get("IDLESCOPE_TEST_PACKAGES", "")  # torchdata, webdataset
        done = self.run_command(
            [self.python, JOB, name],
            env={**env, "LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": output,
                 "PYTHONPATH": ":".join(p for p in (path, extra) if p)}, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        count = json.loads(done.stdout)[name]
        if count is None:
            self.skipTest("the package is not installed")
        traces = trace_events.read_directory(output)
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

    def check_foreign(self, main, count, name):
        """Said by name, each batch once, with the line of the job's own loop; no fetch and no
        other host code is claimed for it."""
        self.assertEqual([main.names[e.a] for e in main.of("unseen")], [name])
        self.assertEqual([e.batch for e in main.of("next")], list(range(count)))
        self.assertEqual(main.count("end"), 1)
        self.assertEqual(main.count("fetch"), 0)
        self.assertIn("other_loaders_job.py:", main.names[main.of("site")[0].a])

    def test_stand_ins_are_said_by_name(self):
        for number, (module, iterator, name) in enumerate(FOREIGN):
            with self.subTest(module=module):
                packages = self.path("packages%d" % number)
                folders = module.split(".")[:-1]
                os.makedirs(os.path.join(packages, *folders))
                for depth in range(1, len(folders) + 1):
                    self.write(os.path.join(packages, *folders[:depth], "__init__.py"), "")
                self.write(os.path.join(packages, *module.split(".")) + ".py", STAND_IN % iterator)
                count, main, _ = self.recorded("foreign", path=packages,
                                               FOREIGN_ITERATOR=module + "." + iterator)
                self.assertEqual(count, 5)
                self.check_foreign(main, count, name)

    def test_tensorflow(self):
        count, main, _ = self.recorded("tensorflow")
        self.check_foreign(main, count, "tf.data")

    def test_grain(self):
        count, main, _ = self.recorded("grain")
        self.check_foreign(main, count, "grain")

    def test_jax_beside_a_dataloader(self):
        count, main, _ = self.recorded("jax")
        self.assertEqual((count, main.count("next"), main.count("fetch")), (6, 6, 6))
        self.assertEqual(main.of("unseen"), [])

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
