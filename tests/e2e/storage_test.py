"""File systems that are full, slow to learn from or gone: the job never notices, and what was
recorded stays readable. Mounts small ones of its own; skipped where it may not mount."""

import glob
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import harness
import trace_events

JOB = """
import sys, time, torch
from torch.utils.data import DataLoader
workers, epochs, pause = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
n = 0
for epoch in range(epochs):
    for _ in DataLoader(list(range(4000)), batch_size=2, num_workers=workers):
        n += 1
        if pause:
            time.sleep(pause)
print(n)
"""


class Storage(harness.Scratch):
    python = None

    def setUp(self):
        super().setUp()
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        self.write("job.py", JOB)

    def mounted(self, kind, options="", source="none"):
        """A mount point with a file system of `kind`."""
        where = self.path(kind)
        os.mkdir(where)
        command = ["mount", "-t", kind] + (["-o", options] if options else []) + [source, where]
        if shutil.which("mount") is None or self.run_command(command).returncode != 0:
            self.skipTest("may not mount " + kind)
        # Before the folder is removed: clean-ups run last in, first out.
        self.addCleanup(self.run_command, ["umount", "-l", where])
        return where

    def through_fuse(self):
        """A mount point that shows self.path("behind") through FUSE, and its server."""
        if shutil.which("bindfs") is None:
            self.skipTest("no bindfs")
        for name in ("behind", "fuse"):
            os.mkdir(self.path(name))
        where = self.path("fuse")
        server = subprocess.Popen(["bindfs", "-f", self.path("behind"), where],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(self.run_command, ["umount", "-l", where])
        deadline = time.monotonic() + 10
        while not os.path.ismount(where):
            if server.poll() is not None or time.monotonic() > deadline:
                self.skipTest("may not mount FUSE")
            time.sleep(0.02)
        return where, server

    def run_job(self, output, workers, epochs=2, env=None):
        done = self.run_command(
            [self.python, self.path("job.py"), str(workers), str(epochs), "0"],
            env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": output, **(env or {})},
            timeout=240)
        self.assertEqual((done.returncode, done.stdout), (0, b"%d\n" % (2000 * epochs)),
                         done.stderr)
        return done.stderr

    def check_complete(self, output, stderr, workers, epochs=2):
        self.assertEqual(stderr, b"")
        traces = trace_events.read_directory(output)
        self.assertEqual(sum(t.count("next") for t in traces), 2000 * epochs)
        self.assertEqual(sum(t.count("fetch") for t in traces), 2000 * epochs)
        self.assertEqual(len(traces), 1 + workers * epochs)

    def check_readable(self, output):
        """Every file ends in whole packets; what is there is reported on."""
        traces = trace_events.read_directory(output)
        self.assertGreater(sum(t.count("next") for t in traces), 300)
        done = self.idlescope("report", output)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_full_disk(self):
        for sink, workers in (("auto", 0), ("append", 2)):
            with self.subTest(sink=sink, workers=workers):
                where = self.mounted("tmpfs", "size=600k")
                output = os.path.join(where, "out")
                said = self.run_job(output, workers, env={"IDLESCOPE_SINK": sink})
                self.assertEqual(said.count(b"idlescope: ["), 1, said)
                self.assertIn(b"[disk-full]", said)
                self.check_readable(output)
                self.run_command(["umount", "-l", where])
                os.rmdir(where)

    def test_full_disk_under_the_launcher(self):
        where = self.mounted("tmpfs", "size=600k")
        output = os.path.join(where, "out")
        done = self.idlescope("record", "-o", output, "--", self.python, self.path("job.py"),
                              "2", "2", "0", timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[0], b"4000")
        self.assertIn(b"[disk-full]", done.stderr)
        self.assertNotIn(b"internal", done.stderr.lower())
        self.check_readable(output)

    def test_disk_that_is_full_from_the_start(self):
        where = self.mounted("tmpfs", "size=64k")
        filler = os.open(os.path.join(where, "filler"), os.O_WRONLY | os.O_CREAT)
        with self.assertRaises(OSError):
            while True:
                os.write(filler, b"x" * 4096)
        os.close(filler)
        said = self.run_job(os.path.join(where, "out"), 2)
        self.assertEqual(said.count(b"idlescope: ["), 1, said)

    def test_file_system_without_fallocate(self):
        output = os.path.join(self.mounted("ramfs"), "out")
        self.check_complete(output, self.run_job(output, 2), 2)

    def test_fuse(self):
        output = os.path.join(self.through_fuse()[0], "out")
        self.check_complete(output, self.run_job(output, 2), 2)
        # Appended: only what was written, no reserved room behind it.
        sizes = [os.path.getsize(p) for p in glob.glob(os.path.join(output, "*.istrace"))]
        self.assertTrue(any(size % 4096 for size in sizes), sizes)

    def test_byte_limit_of_the_job_where_nothing_can_be_reserved(self):
        for output in (os.path.join(self.mounted("ramfs"), "out"),
                       os.path.join(self.through_fuse()[0], "out")):
            with self.subTest(output=output):
                said = self.run_job(output, 2, env={"IDLESCOPE_MAX_SIZE": "1MB"})
                self.assertEqual(said.count(b"[size-limit]"), 1, said)
                size = sum(map(os.path.getsize, glob.glob(os.path.join(output, "*.istrace"))))
                self.assertLessEqual(size, 1_000_000)

    def test_fuse_server_that_dies(self):
        where, server = self.through_fuse()
        output = os.path.join(where, "out")
        with open(self.path("said"), "wb") as said:
            job = subprocess.Popen(
                [self.python, self.path("job.py"), "2", "2", "0.001"], stdout=said, stderr=said,
                env=harness.clean_environment({"LD_PRELOAD": harness.LIBRARY,
                                               "IDLESCOPE_OUTPUT": output}))
        try:
            deadline = time.monotonic() + 120
            while not glob.glob(self.path("behind", "out", "*.istrace")):
                self.assertLess(time.monotonic(), deadline)
                self.assertIsNone(job.poll())
                time.sleep(0.02)
            time.sleep(0.3)
            server.send_signal(signal.SIGKILL)
            self.assertEqual(job.wait(timeout=120), 0)
        finally:
            job.kill()
            job.wait()
        with open(self.path("said"), "rb") as said:
            lines = said.read().splitlines()
        self.assertIn(b"4000", lines)
        self.assertEqual(sum(b"idlescope: [output-failed]" in line for line in lines), 1, lines)
        self.assertEqual(len(lines), 2, lines)
        for path in glob.glob(self.path("behind", "out", "*.istrace")):
            trace_events.Trace(path)  # readable up to there

    def test_others(self):
        """ext4, xfs, btrfs in an image; overlayfs."""
        for kind, make in (("ext4", "mkfs.ext4"), ("xfs", "mkfs.xfs"), ("btrfs", "mkfs.btrfs")):
            with self.subTest(kind=kind):
                if shutil.which(make) is None:
                    continue
                image = self.path(kind + ".image")
                with open(image, "wb") as file:
                    file.truncate(400 << 20)
                self.assertEqual(self.run_command([make, "-q", image]).returncode, 0)
                output = os.path.join(self.mounted(kind, "loop", image), "out")
                self.check_complete(output, self.run_job(output, 2), 2)
        with self.subTest(kind="overlay"):
            layers = self.mounted("tmpfs", "size=64m")  # overlayfs does not stack on itself
            for name in ("lower", "upper", "work"):
                os.mkdir(os.path.join(layers, name))
            output = os.path.join(self.mounted(
                "overlay", "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work" % (
                    layers, layers, layers)), "out")
            self.check_complete(output, self.run_job(output, 2), 2)


def load_tests(loader, tests, pattern):
    return harness.for_each_torch(loader, Storage)


if __name__ == "__main__":
    if not sys.platform.startswith("linux"):
        sys.exit(harness.SKIPPED)
    harness.main()
